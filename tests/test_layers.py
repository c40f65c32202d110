"""Imports go downward only, and a run imports no more than it needs."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# From the bottom up; a part may import those that its line names, and none below that line.
MAY_IMPORT: dict[str, set[str]] = {
    "sigwrap": set(),  # the version
    "hints": set(),
    "bare": {"hints"},  # a run's part of the standard library
    "early": set(),
    "quick_import": {"hints"},
    "isolation": set(),
    "status": set(),
    "amounts": {"bare"},
    "escape": {"bare"},
    "nearest": set(),
    "errors": {"status"},
    "tuples": {"hints"},
    "events": {"bare", "hints", "errors", "tuples"},
    "outcomes": {"events"},
    "machine": set(),
    "calls": {"bare", "hints", "tuples", "machine"},
    "policy": {"bare", "hints", "amounts", "nearest", "errors", "escape", "tuples", "events"},
    "agent": {"bare", "hints", "nearest", "errors", "escape", "tuples", "policy"},
    # Pure: it knows no kernel, no file and no clock.
    "mediate": {
        "bare",
        "hints",
        "errors",
        "escape",
        "status",
        "tuples",
        "events",
        "calls",
        "policy",
    },
    # Pure as well.
    "hooks": {"bare", "hints", "errors", "escape", "tuples", "status", "policy", "mediate"},
    "platform": {"bare", "hints", "mediate"},
    "linux": {
        "bare",
        "hints",
        "errors",
        "tuples",
        "events",
        "calls",
        "policy",
        "mediate",
        "platform",
        "machine",
    },
    "store": {
        "bare",
        "hints",
        "nearest",
        "errors",
        "escape",
        "tuples",
        "events",
        "outcomes",
        "linux",
    },
    "protocols": {"bare", "hints", "errors", "escape", "tuples", "linux"},
    "start": {
        "bare",
        "quick_import",
        "sigwrap",
        "hints",
        "nearest",
        "errors",
        "tuples",
        "status",
        "policy",
        "linux",
    },
    "run": {
        *("sigwrap", "bare", "hints", "tuples", "status", "escape", "errors", "events", "calls"),
        *("start", "outcomes"),
        *("linux", "policy", "agent", "store", "mediate", "protocols", "platform"),
    },
    "stub": {
        "bare",
        "status",
        "escape",
        "tuples",
        "errors",
        "events",
        "start",
        "linux",
        "protocols",
    },
    "front": {
        *("bare", "hints", "status", "escape", "tuples", "errors"),
        *("start", "linux", "mediate", "protocols"),
    },
    "forward": {
        "bare",
        "status",
        "escape",
        "tuples",
        "errors",
        "start",
        "linux",
        "mediate",
        "front",
    },
    "report": {
        "nearest",
        "outcomes",
        "status",
        "amounts",
        "tuples",
        "errors",
        "escape",
        "events",
        "policy",
        "store",
    },
    "doctor": {
        *("bare", "hints", "status", "escape", "errors", "tuples", "policy", "platform"),
        *("machine", "linux", "start", "store", "run", "front", "report"),
    },
    "watch": {
        *(
            "outcomes",
            "bare",
            "hints",
            "status",
            "errors",
            "escape",
            "events",
            "tuples",
            "linux",
            "start",
        ),
        *("store", "mediate", "policy", "protocols", "run", "report"),
    },
    "cli": {
        *(
            "sigwrap",
            "bare",
            "hints",
            "amounts",
            "nearest",
            "status",
            "escape",
            "errors",
            "events",
            "outcomes",
            "tuples",
        ),
        *("calls", "start", "linux", "policy", "agent", "store", "mediate", "protocols"),
        *("platform", "run", "stub", "front", "forward", "report", "doctor", "hooks"),
        "watch",
    },
    "__main__": {"hints", "bare", "early", "quick_import", "isolation", "status", "errors", "cli"},
}

SLOW_TO_IMPORT = {"typer", "yaml", "re2", "sqlite_utils", "rich", "asyncio"}
ON_EVERY_START = ("linux", "store", "start", "mediate", "run", "front", "forward", "protocols")


def test_the_table_itself_points_downward() -> None:
    below: set[str] = set()
    for part, imported in MAY_IMPORT.items():
        assert imported <= below, f"{part} may import {sorted(imported - below)}, which is above it"
        below.add(part)


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_a_part_imports_only_what_lies_below(part: str) -> None:
    """Imports inside functions count: they are there for the start-up time, not to go upward."""
    for module in _modules(part):
        for line, imported in _imports(_parse(module)):
            package, *inside = imported.split(".")
            if package != "sigwrap":
                continue
            other = inside[0] if inside else "sigwrap"
            where = f"{module.relative_to(ROOT)}:{line}: {part} imports {other}"
            assert other == part or other in MAY_IMPORT[part], where


def test_every_part_has_its_line() -> None:
    found = {path.stem for path in (ROOT / "sigwrap").glob("*.py")} - {"__init__"}
    found |= {path.parent.name for path in (ROOT / "sigwrap").glob("*/__init__.py")}
    assert found | {"sigwrap"} == set(MAY_IMPORT)


@pytest.mark.parametrize("part", ON_EVERY_START)
def test_a_part_of_every_start_imports_nothing_slow(part: str) -> None:
    for module in _modules(part):
        for line, imported in _imports(_parse(module), into_functions=False):
            where = f"{module.relative_to(ROOT)}:{line}: {imported}"
            assert imported.split(".")[0] not in SLOW_TO_IMPORT, where


def test_only_linux_uses_ctypes() -> None:
    for module in (ROOT / "sigwrap").rglob("*.py"):
        if "linux" not in module.parts:
            for line, imported in _imports(_parse(module)):
                assert imported != "ctypes", f"{module.relative_to(ROOT)}:{line}"


PURE = ("calls", "tuples", "events", "policy", "agent", "mediate", "hooks", "platform")
THE_WORLD = {
    *("os", "io", "time", "datetime", "random", "secrets", "socket", "select", "selectors"),
    *("fcntl", "ctypes", "pathlib", "shutil", "tempfile", "subprocess", "threading", "resource"),
}


@pytest.mark.parametrize("part", PURE)
def test_a_pure_part_knows_no_kernel_no_file_and_no_clock(part: str) -> None:
    for module in _modules(part):
        for line, imported in _imports(_parse(module)):
            where = f"{module.relative_to(ROOT)}:{line}: {imported}"
            assert imported.split(".")[0] not in THE_WORLD, where


def test_only_the_performer_answers_a_notification() -> None:
    """The handshake of the launch aside, which answers a call of its own making."""
    answers = {"resume", "fail", "succeed"}
    found = {
        str(module.relative_to(ROOT / "sigwrap"))
        for module in (ROOT / "sigwrap" / "run").rglob("*.py")
        for call in ast.walk(_parse(module))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in answers
        and "listener" in ast.unparse(call.func.value)
    }
    assert found == {"session/perform.py", "session/launch.py"}


def test_a_run_does_not_import_what_reads_the_command_line() -> None:
    look = (
        "import sys; import sigwrap.cli.main, sigwrap.cli.run, sigwrap.session.run;"
        "print([each for each in ('typer', 'rich', 'sqlite_utils', 'sigwrap.report', 'ssl',"
        " 'sigwrap.control.remote_switch', 'sigwrap.network.handler', 'typing', 'yaml', 'difflib',"
        " 'pkgutil')"
        " if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def _type_checking(tree: ast.Module) -> Iterator[ast.Module]:
    """Yield what is imported for type checkers alone."""
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield ast.Module(body=node.body, type_ignores=[])


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / "sigwrap").rglob("*.py")
    }
    imported: dict[str, set[str]] = {}
    for name, path in names.items():
        tree = _parse(path)
        found = {each for _, each in _imports(tree)}
        if name.startswith("sigwrap.run."):  # a part names the session's type, and doesn't load it
            found -= {each for block in _type_checking(tree) for _, each in _imports(block)}
        imported[name] = {each if each in names else each.rpartition(".")[0] for each in found} - {
            name
        }
    graphlib.TopologicalSorter(imported).prepare()  # CycleError names the modules


def _modules(part: str) -> list[Path]:
    if part == "sigwrap":
        return [ROOT / "sigwrap" / "__init__.py"]
    folder = ROOT / "sigwrap" / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def _parse(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"), str(module))


def _imports(node: ast.AST, *, into_functions: bool = True) -> Iterator[tuple[int, str]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import():
                yield from ((child.lineno, alias.name) for alias in child.names)
            case ast.ImportFrom():
                assert child.level == 0 and child.module, "no relative imports"
                if child.module == "sigwrap":
                    for alias in child.names:
                        yield child.lineno, f"sigwrap.{alias.name}"
                else:
                    yield child.lineno, child.module
            case ast.FunctionDef() if not into_functions:
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) if not into_functions:
                pass
            case _:
                yield from _imports(child, into_functions=into_functions)
