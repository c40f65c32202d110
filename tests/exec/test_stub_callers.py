"""Whoever becomes a stub, with whatever it has set up or lacks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.exec.calls import by_way, calls
from tests.support.harness import Sigwrap
from tests.support.processes import Roles
from tests.support.recording import prepared, stored
from tests.support.waiting import PATIENCE_S, await_that, reader


def test_whichever_call_it_is(as_user: Sigwrap, compiled: Path) -> None:
    ways = ("execve", "thread", "vfork", "spawn", "readonly", "execveat", "i386")
    line = prepared(as_user, '#!/bin/sh\necho "replaced $1"; exit 9\n')
    text = calls(compiled, ways, str(as_user.folder / "tool"), "word")
    done = as_user.run(*line, "sh", "-c", text)
    assert (done.returncode, done.stderr) == (0, b"")
    said = by_way(done.stdout.decode())
    assert {way: (lines[0], lines[-1]) for way, lines in said.items()} == dict.fromkeys(
        ways, ("replaced word", "9")
    )
    assert b"changed" not in done.stdout


def test_what_the_caller_set_up_is_the_commands(as_user: Sigwrap) -> None:
    text = (
        "#!/bin/bash\npwd; umask; ulimit -n; ps -o ni= -p $$ | tr -d ' '; cat <&3\n"
        "trap; kill -PIPE $$; echo ignored\n"
        "ls -l /proc/$$/fd | grep -c socket:; grep SigBlk /proc/$$/status\n"
    )
    (as_user.folder / "sub").mkdir(mode=0o777)
    setup = (
        "cd sub; umask 027; ulimit -n 99; echo three >../3; trap '' PIPE; "
        "exec nice -n 5 env --block-signal=USR2 ../tool 3<../3"
    )
    line = prepared(as_user, text)
    done = as_user.run(*line, "bash", "-c", setup)
    assert done.stderr == b""
    niceness = str(min(os.nice(0) + 5, 19))
    said = done.stdout.decode().splitlines()
    assert said[:5] == [str(as_user.folder / "sub"), "0027", "99", niceness, "three"]
    natively = as_user.native("bash", "-c", setup.replace("../tool", "../real-tool"))
    assert done.stdout == natively.stdout


@pytest.mark.parametrize("limit", [12, 30])
def test_few_descriptors(as_user: Sigwrap, limit: int) -> None:
    """It runs, or it is refused in our words; nothing else runs, and no interpreter complains."""
    line = prepared(as_user, "#!/bin/sh\necho replaced\n")
    done = as_user.run(*line, "sh", "-c", f"ulimit -n {limit}; ./tool; echo $?")
    if limit == 30:
        assert (done.stdout, done.stderr) == (b"replaced\n0\n", b"")
    else:
        assert done.stdout == b"126\n"
        assert b"too few descriptors" in done.stderr
        (denied,) = as_user.sealed_events("exec_denied")
        assert "too few descriptors" in denied.payload["reason"]


def test_a_full_descriptor_table(as_user: Sigwrap, compiled: Path) -> None:
    """Refused in our words, where what is open would stay open in the stub."""
    line = prepared(as_user, "#!/bin/sh\necho replaced\n")
    done = as_user.run(*line, str(compiled / "call"), "fulltable", str(as_user.folder / "tool"))
    ran = b"replaced\n" in done.stdout
    assert ran or b"too few descriptors" in done.stderr
    assert len(as_user.sealed_events("exec_redirected" if ran else "exec_denied")) == 1
    assert not (as_user.folder / "original-ran").exists()


def test_closed_streams_stay_ours(as_user: Sigwrap) -> None:
    line = prepared(as_user, "#!/bin/sh\necho out; echo err >&2; cat\necho $? >status\n")
    done = as_user.run(*line, "sh", "-c", "./tool <&- >&- 2>&-; echo $?")
    assert done.stdout == b"0\n"
    assert stored(as_user.sealed_events("io_recorded"), "stdout") == b"out\n"


def test_a_command_that_the_kernel_refuses(as_user: Sigwrap) -> None:
    line = prepared(as_user, "neither a script nor a program")
    done = as_user.run(*line, "sh", "-c", "./tool; echo $?")
    assert done.stdout == b"126\n"
    assert done.stderr == b"sigwrap-stub: real-tool: Exec format error\n"


def test_twenty_at_once_leave_no_descriptor_behind(as_user: Sigwrap) -> None:
    line = prepared(as_user, "#!/bin/sh\necho $1\n")
    all_of_them = "for n in $(seq 20); do ./tool $n & done | sort -n | tr '\\n' ' '; echo; read x"
    process = as_user.start(*line, "sh", "-c", f"./tool 0; read x; {all_of_them}")
    said = reader(process.stdout)
    assert said.line() == b"0"
    supervisor = Roles.of(process.pid).supervisor
    await_that(lambda: len(as_user.events("recording_ended")) == 1)
    before = len(os.listdir(f"/proc/{supervisor}/fd"))
    process.say(b"go\n")
    assert said.line().split() == [b"%d" % n for n in range(1, 21)]
    await_that(lambda: len(os.listdir(f"/proc/{supervisor}/fd")) <= before)
    process.communicate(b"\n", PATIENCE_S)
    assert len(as_user.sealed_events("recording_ended")) == 21
