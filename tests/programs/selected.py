"""Which entries, users, forms and policies are meant."""

from __future__ import annotations

import importlib
import pkgutil
from fnmatch import fnmatchcase
from pathlib import Path

from tests.programs import catalog
from tests.programs.place import ROOT
from tests.programs.program import Program
from tests.support.harness import UNDER_TEST

FORMS = {"package": ROOT / ".venv" / "bin" / "sigwrap", "binary": ROOT / "dist" / "sigwrap"}


def programs(patterns: str = "*") -> list[Program]:
    wanted = patterns.replace(",", " ").split()
    return [
        program
        for program in _all()
        if any(fnmatchcase(program.name, pattern) for pattern in wanted)
    ]


def _all() -> list[Program]:
    found = []
    for module in sorted(pkgutil.iter_modules(catalog.__path__), key=lambda module: module.name):
        entries = importlib.import_module(f"{catalog.__name__}.{module.name}").PROGRAMS
        found += entries
    return found


def wrapper(form: str, policy: str) -> list[str]:
    return [str(_executable(form)), "--policy", policy, "--no-report", "--"]


def forwarder(form: str) -> Path:
    return _executable(form).with_name("sigwrap-forward")


def _executable(form: str) -> Path:
    if form == "under test":
        return Path(UNDER_TEST)
    path = FORMS.get(form)
    if path is None:
        raise SystemExit(f"{form}: no form of sigwrap; there are {', '.join(FORMS)}")
    if not path.exists():
        raise SystemExit(f"{path} is missing: make {'binary' if form == 'binary' else 'setup'}")
    return path
