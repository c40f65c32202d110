"""A denial's message reaches the one who was denied, and nobody else's stream."""

from __future__ import annotations

from pathlib import Path

from tests.support.harness import PYTHON, Sigwrap

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


def test_a_denied_sender_is_told_why(sigwrap: Sigwrap, tmp_path: Path, programs: Path) -> None:
    policy = sigwrap.folder / "says-why.yaml"
    policy.write_text(POLICY)
    done = sigwrap.run("--policy", str(policy), "--", *PYTHON, str(programs / "refused.py"))
    assert (done.returncode, done.stdout) == (0, b"refused\n")
    assert done.stderr == b"pid 1 is left alone here\n"
