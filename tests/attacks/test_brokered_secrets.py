"""What holds a value of sigwrap's own environment takes nothing along that gives it away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.recording import TOKEN, prepared

IN_PLACE = """
  - {name: in-place, commands: [tool], decision: redirect,
     redirect_to: {command: %s/real-tool, env: {TOKEN: "%s"}}}
"""
LIMITS = "#!/bin/sh\necho ${#TOKEN}; grep core /proc/self/limits | tr -s ' '\n"
NO_CORE = f"{len(TOKEN)}\nMax core file size 1 1 bytes \n".encode()


SECRET, PUBLIC = "${SIGWRAP_HOST:THE_TOKEN}", "open"


def _in_place(subject: Sigwrap, value: str) -> tuple[str, ...]:
    return ("-p", policy(subject.folder, IN_PLACE % (subject.folder, value)), "--")


def _filtered(programs: Path, *words: str) -> tuple[str, ...]:
    return (*PYTHON, str(programs / "puts_a_filter.py"), *words)


@pytest.mark.parametrize("via", ["stub", "exec"])
def test_it_leaves_no_core_and_has_no_filter_of_the_callers(
    as_user: Sigwrap, programs: Path, via: str
) -> None:
    """No core even to a program that takes cores: 0 would be no limit for that."""
    line = prepared(as_user, LIMITS)
    if via == "exec":
        line = _in_place(as_user, SECRET)
    script = 'ulimit -c unlimited; ./tool; exec "$@"'
    puts = _filtered(programs, "sh", "-c", "./tool; echo $?")
    done = as_user.run(*line, "sh", "-c", script, "sh", *puts)
    assert done.stdout == NO_CORE + b"126\n"
    (event,) = as_user.sealed_events("exec_denied")
    assert "seccomp filter of its own" in event.payload["reason"]


def test_without_a_secret_limit_and_filter_are_the_callers(
    as_user: Sigwrap, programs: Path
) -> None:
    prepared(as_user, LIMITS)
    puts = _filtered(programs, "sh", "-c", "ulimit -c unlimited; ./tool")
    done = as_user.run(*_in_place(as_user, PUBLIC), *puts)
    assert done.stdout == b"4\nMax core file size unlimited unlimited bytes \n"
