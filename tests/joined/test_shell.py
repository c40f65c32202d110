"""sigwrap-shell and sigwrap -c take what a shell takes, and run it in a session."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.joined.addresses import sessions
from tests.support.harness import REFUSED, UNDER_TEST, Sigwrap

OPTIONS = {"SIGWRAP_OPTIONS": "--join-name agent --policy agent-observe"}


@pytest.fixture
def shell(subject: Sigwrap) -> str:
    """`sigwrap-shell`, as one may be told to use it: by its path."""
    beside = Path(UNDER_TEST).with_name("sigwrap-shell")
    if not beside.exists():
        beside = subject.folder / "sigwrap-shell"
        beside.symlink_to(UNDER_TEST)
    return str(beside)


def _run(subject: Sigwrap, *line: str, **env: str) -> tuple[int, str, str]:
    done = subject.native(*line, env=env)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.promise("shell")
def test_it_takes_what_bash_takes(as_user: Sigwrap, shell: str) -> None:
    script = as_user.folder / "script"
    script.write_text("echo from a file $1\n")
    assert _run(as_user, shell, "-c", "echo $0 $1; exit 3", "zero", "one") == (3, "zero one\n", "")
    assert _run(as_user, shell, str(script), "x") == (0, "from a file x\n", "")
    assert _run(as_user, shell, "-e", "-c", "false; echo no")[0] == 1
    done = as_user.native(shell, input=b"echo from standard input\n")
    assert done.stdout == b"from standard input\n"
    assert as_user.sealed_events("session_started")[0].payload["policy"] == "agent-default"


def test_as_claude_codes_prefix_it_takes_a_line_and_answers_hooks(
    as_user: Sigwrap, shell: str
) -> None:
    """One session for each conversation; a hook is answered outside it."""
    env = {
        "CLAUDE_CODE_SHELL_PREFIX": shell,
        "CLAUDE_CODE_SESSION_ID": "c1",
        "SIGWRAP_OPTIONS": "--join-name 'claude-$CLAUDE_CODE_SESSION_ID' --policy agent-observe"
        " --join-idle 2",
    }
    assert _run(as_user, shell, "echo a b; exit 3", **env) == (3, "a b\n", "")
    assert _run(as_user, shell, "true", **env)[0] == 0
    (started,) = as_user.events("session_started")
    assert started.payload["name"] == "claude-c1"
    call = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": "/", "session_id": "c1"}
    for line, answer in (("git push --force", "deny"), ("npm install x", "")):
        text = json.dumps({**call, "tool_input": {"command": line}}).encode()
        hook = f"{UNDER_TEST} hook run claude-code || exit 2"
        done = as_user.native(shell, hook, env=env, input=text)
        assert (done.returncode, done.stderr) == (0, b"")
        said = json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else {}
        assert said.get("permissionDecision", "") == answer, line
    assert len(as_user.events("command_joined")) == 2


def test_inside_a_session_it_is_the_real_shell_at_once(as_user: Sigwrap, shell: str) -> None:
    line = f"{shell} -c 'ps -o comm= -p $$; echo $SHELL'"
    found = as_user.run("-c", line, env={"SHELL": shell})
    real = shutil.which("bash") or ""
    assert found.stdout.decode().split() == ["bash", real]
    assert found.stderr == b""
    assert sessions(as_user) == 1


def test_run_takes_a_line_of_shell_too(sigwrap: Sigwrap) -> None:
    for options in ((), ("-p", "agent-observe"), ("run",), ("run", "-p", "agent-observe")):
        done = sigwrap.run(*options, "-c", "echo $0 $1", "zero", "one")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"zero one\n", b"")
    assert b"-c needs a value" in sigwrap.run("run", "-c").stderr


def test_what_is_wrong_is_said(sigwrap: Sigwrap) -> None:
    for variable, value, said in (
        ("SIGWRAP_OPTIONS", "--no-such", "$SIGWRAP_OPTIONS: not options of sigwrap run: --no-such"),
        ("SIGWRAP_SHELL", "/x/sigwrap-shell", "$SIGWRAP_SHELL is sigwrap-shell"),
    ):
        found = sigwrap.run("-c", "true", env={variable: value})
        assert found.returncode == REFUSED
        assert said in found.stderr.decode()
    assert not sigwrap.has_sessions()


def test_an_agents_loop_is_one_session(as_user: Sigwrap, shell: str) -> None:
    """Three calls, as an agent makes them: a server that one starts serves the next."""
    env = {**OPTIONS, "SHELL": shell}
    port = as_user.folder / "port"
    serve = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        f"open({str(port)!r}, 'w').write(str(s.getsockname()[1]));"
        "c, _ = s.accept(); c.sendall(b'served'); c.close()"
    )
    started = f'python3 -c "{serve}" >/dev/null 2>&1 & until [ -s {port} ]; do :; done'
    assert _run(as_user, shell, "-c", started, **env) == (0, "", "")
    asks = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
    asked = _run(
        as_user, shell, "-c", f'python3 -c "{asks}; print(s.recv(9))" $(cat {port})', **env
    )
    assert asked == (0, "b'served'\n", "")
    assert _run(as_user, shell, "-lc", "exit 6", **env)[0] == 6
    assert sessions(as_user) == 1
    report = as_user.run("report", "agent").stdout.decode()
    assert "joined   3 commands" in report
