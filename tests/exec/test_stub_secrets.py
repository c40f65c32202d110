"""What must not be had of a stub, and what it can't do to others."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sigwrap.protocols.stub import Kind, frame
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.processes import Roles, tree
from tests.support.recording import RECORDED, TOKEN, prepared, stored
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


@pytest.mark.parametrize(
    ("garbage", "why"),
    [
        ("ff00000000", "type 255"),
        ("0100000000", "READY is not for the supervisor"),
        ("0200000008ffffffffffffffff", "can't be"),
    ],
)
def test_a_stub_that_speaks_garbage_loses_its_command(
    as_user: Sigwrap, garbage: str, why: str, programs: Path
) -> None:
    """Whoever may look into the stub can speak in its place; the others don't notice."""
    line = prepared(as_user, "#!/bin/sh\necho ready\nexec sleep 1000\n")
    done = as_user.run(*line, *PYTHON, str(programs / "thief.py"), garbage)
    assert done.stdout == b"126 0\n"
    assert why in done.stderr.decode()
    (ended,) = as_user.sealed_events("recording_ended")
    assert why in ended.payload["reason"]


def test_input_without_end_that_nobody_asked_for_is_not_kept(
    as_user: Sigwrap, programs: Path
) -> None:
    line = prepared(as_user, "#!/bin/sh\necho ready\nexec sleep 1000\n")
    some = frame(Kind.STDIN, bytes(60000)).hex()
    done = as_user.run(*line, *PYTHON, str(programs / "thief.py"), some, "on and on")
    assert done.stdout == b"126 0\n"
    (ended,) = as_user.sealed_events("recording_ended")
    assert "more input than was asked for" in ended.payload["reason"]


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
    assert b"the event log can't be written" in done.stderr
    assert b"can't write the event log" in done.stderr
    assert len(stored(sigwrap.events("io_recorded"), "stdout")) >= int(done.stdout)


def test_output_that_goes_nowhere_is_no_success(as_user: Sigwrap) -> None:
    """The command itself writes into a pipe, and never hears of it."""
    ways = {
        ">/dev/full": b"its standard output can't be written: No space left on device",
        "1</dev/null": b"its standard output can't be written: Bad file descriptor",
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
