"""sigwrap-shell and sigwrap -c: what a shell is to whoever calls one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.joined.addresses import sessions
from tests.joined.jobs import work_a_job
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


def test_inside_a_session_it_is_the_real_shell_at_once(as_user: Sigwrap, shell: str) -> None:
    line = f"{shell} -c 'ps -o comm= -p $$; echo $SHELL'"
    found = as_user.run("-c", line, env={"SHELL": shell})
    real = shutil.which("bash") or ""
    assert found.stdout.decode().split() == ["bash", real]
    assert found.stderr == b""
    assert sessions(as_user) == 1


def test_a_string_is_run_by_a_shell(as_user: Sigwrap) -> None:
    found = as_user.run("--name", "one", "-c", "echo $0 $1; exit 4", "zero", "one")
    assert (found.returncode, found.stdout, found.stderr) == (4, b"zero one\n", b"")
    started = as_user.sealed_events("session_started")[0].payload
    assert started["name"] == "one"
    assert started["command"][1:] == ["-c", "echo $0 $1; exit 4", "zero", "one"]


def test_what_is_wrong_is_said(sigwrap: Sigwrap) -> None:
    options, shell = {"SIGWRAP_OPTIONS": "--no-such"}, {"SIGWRAP_SHELL": "/x/sigwrap-shell"}
    cases: tuple[tuple[tuple[str, ...], dict[str, str], str], ...] = (
        (("-c",), {}, "-c needs a value (sigwrap -c 'npm test')"),
        (("--polcy", "x", "-c", "true"), {}, "No such option: --polcy"),
        (("-c", "true"), options, "$SIGWRAP_OPTIONS is --no-such"),
        (("-c", "true"), shell, "$SIGWRAP_SHELL is sigwrap-shell"),
        (("-c", "true"), {"SIGWRAP_SHELL": "/no/such"}, "/no/such: command not found"),
    )
    for words, env, said in cases:
        found = sigwrap.run(*words, env=env)
        assert found.returncode in (REFUSED, 127)
        assert said in found.stderr.decode()
        assert "Traceback" not in found.stderr.decode()
    assert not sigwrap.has_sessions()


def test_an_agents_loop_is_one_session(as_user: Sigwrap, shell: str) -> None:
    """Three calls, as an agent makes them, each asked about before: a server that one starts
    serves the next."""
    env = {**OPTIONS, "SHELL": shell}
    port = as_user.folder / "port"
    serve = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        f"open({str(port)!r}, 'w').write(str(s.getsockname()[1]));"
        "c, _ = s.accept(); c.sendall(b'served'); c.close()"
    )
    started = f'python3 -c "{serve}" >/dev/null 2>&1 & until [ -s {port} ]; do :; done'
    assert _asked(as_user, started) == {}
    assert _run(as_user, shell, "-c", started, **env) == (0, "", "")
    asks = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
    asked = _run(
        as_user, shell, "-c", f'python3 -c "{asks}; print(s.recv(9))" $(cat {port})', **env
    )
    assert asked == (0, "b'served'\n", "")
    assert _run(as_user, shell, "-lc", "exit 6", **env)[0] == 6
    answer = _asked(as_user, "cd /tmp && git push --force")["hookSpecificOutput"]
    assert answer["permissionDecision"] == "deny"
    assert sessions(as_user) == 1
    report = as_user.run("report", "agent").stdout.decode()
    assert "joined   3 commands" in report


def _asked(subject: Sigwrap, line: str) -> dict[str, Any]:
    call = {
        "hook_event_name": "PreToolUse",
        "cwd": str(subject.folder),
        "tool_name": "Bash",
        "tool_input": {"command": line},
    }
    done = subject.run("hook", "claude-code", input=json.dumps(call).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    return dict(json.loads(done.stdout or b"{}"))


@pytest.mark.tier("all")
def test_as_an_interactive_shell_on_a_terminal(as_user: Sigwrap, shell: str) -> None:
    """Its prompt, its jobs, its history: a session for itself."""
    history = as_user.folder / "history"
    env = {"PS1": "PROMPT> ", "HISTFILE": str(history), "SIGWRAP_OPTIONS": "--policy agent-observe"}
    terminal = as_user.terminal_for([*as_user.as_user(), shell, "--norc"], env=env)
    output = terminal.output
    output.until(rb"PROMPT> ")
    work_a_job(terminal, as_user.folder)
    terminal.type("exit 3\n")
    assert terminal.await_status() == 3
    assert history.read_text().split("\n")[-3:-1] == ["fg", "exit 3"]
