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


@pytest.mark.parametrize("via", ["stub", "exec"])
def test_it_leaves_no_core(as_user: Sigwrap, via: str) -> None:
    """Not even to a program that takes cores: 0 would be no limit for that."""
    line = prepared(as_user, LIMITS)
    if via == "exec":
        value = "${SIGWRAP_HOST:THE_TOKEN}"
        line = ("-p", policy(as_user.folder, IN_PLACE % (as_user.folder, value)), "--")
    done = as_user.run(*line, "sh", "-c", "ulimit -c unlimited; ./tool")
    assert done.stdout == NO_CORE


def test_without_a_secret_the_limit_is_the_callers(as_user: Sigwrap) -> None:
    prepared(as_user, LIMITS)
    line = ("-p", policy(as_user.folder, IN_PLACE % (as_user.folder, "open")), "--")
    done = as_user.run(*line, "sh", "-c", "ulimit -c unlimited; ./tool")
    assert done.stdout == b"4\nMax core file size unlimited unlimited bytes \n"


@pytest.mark.parametrize("via", ["stub", "exec"])
def test_a_filter_of_the_callers_own(as_user: Sigwrap, programs: Path, via: str) -> None:
    line = prepared(as_user, LIMITS)
    if via == "exec":
        value = "${SIGWRAP_HOST:THE_TOKEN}"
        line = ("-p", policy(as_user.folder, IN_PLACE % (as_user.folder, value)), "--")
    puts = (*PYTHON, str(programs / "puts_a_filter.py"), "sh", "-c", "./tool; echo $?")
    done = as_user.run(*line, *puts)
    assert done.stdout == b"126\n"
    (event,) = as_user.sealed_events("exec_denied")
    assert "seccomp filter of its own" in event.payload["reason"]


def test_a_filter_does_not_matter_where_there_is_no_secret(
    as_user: Sigwrap, programs: Path
) -> None:
    prepared(as_user, LIMITS)
    line = ("-p", policy(as_user.folder, IN_PLACE % (as_user.folder, "open")), "--")
    puts = (*PYTHON, str(programs / "puts_a_filter.py"), "./tool")
    assert as_user.run(*line, *puts).stdout.startswith(b"4\n")
