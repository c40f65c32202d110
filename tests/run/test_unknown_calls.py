"""What the filter holdings over and no mediator knows fails, with an event."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.tier("ci")

PROGRAMS = Path(__file__).parent / "programs"


def test_an_unknown_call_and_an_unknown_use_of_a_known_one_are_refused(sigwrap: Sigwrap) -> None:
    line = [
        *(sys.executable, str(PROGRAMS / "filter_with_another_call.py")),
        *("--store", str(sigwrap.store), "--no-report", "-p", "agent-observe", "--"),
        *(sys.executable, str(PROGRAMS / "make_unknown_calls.py")),
    ]
    done = subprocess.run(
        line, env=sigwrap.env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.stdout == "personality EPERM\nfcntl EPERM\n", done.stderr
    unknown, misused = sigwrap.events("call_refused")
    assert unknown.payload["syscall_number"] == 135
    assert unknown.payload["arguments"][:2] == ["0xffffffff", "0x241"]
    assert unknown.payload["reason"] == "no mediator knows this call"
    assert misused.payload["syscall_number"] == 72
    assert misused.payload["reason"] == "no mediator knows this use of fcntl"
    assert done.returncode == 0
