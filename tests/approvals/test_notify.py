"""`--notify` reports the approval requests of a run."""

from __future__ import annotations

import pytest

from tests.support.harness import UNDER_TEST, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import await_that

ASK = "\n  - {name: ask, commands: [uname], decision: approve, message: why}\n"


@pytest.mark.promise("approvals from elsewhere")
@pytest.mark.parametrize("length", [0, 5_000])  # of names that no message has room for
def test_the_command_gets_the_request_and_no_removed_variable(
    as_user: Sigwrap, length: int
) -> None:
    path = policy(as_user.folder, ASK, 'env_policy: {remove: ["MY_*"]}')
    told = as_user.folder / "told"
    line = ("--approvals", "control", "--notify", f"pwd > {told}; env >> {told}; echo . >> {told}")
    env = {"MY_TOKEN": "secret", f"MY_{'X' * length}": "1"}
    run = as_user.start("-p", path, *line, "--", "uname", "-s", env=env)
    await_that(lambda: told.exists() and told.read_text().endswith("\n.\n"))
    (request,) = as_user.events("approval_requested")
    approval_id = request.payload["approval_id"]
    lines = told.read_text().splitlines()
    assert lines[0] == "/"
    assert f"SIGWRAP_APPROVAL_ID={approval_id}" in lines
    assert "SIGWRAP_RULE=ask" in lines
    (question,) = (each for each in lines if each.startswith("SIGWRAP_QUESTION="))
    assert question.endswith(" wants to run: uname -s")
    assert not any(each.startswith("MY_TOKEN=") for each in lines)
    assert as_user.native(UNDER_TEST, "approve", approval_id).returncode == 0
    assert run.communicate()[0] == b"Linux\n"
    assert run.returncode == 0


def test_a_request_that_it_fails_to_report_expires_early(as_user: Sigwrap) -> None:
    path = policy(as_user.folder, ASK)
    line = ("--notify", "exit 3", "--unattended-timeout", "1")
    done = as_user.run("-p", path, *line, "--", "uname", "-s")
    assert done.returncode == 126
    assert b"the --notify command failed with status 3" in done.stderr
    (expired,) = as_user.sealed_events("approval_expired")
    assert "no approver was watching" in expired.payload["answer"]
