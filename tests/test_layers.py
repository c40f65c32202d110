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
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "sigwrap").rglob("*.py"))
}

# Pure modules know no kernel, no file and no clock. They import each other and what is pure below.
PURE = {
    *("text", "events", "calls", "policy", "agent", "hooks"),
    *("exec.facts", "exec.judge"),
    *("signal.facts", "signal.judge", "network.judge", "files.judge"),
    "approve.requests",
    *("session.effects", "session.lineage", "session.run_end", "front.interrupts"),
}
BELOW_PURE = {"bare", "errors", "machine"}
# The rest, from the bottom up; a part may import pure modules, those that its line names, and none
# below that line. The session has two parts: what the other folders use, and what uses them.
USES_THE_FOLDERS = {
    *("run", "session", "mediation", "sandbox", "launch", "ending", "front_link", "policy_url"),
}
MAY_IMPORT: dict[str, set[str]] = {
    "sigwrap": set(),  # the version
    "early": set(),
    "imports": set(),
    "kernel": set(),
    "https": {"sigwrap", "kernel"},
    "log": {"kernel"},
    "start": {"sigwrap", "imports", "kernel"},
    "session": {"kernel", "log"},
    "front": {"kernel", "start"},
    "signal": {"kernel", "session"},
    "files": {"kernel", "session"},
    "record": {"sigwrap", "kernel", "start", "session"},
    "exec": {"kernel", "log", "start", "session", "record"},
    "network": {"kernel", "session"},
    "approve": {"kernel", "log", "session", "front"},
    "control": {"https", "kernel", "log", "session", "approve"},
    "join": {"kernel", "start", "session", "front", "approve"},
    "session.run": {
        *("sigwrap", "kernel", "https", "log", "start", "session", "front", "signal", "files"),
        *("record", "exec", "network", "approve", "control", "join"),
    },
    "report": {"log"},
    "fleet": {"sigwrap", "kernel", "https", "log", "report"},
    "doctor": {
        *("kernel", "log", "start", "session", "front", "exec", "approve"),
        *("control", "session.run", "report"),
    },
    "watch": {"kernel", "log", "start", "session", "front", "approve", "control", "report"},
    "cli": {
        *("sigwrap", "kernel", "log", "start", "session", "front", "exec", "record", "approve"),
        *("control", "join", "session.run", "report", "fleet", "doctor", "watch"),
    },
    "__main__": {"early", "imports", "cli"},
}

SLOW_TO_IMPORT = {"typer", "yaml", "re2", "sqlite_utils", "rich", "asyncio"}
ON_EVERY_START = (
    *("kernel", "log", "start", "session", "exec", "signal", "files", "record", "approve"),
    *("control", "front"),
)


def test_the_table_itself_points_downward() -> None:
    below: set[str] = set()
    for part, imported in MAY_IMPORT.items():
        assert imported <= below, f"{part} may import {sorted(imported - below)}, which is above it"
        below.add(part)


def _part_of(module: str) -> str:
    folder, _, name = module.removeprefix("sigwrap").removeprefix(".").partition(".")
    if module == "sigwrap.exec":  # the extension, or the folder's docstring
        name = "compiled"
    if folder in PURE or f"{folder}.{name}" in PURE:
        return "pure"
    if f"{folder}.{name}" in MAY_IMPORT:
        return f"{folder}.{name}"
    if folder == "session" and name in USES_THE_FOLDERS:
        return "session.run"
    return folder or "sigwrap"


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_lies_below(module: str) -> None:
    """Imports inside functions count: they are there for the start-up time, not to go upward."""
    part = _part_of(module)
    others = BELOW_PURE if part in BELOW_PURE else BELOW_PURE | {"pure"}
    allowed = others | MAY_IMPORT.get(part, set()) | {part}
    for line, imported in _run_time_imports(module):
        if imported.split(".")[0] == "sigwrap":
            other = _part_of(imported)
            assert other in allowed, f"{module}:{line}: {part} imports {imported}"


def test_every_part_has_its_line() -> None:
    parts = {_part_of(module) for module in MODULES}
    assert parts == {"pure", *BELOW_PURE, *MAY_IMPORT}
    assert {name for name in PURE if f"sigwrap.{name}" not in MODULES} == set()


@pytest.mark.parametrize("folder", ON_EVERY_START)
def test_a_folder_of_every_start_imports_nothing_slow(folder: str) -> None:
    for module, path in MODULES.items():
        if module.split(".")[1:2] == [folder]:
            for line, imported in _imports(_parse(path), into_functions=False):
                where = f"{module}:{line}: {imported}"
                assert imported.split(".")[0] not in SLOW_TO_IMPORT, where


def test_only_what_calls_the_kernel_uses_ctypes() -> None:
    others = {"sigwrap.network.call", "sigwrap.exec.content", "sigwrap.start.own_code"}
    for module, path in MODULES.items():
        if not module.startswith("sigwrap.kernel.") and module not in others:
            for line, imported in _imports(_parse(path)):
                assert imported != "ctypes", f"{module}:{line}"


THE_WORLD = {
    *("os", "io", "time", "datetime", "random", "secrets", "socket", "select", "selectors"),
    *("fcntl", "ctypes", "pathlib", "shutil", "tempfile", "subprocess", "threading", "resource"),
}


@pytest.mark.parametrize("module", [each for each in MODULES if _part_of(each) == "pure"])
def test_a_pure_module_knows_no_kernel_no_file_and_no_clock(module: str) -> None:
    for line, imported in _imports(_parse(MODULES[module])):
        assert imported.split(".")[0] not in THE_WORLD, f"{module}:{line}: {imported}"


def test_only_the_performer_answers_a_notification() -> None:
    """The handshake of the launch aside, which answers a call of its own making."""
    answers = {"resume", "fail", "succeed"}
    found = {
        str(module.relative_to(ROOT / "sigwrap"))
        for module in MODULES.values()
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
        " 'sigwrap.control.remote_switch', 'sigwrap.session.policy_url', 'sigwrap.policy.signed',"
        " 'sigwrap.https',"
        " 'sigwrap.network.handler', 'typing', 'yaml', 'difflib',"
        " 'sigwrap.fleet', 'sigwrap.log.trace_context',"
        " 'pkgutil')"
        " if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_no_modules_import_each_other_in_a_circle() -> None:
    imported = {
        name: {each for _, each in _run_time_imports(name) if each in MODULES} - {name}
        for name in MODULES
    }
    graphlib.TopologicalSorter(imported).prepare()  # CycleError names the modules


def _run_time_imports(module: str) -> Iterator[tuple[int, str]]:
    """Leave out what only type checkers import: a part names the session's type, for example."""
    tree = _parse(MODULES[module])
    skipped = {
        each for block in _type_checking(tree) for each in _imports(block, into_functions=False)
    }
    return (each for each in _imports(tree) if each not in skipped)


def _type_checking(tree: ast.Module) -> Iterator[ast.Module]:
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield ast.Module(body=node.body, type_ignores=[])


def _parse(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"), str(module))


def _imports(node: ast.AST, *, into_functions: bool = True) -> Iterator[tuple[int, str]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import():
                yield from ((child.lineno, alias.name) for alias in child.names)
            case ast.ImportFrom():
                assert child.level == 0 and child.module, "no relative imports"
                for alias in child.names:
                    whole = f"{child.module}.{alias.name}"
                    is_module = whole in MODULES or child.module == "sigwrap"
                    yield child.lineno, whole if is_module else child.module
            case ast.FunctionDef() if not into_functions:
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) if not into_functions:
                pass
            case _:
                yield from _imports(child, into_functions=into_functions)
