"""A denial's message reaches the one who was denied, and nobody else's stream."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.harness import Sigwrap

POLICY = """
version: 1
name: says-why
defaults: {command: allow, signal: allow}
signal_rules:
  - name: not-that-one
    signals: [SIGTERM]
    target: system
    decision: deny
    message: pid 1 is left alone here
"""
SENDER = """
import os, signal
try:
    os.kill(1, signal.SIGTERM)
except PermissionError:
    print("refused")
"""


def test_a_denied_sender_is_told_why(sigwrap: Sigwrap, tmp_path: Path) -> None:
    policy = sigwrap.folder / "says-why.yaml"
    policy.write_text(POLICY)
    done = sigwrap.run("--policy", str(policy), "--", sys.executable, "-S", "-c", SENDER)
    assert (done.returncode, done.stdout) == (0, b"refused\n")
    assert done.stderr == b"pid 1 is left alone here\n"
