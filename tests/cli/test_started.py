"""Most tests run a command in a fork of the command server; here a real start prints the same."""

from __future__ import annotations

import re

import pytest

from tests.support.harness import Sigwrap

LINES = [
    "report",
    "report --json nosuch",
    "why",
    "verify",
    "replay --instant",
    "query --all",
    "export --format jsonl",
    "sessions --json",
    "policy explain rm -rf /",
    "policy check nosuch",
    "approvals",
    "killswitch status",
    "complete -- rep",
    "hook claude-code",
    "--version",
    "man",
]
# What changes from one second to the next, or by the reading itself.
_CHANGES = re.compile(rb'((, )?\d+ s (old|ago)|\d+K|"(age|bytes)\w*": [\d.]+)')


@pytest.mark.tier("ci")
def test_a_started_command_says_what_its_fork_says(sigwrap: Sigwrap) -> None:
    assert sigwrap.run("--", "true").returncode == 0
    for line in LINES:
        words, typed = line.split(), b"{}" if line.startswith("hook") else b""
        fork = sigwrap.run(*words, input=typed)
        started = sigwrap.run(*words, input=typed, forks=False)
        assert (fork.returncode, _CHANGES.sub(b"", fork.stdout), fork.stderr) == (
            started.returncode,
            _CHANGES.sub(b"", started.stdout),
            started.stderr,
        ), line
