"""`sigwrap claude …`: which lines are an agent's, and what they run."""

from __future__ import annotations

import pytest

from sigwrap.cli.run_options import read_run_line
from sigwrap.errors import UsageError
from sigwrap.session.settings import ApprovalMode

NO_SANDBOX = '-c sandbox_mode="danger-full-access"'


def test_an_agent_by_its_name() -> None:
    for line, command, policy in [
        ("claude", "claude", "agent-default"),
        ("claude -p x -- y", "claude -p x -- y", "agent-default"),
        ("codex exec x", f"codex --no-daemon {NO_SANDBOX} exec x", "agent-default"),
        ("codex --no-daemon", f"codex {NO_SANDBOX} --no-daemon", "agent-default"),
        ("codex -sread-only x", "codex --no-daemon -sread-only x", "agent-default"),
        ("codex --yolo", "codex --no-daemon --yolo", "agent-default"),
        ("-p agent-strict codex", "codex --no-daemon", "agent-strict"),
        ("--policy=ci --durable gemini -y", "gemini -y", "ci"),
    ]:
        words = line.split()
        found = read_run_line(words)
        assert found is not None and found.preset in words
        assert (" ".join(found.command), found.policy) == (command, policy), line


def test_options_of_the_run_stand_before_the_name() -> None:
    found = read_run_line(["--approvals", "deny", "claude", "--approvals", "x"])
    assert found is not None
    assert found.approvals is ApprovalMode.DENY
    assert found.command == ("claude", "--approvals", "x")


def test_other_lines_are_not_an_agents() -> None:
    for line in ["", "report", "report claude", "--utc claude"]:
        assert read_run_line(line.split()) is None, line
    found = read_run_line(["run", "claude"])
    assert found is not None
    assert (found.command, found.preset) == (("claude",), "")
    for line in ["-p claude", "-c claude", "-p x ls"]:
        with pytest.raises(UsageError):
            read_run_line(line.split())


def test_a_line_with_two_dashes_runs_a_program_without_its_preset() -> None:
    found = read_run_line(["--", "codex", "exec"])
    assert found is not None
    assert (found.command, found.preset) == (("codex", "exec"), "")


def test_an_option_without_its_value_is_said() -> None:
    with pytest.raises(UsageError, match="--policy needs a value"):
        read_run_line(["--policy"])


def test_it_joins_no_session_of_another() -> None:
    with pytest.raises(
        UsageError, match="--join-name can't be combined with the preset claude"
    ) as raised:
        read_run_line(["--join-name", "x", "claude", "-p", "hi"])
    assert raised.value.hint == "to run without the preset: sigwrap --join-name x -- claude -p hi"
