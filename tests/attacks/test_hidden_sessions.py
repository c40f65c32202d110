"""Who is inside a session starts another, which is to be taken for the latest one."""

from __future__ import annotations

import pytest

from sigwrap.log.catalog import open_session
from tests.support.harness import UNDER_TEST, Sigwrap


@pytest.mark.parametrize("hidden", ["-u SIGWRAP_SESSION", "SIGWRAP_SESSION=20990101-000000-abcdef"])
def test_by_another_name_for_the_session_it_joins(as_user: Sigwrap, hidden: str) -> None:
    inner = map(str, as_user.line("--nested", "join", "--name", "build", "--", "true"))
    done = as_user.run("--name", "build", "--", "env", *hidden.split(), *inner)
    assert done.returncode == 0, done.stderr
    for selector in ("", "build"):
        report = as_user.native(UNDER_TEST, "report", *filter(None, [selector])).stdout.decode()
        latest = open_session(str(as_user.store), selector)
        assert f"session  {latest.id}" in report
        assert any(event.type == "exec_allowed" for event in latest.events())


def test_by_going_without_interception(as_user: Sigwrap) -> None:
    inner = map(str, as_user.line("--best-effort", "--", "true"))
    done = as_user.run("--", "env", "-u", "SIGWRAP_SESSION", *inner)
    assert done.returncode == 0, done.stderr
    latest = open_session(str(as_user.store), "")
    assert any(event.type == "exec_allowed" for event in latest.events())
