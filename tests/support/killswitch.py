"""The kill switch, turned on and off as a user of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.support.harness import Running, Sigwrap
from tests.support.waiting import reader

PATIENT = (sys.executable, str(Path(__file__).with_name("patient.py")))


def switch(
    subject: Sigwrap, *words: str, store: Path | None = None, patiently: bool = False
) -> tuple[int, str]:
    """Its status, and all that it says. `patiently`: it ends no session by force."""
    env = {} if store is None else {"SIGWRAP_STORE": str(store)}
    line = ("killswitch", *words)
    done = subject.native(*PATIENT, *line, env=env) if patiently else subject.run(*line, env=env)
    return done.returncode, (done.stdout + done.stderr).decode()


def started(subject: Sigwrap, *words: str, **options: Any) -> Running:
    process = subject.start(*words, **options)
    assert reader(process.stdout).line() == b"ready"
    return process
