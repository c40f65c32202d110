"""Which changes of a module would no test notice? `make mutants`, or:

    python tests/tools/mutants.py sigwrap/store sigwrap/policy/judge/match.py --count 50 --seed 7

Of all small changes of the named modules, a random sample is tried one by one: a comparison turned
(`<` to `<=`, `==` to `!=`, `in` to `not in`, `is` to `is not`), `and` and `or` swapped, a `not`
taken away, a return emptied (True and False: the other one). The same --seed and --count are the
same sample; `--count 0` is every change.

A change is tried in a copy of the checkout; this one is not touched. The tests that mirror the
module run first (policy/judge/match.py: test_match.py below tests/policy), then what else is in
that folder, or what `--tests` names. A test that fails has noticed, and so has a run that needs
more than --timeout seconds of processor time, or ten times that by the clock: a loaded machine is
slow. Each run is a fork of a process that has imported what the tests import, sigwrap excepted:
most of a short run is imports.

What survived is listed. Exit status 1: more than the fraction --at-most did; 2: the tests fail as
they are. A survivor that changes nothing a caller could see is no gap, so 0 is no goal.
"""

from __future__ import annotations

import argparse
import ast
import math
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import jsonschema  # noqa: F401  (the forks find it imported)
import pytest
import re2  # noqa: F401
import typer  # noqa: F401
import yaml  # noqa: F401

ROOT = Path(__file__).parents[2]
ROOMS = ("sigwrap/agent", "sigwrap/mediate", "sigwrap/policy", "sigwrap/report", "sigwrap/store")
NOT_COPIED = (".*", "__pycache__", "dist")
WAITED_FOR = 10  # times as long as a run may use the processor
MEMORY_BYTES = 4 << 30  # a loop that no longer ends may fill a list meanwhile

TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def main() -> int:
    options = _options()
    mutants = [each for path in _modules(options.modules) for each in _mutants(path)]
    if options.count and options.count < len(mutants):
        chosen = random.Random(options.seed).sample(range(len(mutants)), options.count)
        mutants = [mutants[index] for index in sorted(chosen)]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder) / "checkout", options.timeout)
        try:
            survivors = _try_all(mutants, copy, options.tests)
        except TestsFail as error:
            _say(str(error))
            return 2
    return 1 if len(survivors) > options.at_most * len(mutants) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Which changes would no test notice?")
    parser.add_argument("modules", nargs="*", default=ROOMS, help="modules, or folders of them")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="for the tests that mirror them")
    parser.add_argument("--count", type=int, default=100, help="how many; 0: all (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="which sample (default 0)")
    parser.add_argument("--at-most", type=float, default=0.05, metavar="FRACTION")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS")
    return parser.parse_args()


def _try_all(mutants: Sequence[Mutant], copy: Copy, tests: Sequence[str] | None) -> list[Mutant]:
    survivors: list[Mutant] = []
    tried: Counter[Path] = Counter()
    for mutant in mutants:
        plan = copy.plan(mutant.path, tests)
        copy.check_unchanged(plan)
        if copy.survives(mutant, plan):
            survivors.append(mutant)
            _say(f"{mutant}\n")
        tried[mutant.path] += 1
    survived = Counter(each.path for each in survivors)
    for path, count in tried.items():
        _say(f"{path}: {survived[path]} of {count} survived")
    fraction = len(survivors) / len(mutants) if mutants else 0
    _say(f"{len(survivors)} of {len(mutants)} survived: {fraction:.1%}")
    if copy.took_too_long:
        _say(f"{copy.took_too_long} of the others were noticed only by the time they took")
    return survivors


# What is changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One attribute of one node of a module gets another value."""

    path: Path
    tree: ast.Module
    node: Any
    attribute: str
    value: Any

    def __str__(self) -> str:
        before = ast.unparse(self.node)
        return f"{self.path}:{self.node.lineno}\n    {before}\n    {self._changed(self.node)}"

    def source(self) -> str:
        return self._changed(self.tree)

    def _changed(self, shown: ast.AST) -> str:
        before = getattr(self.node, self.attribute)
        setattr(self.node, self.attribute, self.value)
        try:
            return ast.unparse(shown)
        finally:
            setattr(self.node, self.attribute, before)


def _modules(names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        path = ROOT / name
        found = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        yield from (each.relative_to(ROOT) for each in found)


def _mutants(path: Path) -> list[Mutant]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return [
        Mutant(path=path, tree=tree, node=node, attribute=attribute, value=value)
        for node in ast.walk(tree)
        for attribute, value in _changes(node)
    ]


def _changes(node: ast.AST) -> Iterator[tuple[str, Any]]:
    match node:
        case ast.Compare(left=ast.Name(id="__name__")):
            pass
        case ast.Compare(ops=ops):
            for index, op in enumerate(ops):
                yield "ops", [*ops[:index], TURNED[type(op)](), *ops[index + 1 :]]
        case ast.BoolOp(op=ast.And()):
            yield "op", ast.Or()
        case ast.BoolOp():
            yield "op", ast.And()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "operand", ast.UnaryOp(op=ast.Not(), operand=operand)
        case ast.Return(value=ast.Constant(value=bool() as answer)):
            yield "value", ast.Constant(value=not answer)
        case ast.Return(value=ast.Constant(value=None) | None):
            pass
        case ast.Return():
            yield "value", ast.Constant(value=None)


# Whether it is noticed


class TestsFail(Exception):
    """Without any change; the message is what they printed."""


# What pytest is asked to run, one after the other.
Plan = tuple[tuple[str, ...], ...]


class Copy:
    """Of the checkout, with at most one module changed at a time."""

    def __init__(self, root: Path, timeout_s: float) -> None:
        self._root = root
        self._timeout_s = timeout_s
        self._output = root.parent / "output"
        self._passed: set[tuple[str, ...]] = set()
        self._tried = 0
        self.took_too_long = 0
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
        os.chdir(root)
        # Before an installed sigwrap, in the forks and in what they start.
        sys.path.insert(0, str(root))
        os.environ["PYTHONPATH"] = str(root)
        # The first that fails is enough, so it need not be made small; and the same each time.
        hypothesis.settings.register_profile(
            "mutants",
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )

    def plan(self, module: Path, tests: Sequence[str] | None) -> Plan:
        folders = tests or [f"tests/{module.parts[1]}"]
        mirrors = tuple(
            str(path.relative_to(self._root))
            for folder in folders
            for path in sorted((self._root / folder).rglob(f"test_{module.stem}.py"))
        )
        others = (*folders, *(f"--ignore={path}" for path in mirrors))
        return (mirrors, others) if mirrors else (others,)

    def check_unchanged(self, plan: Plan) -> None:
        """Once for each."""
        for arguments in plan:
            if arguments not in self._passed and not self._passes(arguments):
                too_long = "\nThey take longer than --timeout." if self.took_too_long else ""
                raise TestsFail(self._output.read_text(errors="replace") + too_long)
            self._passed.add(arguments)

    def survives(self, mutant: Mutant, plan: Plan) -> bool:
        path = self._root / mutant.path
        original, stat = path.read_bytes(), path.stat()
        path.write_text(mutant.source(), encoding="utf-8")
        # Bytecode is told from stale by time and size, and two changes may have one size.
        self._tried += 1
        os.utime(path, (stat.st_atime, stat.st_mtime + self._tried))
        try:
            return all(map(self._passes, plan))
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def _passes(self, arguments: tuple[str, ...]) -> bool:
        pid = os.fork()
        if pid == 0:
            self._run_pytest(arguments)
        status = _waited_for(pid, WAITED_FOR * self._timeout_s)
        if status in (None, -signal.SIGXCPU):
            self.took_too_long += 1
            return False
        if status < 0:
            return False
        match pytest.ExitCode(status):
            case pytest.ExitCode.OK | pytest.ExitCode.NO_TESTS_COLLECTED:
                return True
            case pytest.ExitCode.TESTS_FAILED | pytest.ExitCode.INTERRUPTED:
                return False
            case _:
                raise TestsFail(self._output.read_text(errors="replace"))

    def _run_pytest(self, arguments: tuple[str, ...]) -> None:
        status = int(pytest.ExitCode.INTERNAL_ERROR)
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            limit_s = math.ceil(self._timeout_s)
            resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.RLIM_INFINITY))
            output_fd = os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output_fd, 1)
            os.dup2(output_fd, 2)
            basetemp = f"--basetemp={self._root.parent / 'tests'}"
            # Chromium doesn't start with so little memory, and is in a later tier.
            plugins = ("-p", "no:cacheprovider", "--hypothesis-profile=mutants", "--tier=quick")
            imported = "-Wignore::pytest.PytestAssertRewriteWarning"
            status = int(pytest.main(["-x", "-q", basetemp, imported, *plugins, *arguments]))
        finally:
            sys.stdout.flush()
            os._exit(status)


def _waited_for(pid: int, timeout_s: float) -> int | None:
    """The exit status of a leader of its own group, of which then nobody is left; None: it did not
    end."""
    pidfd = os.pidfd_open(pid)
    try:
        ended = bool(select.select([pidfd], [], [], timeout_s)[0])
    finally:
        os.close(pidfd)
    # Its zombie keeps the number: what else is in the group goes with it.
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)  # it had no time to make a group
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) if ended else None


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
