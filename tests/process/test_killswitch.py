"""The kill switch, as a user of its own: it ends every session that the user has."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.kernel import procfs
from tests.support.harness import REFUSED, UNDER_TEST, Sigwrap
from tests.support.killswitch import started, switch
from tests.support.processes import Roles
from tests.support.waiting import PATIENCE_S, Watch, await_state, await_that, reader

# Daemons, stopped ones, ones that ignore signals, and those that fork all the time.
MANY = """
trap '' TERM INT HUP
for each in $(seq {count}); do
    setsid sleep 1000 &
    sh -c 'kill -STOP $$' &
    sh -c 'trap "" TERM INT HUP QUIT; sleep 1000; sleep 1000' &
done
sh -c 'while :; do sleep 0.05 & wait; done' &
echo ready
sleep 1000
"""
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_IMMUTABLE_FL = 0x80086601, 0x40086602, 0x10
STAYS = ("-p", "agent-observe", "--", "sh", "-c", "echo ready; sleep 1000")


def status_of(subject: Sigwrap) -> dict[str, object]:
    document: dict[str, object] = json.loads(subject.run("killswitch", "status", "--json").stdout)
    return document


def in_store(subject: Sigwrap, name: str) -> dict[str, object]:
    return {"env": {"SIGWRAP_STORE": str(subject.folder / name)}}


def test_it_ends_every_session_whatever_its_processes_do(alone: Sigwrap) -> None:
    sessions = []
    for name, count in (("one", 20), ("two", 20), ("three", 20)):
        words = ("-p", "agent-observe", "--", "sh", "-c", MANY.format(count=count))
        sessions.append(started(alone, *words, **in_store(alone, name)))
    held_up = Roles.of(sessions[2].pid)
    os.kill(held_up.front, signal.SIGSTOP)
    os.kill(held_up.supervisor, signal.SIGSTOP)
    await_state(held_up.supervisor, "T")
    everybody = alone.alive()
    assert len(everybody) > 200
    with Watch(everybody) as watch:
        began_s = time.monotonic()
        status, said = switch(alone, "on", "--reason", "a drill", store=alone.folder / "one")
        took_s = time.monotonic() - began_s
        watch.await_ends()
    assert status == 0, said
    # Who is slow is killed as well.
    assert re.search(r"3 sessions ended \([123] not responding, so killed\)", said)
    assert took_s < 20  # 0.8 s, on a machine that does nothing else
    assert [process.wait(PATIENCE_S) for process in sessions] == [REFUSED] * 3
    assert alone.alive() == []


@pytest.mark.promise("kill switch")
def test_the_log_says_who_and_why_and_is_sealed(alone: Sigwrap) -> None:
    words = "sleep 1000 & echo ready; wait"
    session = started(alone, "-p", "agent-observe", "--", "sh", "-c", words)
    reason = "it deploys\nto prod \x1b[31m"
    assert switch(alone, "on", "--reason", reason, patiently=True)[0] == 0
    assert session.wait(PATIENCE_S) == REFUSED
    said = session.stderr.read().decode()
    assert "killed by the kill switch: it deploys\\nto prod \\e[31m" in said
    (event,) = alone.sealed_events("killswitch_activated")
    assert event.payload["reason"] == reason
    assert event.payload["processes"] == 2
    assert " on " in event.payload["by"]
    end = alone.sealed_events("session_ended")[0].payload
    assert end["exit_status"] == REFUSED
    why = alone.run("why").stdout.decode()
    assert "killed by the kill switch: it deploys" in why


def test_nothing_starts_until_it_is_off(alone: Sigwrap) -> None:
    assert switch(alone, "on", "--reason", "a drill") == (
        0,
        switch(alone, "status")[1] + "no session was running; to allow new sessions: sigwrap "
        "killswitch off\n",
    )
    for words in (["--", "true"], ["--best-effort", "--", "true"]):
        refused = alone.run(*words)
        assert refused.returncode == REFUSED
        (line,) = refused.stderr.decode().splitlines()
        assert "the kill switch is on since 20" in line
        assert "a drill; nothing was run (sigwrap killswitch off)" in line
    assert not alone.has_sessions()
    elsewhere = alone.run("--store", str(alone.folder / "other"), "--", "true")
    assert elsewhere.returncode == REFUSED
    document = status_of(alone)
    assert (document["on"], document["reason"]) == (True, "a drill")
    switch(alone, "on")
    assert status_of(alone) == document
    switch(alone, "on", "--reason", "second")
    assert status_of(alone) == {**document, "reason": "second"}
    status, said = switch(alone, "off")
    assert (status, "--yes" in said) == (REFUSED, True)
    assert switch(alone, "off", "--yes")[0] == 0
    assert alone.run("--", "true").returncode == 0
    assert status_of(alone)["on"] is False


@pytest.mark.parametrize(("answer", "status"), [("y\r", 0), ("\r", 130)])
def test_off_asks_on_a_terminal(alone: Sigwrap, answer: str, status: int) -> None:
    switch(alone, "on")
    terminal = alone.terminal_for([*alone.as_user(), UNDER_TEST, "killswitch", "off"])
    terminal.output.until(rb"turn off the kill switch\? \[y/N\]:")
    terminal.type(answer)
    assert terminal.await_status() == status
    assert status_of(alone)["on"] is (status != 0)


def test_a_store_of_another_name_is_named(alone: Sigwrap) -> None:
    """Its file is left where only the default store's was taken away."""
    other = alone.folder / "other"
    switch(alone, "on", store=other)
    assert alone.run("--", "true").returncode == REFUSED
    switch(alone, "off", "--yes")
    assert alone.run("--", "true").returncode == 0
    refused = alone.run("--store", str(other), "--", "true")
    assert f"(sigwrap killswitch off --store {other})" in refused.stderr.decode()
    assert switch(alone, "off", "--yes", "--store", str(other))[0] == 0
    assert alone.run("--store", str(other), "--", "true").returncode == 0


HIDES = {
    "removed": "rm -rf $SIGWRAP_STORE",
    "moved": "mv $SIGWRAP_STORE $SIGWRAP_STORE.away",
    "locked": "chmod 0 $SIGWRAP_STORE",
    "touched": "touch $SIGWRAP_STORE/killswitch",
}
NAMESPACES = {"a user and a network": "-Urn", "all but a network": "-Urpfm --mount-proc"}


def test_no_session_hides_from_it_and_another_users_goes_on(alone: Sigwrap) -> None:
    """By what it does to its store, or in namespaces."""
    other = Sigwrap(alone.folder, alone.folder / "others", (alone.user or 0) + 5000)
    assert other.user is not None
    (alone.folder / "others").mkdir(mode=0o700)
    os.chown(alone.folder / "others", other.user, other.user)
    alone.folder.chmod(0o755)
    try:
        theirs = started(other, *STAYS)
        hidden = {
            name: started(alone, *STAYS[:-1], f"{deed}; {STAYS[-1]}", **in_store(alone, name))
            for name, deed in HIDES.items()
        }
        for name, options in NAMESPACES.items():
            unshare = ["unshare", *options.split()]
            hidden[name] = alone.start_line([*alone.as_user(), *unshare, *alone.line(*STAYS)])
            assert reader(hidden[name].stdout).line() == b"ready"
        status, said = switch(alone, "on")
        assert (status, "6 sessions ended" in said) == (0, True), said
        assert all(session.wait(PATIENCE_S) for session in hidden.values())
        assert {hidden[name].wait() for name in HIDES} == {REFUSED}
        assert alone.run("--", "true").returncode == REFUSED
        assert theirs.poll() is None
        assert other.run("--", "true").returncode == 0
    finally:
        other.clean_up()


IN_A_CONTAINER = ["unshare", "-Urpfm", "--mount-proc"]


def test_a_session_in_another_pid_namespace_is_named(alone: Sigwrap) -> None:
    """As in another container that has the same store."""
    session = started(alone, *STAYS)
    (journal,) = (alone.store / "sessions").glob("*.journal")
    done = alone.native(*IN_A_CONTAINER, UNDER_TEST, "killswitch", "on")
    assert done.returncode == REFUSED
    assert b"these sessions run out of reach, as in another container: " in done.stderr
    assert journal.stem.encode() in done.stderr
    assert session.poll() is None


def test_a_session_that_joined_another_ends_with_it(alone: Sigwrap) -> None:
    line = [UNDER_TEST, "--nested", "join", "--", "sh", "-c", "echo ready; sleep 1000"]
    session = started(alone, *STAYS[:3], *line)
    assert len(list((alone.store / "sessions").glob("*.journal"))) == 2
    status, said = switch(alone, "on", patiently=True)
    assert (status, "1 session ended;" in said) == (0, True), said
    assert session.wait(PATIENCE_S) == REFUSED
    assert alone.alive() == []


def test_sessions_of_the_store_end_where_proc_hides_them(alone: Sigwrap) -> None:
    """A supervisor lets no process of its user look into it, so hidepid hides it from them too."""
    session = started(alone, *STAYS)
    command = shlex.join([*alone.as_user(), UNDER_TEST, "killswitch", "on"])
    hidden = f"mount -t proc -o hidepid=2 proc /proc && exec {command}"
    done = alone.start_line(["unshare", "-m", "sh", "-c", hidden])
    assert done.wait(PATIENCE_S) == REFUSED  # sessions of other stores can't be found
    assert b"1 session ended" in done.stdout.read()
    assert b"/proc hides processes (hidepid)" in done.stderr.read()
    assert session.wait(PATIENCE_S) == REFUSED
    assert alone.alive() == []


@pytest.fixture
def disk(alone: Sigwrap) -> Iterator[Path]:
    folder = alone.folder / "disk"
    folder.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", "size=512k,mode=777", "tmpfs", str(folder)]
    if subprocess.run(line, capture_output=True, check=False).returncode != 0:
        pytest.skip("can't mount a tmpfs")
    yield folder
    alone.clean_up()
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_is_no_way_out(alone: Sigwrap, disk: Path) -> None:
    env = {"SIGWRAP_STORE": str(disk / "store"), "HOME": str(disk)}
    session = started(alone, *STAYS, env=env)
    filler = disk / "filler"
    fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(fd, b"x" * 4096):
            pass
    os.close(fd)
    done = alone.run("killswitch", "on", env=env)
    assert (done.returncode, b"1 session ended" in done.stdout) == (0, True), done
    assert session.wait(PATIENCE_S) == REFUSED
    filler.unlink()
    refused = alone.run("--", "true", env=env)
    assert refused.returncode == REFUSED
    assert b"the kill switch is on" in refused.stderr


def test_an_immutable_file_keeps_it_on(alone: Sigwrap) -> None:
    switch(alone, "on")
    file = alone.store / "killswitch"
    with immutable(file):
        status, said = switch(alone, "on")
        assert (status, "the kill switch is on since" in said) == (0, True), said
        done = alone.run("killswitch", "off", "--yes")
        assert done.returncode == REFUSED
        what_to_do = f"{file} is immutable; first, as root: chattr -i {file}"
        assert done.stderr.decode() == f"sigwrap: {what_to_do} (the kill switch is still on)\n"
    assert alone.run("killswitch", "off", "--yes").returncode == 0


@contextlib.contextmanager
def immutable(file: Path) -> Iterator[None]:
    with file.open() as opened:
        flags = fcntl.ioctl(opened, FS_IOC_GETFLAGS, bytes(4))
        held = int.from_bytes(flags, sys.byteorder) | FS_IMMUTABLE_FL
        fcntl.ioctl(opened, FS_IOC_SETFLAGS, held.to_bytes(4, sys.byteorder))
        try:
            yield
        finally:
            fcntl.ioctl(opened, FS_IOC_SETFLAGS, flags)


def test_what_cannot_be_seen_is_not_off(alone: Sigwrap) -> None:
    switch(alone, "on")
    home = alone.folder / "home"
    (home / ".local").mkdir(parents=True)
    (home / ".local").chmod(0)
    os.chown(home / ".local", 0, 0)
    env = {"HOME": str(home)}
    for word in ("status", "off"):
        done = alone.run("killswitch", word, env={**env, "SIGWRAP_STORE": ""})
        assert done.returncode == REFUSED
        assert b"killswitch: Permission denied" in done.stderr
    done = alone.run("killswitch", "status", env=env)
    assert (done.returncode, b"the kill switch is on" in done.stdout) == (0, True)
    alone.run("killswitch", "off", "--yes")
    done = alone.run("--", "true", env=env)
    assert done.returncode == 0
    assert b"the kill switch: can't check for" in done.stderr
    assert "the kill switch: can't check for" in str(
        alone.events("session_started")[0].payload["missing"]
    )
    done = alone.run("killswitch", "on", env=env)
    assert done.returncode == REFUSED
    assert b"new sessions can start" in done.stderr


def test_signals_dont_stop_it_halfway(alone: Sigwrap) -> None:
    session = started(alone, *STAYS)
    roles = Roles.of(session.pid)
    os.kill(roles.front, signal.SIGSTOP)
    os.kill(roles.supervisor, signal.SIGSTOP)
    turning_on = alone.start_line([*alone.as_user(), UNDER_TEST, "killswitch", "on"])
    await_that((alone.store / "killswitch").exists)
    turning_on.send_signal(signal.SIGINT)
    turning_on.send_signal(signal.SIGTERM)
    session.wait(PATIENCE_S)
    turning_on.wait(PATIENCE_S)
    assert alone.run("--", "true").returncode == REFUSED
    assert procfs.stat(roles.supervisor) is None


def test_a_session_that_seals_a_large_log_is_let_finish(alone: Sigwrap) -> None:
    """Its tree has ended; what it does then takes its time, here since it is stopped meanwhile."""
    session = started(alone, "-p", "agent-observe", "--", "sh", "-c", "echo ready; read line")
    roles = Roles.of(session.pid)
    os.kill(roles.front, signal.SIGSTOP)
    os.kill(roles.supervisor, signal.SIGSTOP)
    await_state(roles.supervisor, "T")
    os.kill(alone.command_pid(), signal.SIGKILL)
    turning_on = alone.start_line([*alone.as_user(), UNDER_TEST, "killswitch", "on"])
    await_that((alone.store / "killswitch").exists)
    for pid in (roles.supervisor, roles.front):
        os.kill(pid, signal.SIGCONT)
    assert turning_on.wait(PATIENCE_S) == 0
    session.wait(PATIENCE_S)
    assert alone.sealed_events("session_ended")


def test_a_link_that_leads_each_process_elsewhere_is_no_place_for_it(alone: Sigwrap) -> None:
    home = alone.folder / "home"
    (home / ".local").mkdir(parents=True)
    (home / ".local" / "state").symlink_to("/proc/self/cwd")
    for each in (home, home / ".local"):
        os.chown(each, alone.user or 0, alone.user or 0)
    env = {"HOME": str(home)}
    session = started(alone, *STAYS, env=env)
    done = alone.run("killswitch", "on", env=env)
    assert done.returncode == REFUSED
    assert b"a link loop, or a link that differs per process" in done.stderr
    assert b"1 session ended, but new sessions can start" in done.stderr
    assert session.wait(PATIENCE_S) == REFUSED
    alone.run("killswitch", "off", "--yes", env=env)


def test_a_folder_of_another_user_is_no_place_that_it_stays_in(alone: Sigwrap) -> None:
    alone.store.mkdir()
    os.chown(alone.store, 1, 1)
    alone.store.chmod(0o777)
    status, said = switch(alone, "on")
    assert status == REFUSED
    assert "belongs to another user, who can remove the kill switch" in said
    assert (alone.store / "killswitch").exists()
