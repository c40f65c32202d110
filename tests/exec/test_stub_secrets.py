"""What must not be had of a stub, and what it can't do to others."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from sigwrap.kernel.descriptors import duplicate
from tests.support.harness import PYTHON, REFUSED, Sigwrap
from tests.support.policies import policy
from tests.support.processes import Roles, tree
from tests.support.programs import script
from tests.support.recording import RECORDED, TOKEN, prepared, ready, stored
from tests.support.waiting import PATIENCE_S, Watch, reader


def not_recorded(subject: Sigwrap) -> tuple[str, ...]:
    """As `prepared`, and the command is executed in the caller's place."""
    rules = RECORDED.replace("record: true", "record: false") % {"folder": subject.folder}
    return ("-p", policy(subject.folder, rules), "--")


@pytest.mark.parametrize("behind", ["stub", "no stub"])
def test_the_token_is_with_the_command_and_nowhere_else(
    as_user: Sigwrap, programs: Path, behind: str
) -> None:
    """Not in the caller, not in the stub that it has become, not in the log. The command takes
    nothing from the caller's environment, and its status is its own."""
    text = (
        "#!/bin/sh\n"
        'echo "length ${#TOKEN} evil $EVIL.$LD_BIND_NOW args $1,$2"; read x\n'
        "grep -c the-brokered /proc/$$/environ\nexit 42\n"
    )
    line = prepared(as_user, text)
    if behind == "no stub":
        line = not_recorded(as_user)
    clean = ("env", "-u", "THE_TOKEN", "EVIL=1", "LD_BIND_NOW=1")
    looks = (*PYTHON, str(programs / "looks_for_a_token.py"), TOKEN[::-1], behind)
    done = as_user.run(*line, *clean, *looks, "./tool", "a b", "c")
    assert done.stderr == b""
    said = [f"length {len(TOKEN)} evil . args a b,c", "0", "in memory 0 exit 42"]
    assert done.stdout.decode().splitlines() == said
    (event,) = as_user.sealed_events("exec_redirected")
    assert (event.payload["via"], event.payload["replacement_env"]) == ("stub", ["TOKEN"])
    for file in as_user.store.rglob("*"):
        if file.is_file():
            assert TOKEN.encode() not in file.read_bytes()


def test_a_value_that_the_host_lacks_is_a_denial(as_user: Sigwrap) -> None:
    prepared(as_user, "#!/bin/sh\necho ran\n")
    del as_user.env["THE_TOKEN"]
    done = as_user.run(*not_recorded(as_user), "sh", "-c", "./tool; echo $?")
    assert done.stdout == b"126\n"
    assert b"no THE_TOKEN" in done.stderr


def test_a_child_from_before_the_stub_passes_no_variable(as_user: Sigwrap, programs: Path) -> None:
    """Such as LD_PRELOAD, whose library would read the token."""
    seen, replacement = as_user.folder / "seen", as_user.folder / "real-tool"
    line = prepared(as_user, f"#!/bin/sh\necho length ${{#TOKEN}} evil $EVIL >>{seen}\n")
    program = str(programs / "takes_the_childs_place.py")
    as_user.run(*line, *PYTHON, program, "./tool", str(replacement))
    said = seen.read_text().splitlines() if seen.exists() else []  # it may end before
    assert f"length {len(TOKEN)} evil 1" not in said


@pytest.mark.parametrize("entry", ["", ".", "here"])
def test_no_program_of_the_callers_directory_gets_the_token(as_user: Sigwrap, entry: str) -> None:
    """A relative entry of sigwrap's own PATH means another folder for each caller."""
    line = prepared(as_user, "")
    rules = RECORDED.replace("%(folder)s/real-tool", "real-tool").replace("record: true", "")
    policy(as_user.folder, rules.replace("stub, ,", "stub,"))
    as_user.env["PATH"] = f"{entry}:{as_user.env['PATH']}"
    (as_user.folder / "here").mkdir()
    for folder in (as_user.folder, as_user.folder / "here"):
        script(folder, "real-tool", "#!/bin/sh\necho $TOKEN\n")
    done = as_user.run(*line, "./tool")
    assert (done.returncode, done.stdout) == (126, b"")
    assert b"its replacement can't be run: real-tool" in done.stderr


@pytest.mark.parametrize("variable", ["PATH", "PYTHONPATH"])
def test_a_tool_with_the_token_finds_no_code_in_the_callers_directory(
    as_user: Sigwrap, variable: str
) -> None:
    """Such as `#!/usr/bin/env python3`, where the session's PATH has a relative entry."""
    line = prepared(as_user, "#!/usr/bin/env python3\nimport json\nprint('ran')\n")
    as_user.env[variable] = f":.:{as_user.env.get(variable, '/nowhere')}"
    here = as_user.folder / "here"  # and not beside the tool, where Python always looks first
    here.mkdir()
    script(here, "python3", "#!/bin/sh\necho $TOKEN\n")
    script(here, "json.py", "import os; print(os.environ['TOKEN'])\n")
    done = as_user.run(*line, "sh", "-c", "cd here && ../tool")
    assert (done.stdout, done.stderr) == (b"ran\n", b"")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("via: stub, record: true,", ""), "env has a secret, which the caller's LD_PRELOAD"),
        (("%(folder)s/real-tool", "./real-tool"), "the caller could choose the program"),
    ],
    ids=["environment", "directory"],
)
def test_a_policy_that_gives_the_token_to_the_caller_does_not_start(
    as_user: Sigwrap, given: tuple[str, str], why: str
) -> None:
    line = prepared(as_user, "#!/bin/sh\necho $TOKEN\n")
    policy(as_user.folder, RECORDED.replace(*given) % {"folder": as_user.folder})
    done = as_user.run(*line, "./tool")
    assert (done.returncode, done.stdout) == (REFUSED, b"")
    (said,) = done.stderr.decode().splitlines()
    assert why in said and "policy.yaml:" in said
    checked = as_user.run("policy", "check", str(as_user.folder / "policy.yaml"))
    assert checked.returncode != 0 and why.encode() in checked.stdout + checked.stderr


def _socket_of(stub: int) -> socket.socket:
    """As a debugger outside the session would take it."""
    numbers = map(int, os.listdir(f"/proc/{stub}/fd"))
    (number,) = (
        each
        for each in numbers
        if each > 2 and os.readlink(f"/proc/{stub}/fd/{each}").startswith("socket:")
    )
    return socket.socket(fileno=duplicate(stub, number))


def test_nothing_that_a_stub_says_matters(as_user: Sigwrap) -> None:
    """A debugger can speak in its place, until the connection is full."""
    line = prepared(as_user, "#!/bin/sh\necho ready\nread line; echo $line; exit 5\n")
    run = as_user.start(*line, "sh", "-c", "./tool; echo $?")
    said, stub = ready(as_user, run)
    with _socket_of(stub) as end, suppress(BlockingIOError):
        end.setblocking(False)
        while True:
            end.send(b"X" + bytes(12))
    run.say(b"word\n")
    assert said.rest() == b"word\n5\n"
    assert run.wait(PATIENCE_S) == 0
    (ended,) = as_user.sealed_events("recording_ended")
    assert ended.payload["reason"] == "the command ended"


def test_the_pass_is_the_stubs_childs_alone(as_user: Sigwrap, programs: Path) -> None:
    line = prepared(as_user, '#!/bin/sh\necho "token ${TOKEN:-none}"\n')
    clean = ("env", "-u", "THE_TOKEN")
    done = as_user.run(*line, *clean, *PYTHON, str(programs / "forger.py"))
    assert done.stdout == b"b'token none\\n'\n"


# The store and the supervisor


def test_a_full_store_stops_it_and_says_so(sigwrap: Sigwrap, small_disk: Path) -> None:
    """Nothing passes that isn't in the log."""
    sigwrap.store = small_disk / "store"
    sigwrap.env["SIGWRAP_STORE"] = str(sigwrap.store)
    text = "#!/bin/sh\nexec head -c 50000000 /dev/urandom\n"
    done = sigwrap.run(*prepared(sigwrap, text), "sh", "-c", "./tool | wc -c; exit 0")
    assert int(done.stdout) < 1 << 19
    assert b"cannot write the event log" in done.stderr
    assert b"can't write the event log" in done.stderr
    assert len(stored(sigwrap.events("io_recorded"), "stdout")) >= int(done.stdout)


def test_output_that_goes_nowhere_is_no_success(as_user: Sigwrap) -> None:
    """The command itself writes into a pipe, and never hears of it."""
    ways = {
        ">/dev/full": b"can't write to standard output: No space left on device",
        "1</dev/null": b"can't write to standard output: Bad file descriptor",
        "</dev/null >/dev/null 2>/dev/full": b"",
    }
    line = prepared(as_user, "#!/bin/sh\necho out\necho err >&2\nexit 0\n")
    text = "\n".join(f'./tool {to}; echo "status $?" >&2' for to in ways)
    done = as_user.run(*line, "sh", "-c", text)
    *said, rest = done.stderr.split(b"status 126\n")
    assert (len(said), rest) == (len(ways), b"")
    assert all(why in each for why, each in zip(ways.values(), said, strict=True)), said


def test_the_wrong_end_of_a_pipe_is_not_waited_for(as_user: Sigwrap) -> None:
    """It is never ready."""
    line = prepared(as_user, "#!/bin/sh\ncat\necho out\n")
    calls = "./tool </dev/null >&4; echo status $? >&2; ./tool </dev/null <&5; echo status $? >&2"
    done = as_user.run(*line, "sh", "-c", f"mkfifo p; exec 3<>p 4<p 5>p; {calls}")
    found = [each for each in done.stderr.splitlines() if each.startswith(b"status ")]
    assert found == [b"status 126", b"status 0"]


def test_a_killed_supervisor_leaves_neither_stub_nor_command(as_user: Sigwrap) -> None:
    line = prepared(as_user, "#!/bin/sh\necho ready\nexec sleep 1000\n")
    process = as_user.start(*line, "./tool")
    assert reader(process.stdout).line() == b"ready"
    roles = Roles.of(process.pid)
    with Watch(tree(roles.supervisor)) as watch:
        assert len(watch.processes) >= 3
        os.kill(roles.supervisor, signal.SIGKILL)
        watch.await_ends()
    assert process.wait(PATIENCE_S) == 125


# What holds a value of sigwrap's own environment takes nothing along that gives it away.

WITHOUT_SECRET = """
  - {name: in-place, commands: [tool], decision: redirect,
     redirect_to: {command: %s/real-tool, env: {TOKEN: open}}}
"""
LIMITS = "#!/bin/sh\necho ${#TOKEN}; grep core /proc/self/limits | tr -s ' '\n"
NO_CORE = f"{len(TOKEN)}\nMax core file size 1 1 bytes \n".encode()


def _filtered(programs: Path, *words: str) -> tuple[str, ...]:
    return (*PYTHON, str(programs / "puts_a_filter.py"), *words)


@pytest.mark.parametrize("behind", ["stub", "no stub"])
def test_it_leaves_no_core_and_has_no_filter_of_the_callers(
    as_user: Sigwrap, programs: Path, behind: str
) -> None:
    """No core even to a program that takes cores: 0 would be no limit for that."""
    line = prepared(as_user, LIMITS)
    if behind == "no stub":
        line = not_recorded(as_user)
    script = 'ulimit -c unlimited; ./tool; exec "$@"'
    puts = _filtered(programs, "sh", "-c", "./tool; echo $?")
    done = as_user.run(*line, "sh", "-c", script, "sh", *puts)
    assert done.stdout == NO_CORE + b"126\n"
    (event,) = as_user.sealed_events("exec_denied")
    assert "seccomp filter of its own" in event.payload["reason"]


def test_no_filter_comes_while_the_exec_is_prepared(as_user: Sigwrap, programs: Path) -> None:
    """Another thread can give the caller one at any time."""
    prepared(as_user, "#!/bin/sh\nexec grep Seccomp_filters /proc/self/status\n")
    program = str(programs / "puts_a_filter_late.py")
    done = as_user.run(*not_recorded(as_user), *PYTHON, program, "./tool")
    natively = as_user.run(*not_recorded(as_user), "./tool").stdout
    assert set(done.stdout.splitlines(keepends=True)) <= {natively}


@pytest.mark.parametrize("behind", ["stub", "no stub"])
def test_no_tool_in_a_namespace_of_the_sessions_gets_it(as_user: Sigwrap, behind: str) -> None:
    """A server of the session has every address there."""
    line = prepared(as_user, "#!/bin/sh\necho ${#TOKEN}\n")
    if behind == "no stub":
        line = not_recorded(as_user)
    apart = ["unshare", "-Urn", "./tool"]
    if as_user.native("unshare", "-Urn", "true").returncode != 0:
        pytest.skip("needs network namespaces")
    done = as_user.run(*line, *apart)
    assert done.stdout == b""
    (event,) = as_user.sealed_events("exec_denied")
    assert event.payload["reason"] == "the caller is in another network namespace"


def test_without_a_secret_limit_and_filter_are_the_callers(
    as_user: Sigwrap, programs: Path
) -> None:
    prepared(as_user, LIMITS)
    puts = _filtered(programs, "sh", "-c", "ulimit -c unlimited; ./tool")
    line = ("-p", policy(as_user.folder, WITHOUT_SECRET % as_user.folder), "--")
    done = as_user.run(*line, *puts)
    assert done.stdout == b"4\nMax core file size unlimited unlimited bytes \n"
