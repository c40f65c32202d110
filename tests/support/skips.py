"""A skipped test hides what it would have found. With --strict-skips, or $CI set, a run fails on
every skip that tests/allowed_skips.txt doesn't allow: there, a pattern of test ids and why."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ALLOWED = Path(__file__).parents[1] / "allowed_skips.txt"


@dataclass(frozen=True, slots=True)
class AllowedSkips:
    patterns: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, text: str) -> AllowedSkips:
        """A line is a pattern, two spaces or more, and a reason; `#` begins a comment."""
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        for line in lines:
            pattern, _, reason = line.partition("  ")
            if not pattern or not reason.strip():
                raise pytest.UsageError(f"{ALLOWED.name}: no pattern with a reason: {line!r}")
        return cls([line.partition("  ")[0] for line in lines])

    def has(self, test_id: str) -> bool:
        return any(_fits(test_id, pattern) for pattern in self.patterns)


def _fits(test_id: str, pattern: str) -> bool:
    """Only `*` is special: ids have brackets of their own."""
    return fnmatchcase(test_id, pattern.replace("[", "[[]"))


def pytest_addoption(parser: pytest.Parser) -> None:
    text = f"fail on a skip that {ALLOWED.name} doesn't allow; $CI switches it on as well"
    parser.addoption("--strict-skips", action="store_true", default=False, help=text)


def pytest_configure(config: pytest.Config) -> None:
    strict = config.getoption("strict_skips") or os.environ.get("CI")
    if strict and not hasattr(config, "workerinput"):  # of pytest-xdist: its reports come here
        config.pluginmanager.register(StrictSkips(AllowedSkips.read(ALLOWED.read_text())))


class StrictSkips:
    def __init__(self, allowed: AllowedSkips) -> None:
        self._allowed = allowed
        self._unexpected: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._note(report)

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._note(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._unexpected and session.exitstatus in (pytest.ExitCode.OK, 0):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._unexpected:
            terminalreporter.section("skipped, and not allowed to be", red=True)
            for line in self._unexpected:
                terminalreporter.line(line)
            terminalreporter.line(f"What may be skipped is in tests/{ALLOWED.name}.")

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not self._allowed.has(report.nodeid):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._unexpected.append(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}")
