"""Write how long each test took, for the end of .ci/run: `--times FILE` appends to it."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", metavar="FILE", help="append a line for each test: seconds, id")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--times")
    if path and not hasattr(config, "workerinput"):  # of pytest-xdist: its reports come here
        config.pluginmanager.register(_Times(Path(path)))


class _Times:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._taken_s: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before_s = self._taken_s.get(report.nodeid, 0.0)
        self._taken_s[report.nodeid] = before_s + report.duration

    def pytest_sessionfinish(self) -> None:
        with self._path.open("a") as file:
            for name, taken_s in self._taken_s.items():
                file.write(f"{taken_s:6.1f} s  {name}\n")
