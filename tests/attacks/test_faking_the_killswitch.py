"""A supervised process turns the kill switch on for others, or off: neither is believed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from sigwrap.events import Event
from sigwrap.kernel import procfs
from sigwrap.kernel.signals import KILL_SWITCH_SIGNAL
from sigwrap.log.catalog import list_sessions, open_session
from tests.support.harness import IS_BINARY, PYTHON, REFUSED, UNDER_TEST, Running, Sigwrap
from tests.support.killswitch import PATIENT, started, switch
from tests.support.waiting import PATIENCE_S, await_that, reader

OBSERVE = ("-p", "agent-observe", "--")
STAYS = (*OBSERVE, "sh", "-c", "echo ready; read line; echo $line")
SIGNAL = str(int(KILL_SWITCH_SIGNAL))
ON_AND_OFF = ("on", "off --yes")

DEEDS = (
    "echo x > $STORE/killswitch",
    "ln -s /etc/passwd $STORE/killswitch",
    "mkfifo $STORE/killswitch",
    "mkdir -p $STORE/killswitch/x/y",
    "cp $STORE/earlier $STORE/new; mv $STORE/new $STORE/killswitch",
)


def _goes_on(subject: Sigwrap) -> bool:
    """What others start is not refused."""
    return subject.run(*OBSERVE, "true").returncode == 0


def _recorded(subject: Sigwrap, kind: str) -> list[Event]:
    """In all sessions."""
    store = str(subject.store)
    sessions = [open_session(store, file.id) for file in list_sessions(store)]
    return [event for session in sessions for event in session.events() if event.type == kind]


def _ends_by_itself(other: Running) -> None:
    other.say(b"done\n")
    assert other.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("deed", DEEDS)
def test_a_file_that_it_makes_ends_no_session_and_is_reported(alone: Sigwrap, deed: str) -> None:
    """Whatever it is. No session starts until the user turns it off."""
    alone.store.mkdir()
    os.chown(alone.store, alone.user or 0, alone.user or 0)
    switch(alone, "on", "--reason", "an earlier one")
    (alone.store / "killswitch").rename(alone.store / "earlier")
    switch(alone, "off", "--yes")
    words = f"STORE={alone.store}; echo ready; read line; {deed}; read line"
    hostile = started(alone, *OBSERVE, "bash", "-c", words)
    hostile.say(b"do it\n")
    alone.await_event("killswitch_invented")
    assert not _goes_on(alone)
    assert switch(alone, "off", "--yes")[0] == 0
    assert _goes_on(alone)
    _ends_by_itself(hostile)
    assert reader(hostile.stderr).rest().count(b"keeps new sessions from starting, but") == 1
    (event,) = _recorded(alone, "killswitch_invented")
    assert event.payload["path"] == str(alone.store / "killswitch")


def test_another_container_turns_it_on_and_it_stays_on(alone: Sigwrap) -> None:
    """A session that its signal does not reach goes on, and says so."""
    session = started(alone, *STAYS)
    line = ["unshare", "-r", "-p", "-f", "--mount-proc", UNDER_TEST, "killswitch", "on"]
    done = alone.native(*line)
    assert (done.returncode, b"run out of reach" in done.stderr) == (REFUSED, True), done
    alone.await_event("killswitch_invented")
    assert not _goes_on(alone)
    _ends_by_itself(session)


def test_nor_is_it_believed_when_it_signals_them_itself(alone: Sigwrap, programs: Path) -> None:
    """Neither by a daemon whose parents have ended. Its own supervisor it can't signal at all; nor
    does it turn the switch."""
    other = started(alone, *STAYS)
    program = str(programs / "tells_sessions_to_end.py")
    for hide in ("exec", "setsid -f", "env -i setsid"):
        words = " ".join((hide, *PYTHON, program, SIGNAL))
        session = alone.run(*OBSERVE, "sh", "-c", f"{words} | cat; sleep 0.1")
        assert session.returncode == 0
        assert sorted(session.stdout.splitlines()) == [
            b"-1 " * 7 + b"-1",
            b"0 " * 7 + b"0",
            b"ready",
        ]
        assert alone.sealed_events("signal_blocked")  # to its own supervisor
    assert _recorded(alone, "control_refused")
    hides = ("", "env -i HOME=$HOME SIGWRAP_STORE=$SIGWRAP_STORE ", "setsid -w ")
    lines = [f"{hide}{UNDER_TEST} killswitch {word}" for hide in hides for word in ON_AND_OFF]
    session = alone.run(*OBSERVE, "sh", "-c", "".join(f"{line}; echo $?\n" for line in lines))
    assert session.stdout.split() == len(lines) * [b"%d" % REFUSED], session.stderr
    assert session.stderr.count(b"processes in a session can't turn o") == len(lines)
    assert _goes_on(alone)
    _ends_by_itself(other)


def test_a_name_makes_nobody_a_session(alone: Sigwrap) -> None:
    """Somebody outside of all sessions who is called as a supervisor is."""
    called = alone.folder / "sigwrap-super"
    shutil.copy("/bin/sleep", called)
    called.chmod(0o755)
    outside = alone.start_line([*alone.as_user(), str(called), "1000"])
    await_that(lambda: procfs.comm(outside.pid) == "sigwrap-super")
    inside = started(alone, *OBSERVE, "sh", "-c", f"echo ready; {called} 1000")
    status, said = switch(alone, "on", patiently=True)
    assert (status, "1 session ended;" in said) == (0, True), said
    assert inside.wait(PATIENCE_S) == REFUSED
    assert outside.poll() is None


def test_who_makes_it_again_and_again_ends_nobody(alone: Sigwrap) -> None:
    """And is met by the real one all the same."""
    other = started(alone, *STAYS)
    words = f"echo ready; while :; do echo x > {alone.store}/killswitch; done"
    session = started(alone, *OBSERVE, "sh", "-c", words)
    alone.await_event("killswitch_invented")
    _ends_by_itself(other)
    assert session.poll() is None
    status, said = switch(alone, "on")
    assert (status, "1 session ended" in said) == (0, True)
    assert session.wait(PATIENCE_S) == REFUSED
    assert not _goes_on(alone)


def test_no_more_signals_can_be_queued_and_none_is_believed_or_lost(
    alone: Sigwrap, programs: Path
) -> None:
    """Then the kernel forgets who sent one."""
    few = ["prlimit", "--sigpending=100"]
    other = alone.start_line([*alone.as_user(), *few, *map(str, alone.line(*STAYS))])
    assert reader(other.stdout).line() == b"ready"
    words = (*PYTHON, str(programs / "tells_sessions_to_end.py"), SIGNAL, "full")
    hostile = alone.start(*OBSERVE, *words)
    reader(hostile.stdout).until(rb"ready")
    assert other.poll() is None
    status, said = switch(alone, "on", "--reason", "a drill", patiently=True)
    assert (status, "2 sessions ended;" in said) == (0, True), said
    assert [hostile.wait(PATIENCE_S), other.wait(PATIENCE_S)] == [REFUSED] * 2
    alone.verify(ended=True)
    activated = _recorded(alone, "killswitch_activated")
    assert [each.payload["reason"] for each in activated] == ["a drill"] * 2


def test_the_reason_is_told_while_the_file_is_overwritten(alone: Sigwrap) -> None:
    lie = '{"schema": "sigwrap.killswitch/1", "since_ns": 1, "reason": "a lie", "by": "x"}'
    words = f"echo ready; while :; do echo '{lie}' > {alone.store}/killswitch; done 2>/dev/null"
    session = started(alone, *OBSERVE, "sh", "-c", words)
    assert switch(alone, "on", "--reason", "a drill", patiently=True)[0] == 0
    assert session.wait(PATIENCE_S) == REFUSED
    (event,) = alone.sealed_events("killswitch_activated")
    assert event.payload["reason"] == "a drill"


LOOKS_LIKE_SUPERVISORS = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(15, b"sigwrap-super")
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
for _ in range(150):
    if os.fork() == 0:
        signal.pause()
print("ready", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("files", [64, 4096])
def test_processes_that_look_like_supervisors_keep_no_session_from_its_end(
    alone: Sigwrap, files: int
) -> None:
    """They are more than there may be open files, and are not counted as sessions."""
    hostile = started(alone, *OBSERVE, *PYTHON, "-c", LOOKS_LIKE_SUPERVISORS)
    other = started(alone, *STAYS)
    done = alone.native("prlimit", f"--nofile={files}:{files}", *PATIENT, "killswitch", "on")
    assert (done.returncode, b"2 sessions ended;" in done.stdout) == (0, True), done
    assert [hostile.wait(PATIENCE_S), other.wait(PATIENCE_S)] == [REFUSED] * 2
    assert len(_recorded(alone, "killswitch_activated")) == 2
    assert not _goes_on(alone)


@pytest.mark.skipif(IS_BINARY, reason="the bootloader forks, and there is no process more")
def test_a_session_that_has_used_up_the_users_processes_ends(alone: Sigwrap) -> None:
    fills = "echo ready; while :; do sleep 1000 & done 2>/dev/null"
    few = ["prlimit", "--nproc=40"]
    line = [*alone.as_user(), *few, *map(str, alone.line(*OBSERVE, "bash", "-c", fills))]
    session = alone.start_line(line)
    reader(session.stdout).until(rb"ready")
    await_that(lambda: len(alone.alive()) >= 39)
    done = alone.native(*few, UNDER_TEST, "killswitch", "on")
    assert (done.returncode, b"1 session ended" in done.stdout) == (0, True), done
    assert session.wait(PATIENCE_S) == REFUSED
    assert not _goes_on(alone)


def test_what_it_would_lift_stays(alone: Sigwrap) -> None:
    """Until the very end it takes the file away; none of the two is left."""
    words = "while :; do rm -f $HOME/.local/state/sigwrap/* $SIGWRAP_STORE/killswitch; done"
    session = started(alone, *OBSERVE, "bash", "-c", f"echo ready; ({words}) & {words}")
    assert switch(alone, "on")[0] == 0
    assert session.wait(PATIENCE_S) == REFUSED
    assert not _goes_on(alone)
