"""Agents by their names, as real processes: programs that stand in for them."""

from __future__ import annotations

import pytest

from tests.presets.test_presets import CLAUDE
from tests.support.harness import Sigwrap
from tests.support.programs import script
from tests.support.waiting import reader

pytestmark = pytest.mark.tier("ci")

ECHO = '#!/bin/sh\necho "$0 $* ${CLAUDE_CODE_DISABLE_AGENT_VIEW-unset}"\n'


@pytest.fixture
def subject(as_user: Sigwrap) -> Sigwrap:
    as_user.env["PATH"] = f"{as_user.folder}:{as_user.env['PATH']}"
    return as_user


@pytest.mark.promise("agents by name")
def test_a_preset_adds_words_and_variables(subject: Sigwrap) -> None:
    script(subject.folder, "codex", ECHO)
    script(subject.folder, "claude", ECHO)
    folder = subject.folder
    done = subject.run("codex", "exec", "a b", "--help")
    assert done.stdout.decode() == (
        f'{folder}/codex --no-daemon -c sandbox_mode="danger-full-access" exec a b --help unset\n'
    )
    (started,) = subject.sealed_events("session_started")
    assert (started.payload["preset"], started.payload["policy"]) == ("codex", "agent-default")
    done = subject.run("-p", "agent-observe", "claude", "--version")
    assert done.stdout.decode() == f"{folder}/claude --version 1\n"
    (started,) = subject.sealed_events("session_started")
    assert (started.payload["preset"], started.payload["policy"]) == ("claude", "agent-observe")
    done = subject.run("claude", env={"CLAUDE_CODE_DISABLE_AGENT_VIEW": "mine"})
    assert done.stdout.decode() == f"{folder}/claude  mine\n"
    done = subject.run("--", "claude")
    assert done.stdout.decode() == f"{folder}/claude  unset\n"
    assert "preset" not in subject.sealed_events("session_started")[0].payload


def test_an_agent_that_is_not_there_is_said(subject: Sigwrap) -> None:
    subject.env["PATH"] = "/usr/bin:/bin"
    done = subject.run("gemini", "-p", "x")
    assert (done.returncode, done.stdout) == (127, b"")
    assert done.stderr.decode() == (
        "sigwrap: gemini: command not found on PATH "
        "(to install it: npm install -g @google/gemini-cli)\n"
    )
    done = subject.run("gemni", "-p", "x")
    assert done.returncode == 125
    assert b'Did you mean "gemini"? ' in done.stderr


def test_where_a_sandbox_of_mounts_can_not_be_made_a_line_says_so(subject: Sigwrap) -> None:
    script(subject.folder, "codex", ECHO)
    script(subject.folder, "claude", ECHO)
    said = (
        "sigwrap: the file_rules of agent-default forbid mounts, so codex cannot make its "
        "own sandbox, and commands in it fail (start without it: sigwrap codex)\n"
    )
    is_off = b"sigwrap: codex's own sandbox is off: the file rules of agent-default protect files\n"
    off = ("--sandbox=danger-full-access", "--yolo", "sandbox_mode='danger-full-access'")
    assert subject.run("codex", "exec").stderr == is_off
    assert subject.run("codex", "-s", "read-only", "exec").stderr.decode() == said
    assert subject.run("--", "codex").stderr.decode() == said
    assert subject.run("-p", "ci", "codex", "exec").stderr == b""
    assert subject.run("codex", "exec", off[0]).stderr == b""
    assert subject.run("codex", off[1]).stderr == b""
    assert subject.run("--", "codex", "-c", off[2]).stderr == b""
    assert subject.run("claude").stderr == b""


def test_a_daemon_outside_is_warned_of(subject: Sigwrap) -> None:
    script(
        subject.folder, "codex", '#!/bin/sh\n[ "$1" != app-server ] || { echo ready; read x; }\n'
    )
    line = [*subject.as_user(), str(subject.folder / "codex"), "app-server"]
    daemon = subject.start_line(line)
    assert reader(daemon.stdout).line() == b"ready"
    said = f"codex app-server (PID {daemon.pid}) runs outside this session"
    stop = "stop it: codex app-server daemon stop"
    observed = ("-p", "agent-observe")
    done = subject.run(*observed, "--", "codex")
    assert done.stderr.decode() == (
        f"sigwrap: {said}; sigwrap does not judge work handed to it ({stop}; or run sigwrap "
        "codex, which does not use it)\n"
    )
    done = subject.run(*observed, "codex")
    assert done.stderr.decode() == (
        f"sigwrap: {said}: sigwrap keeps codex from using it, but does not judge other work "
        f"handed to it ({stop})\n"
    )
    (started,) = subject.sealed_events("session_started")
    assert started.payload["daemons_outside"] == [f"{daemon.pid} codex app-server"]
    report = subject.run("report").stdout.decode().splitlines()
    assert f"outside  {daemon.pid} codex app-server" in report
    daemon.say(b"\n")
    daemon.wait()
    assert subject.run(*observed, "codex").stderr == b""


def test_a_tool_call_is_shown_without_its_wrapper_and_judged_with_it(subject: Sigwrap) -> None:
    wrapped = CLAUDE.replace("'printf '\"'\"'a\\n'\"'\"' | cat'", "'git push --force'")
    wrapped = wrapped.replace("/tmp/claude-a125-cwd", str(subject.folder / "cwd"))
    assert "eval 'git push --force' <" in wrapped
    (subject.folder / "tool-call").write_text(wrapped)
    script(subject.folder, "claude", '#!/bin/sh\nbash -c "$(cat tool-call)"\n')
    done = subject.run("claude")
    assert b"denied: git push --force: " in done.stderr
    (shell,) = (
        each.payload["argv"]
        for each in subject.sealed_events("exec_allowed", "exec_audited")
        if each.payload["argv"][:2] == ["bash", "-c"]
    )
    assert shell == ["bash", "-c", wrapped]
    for form in ("text", "md", "json", "html"):
        shown = subject.run("report", "--tree", "--format", form).stdout.decode()
        assert "git push --force" in shown and "shell-snapshots" not in shown, form
        assert form == "json" or "bash -c 'git push --force'" in shown.replace("&#39;", "'")
    short = subject.run("report").stdout.decode()
    assert "  denied    git push --force\n" in short and "shell-snapshots" not in short
