"""The session's own files, in the hands of whoever runs in the session or as its user: the log is
whole anyway, and the socket that takes answers is there again."""

from __future__ import annotations

import json
import os
import shlex
import time
from pathlib import Path

import pytest

from sigwrap.errors import SigwrapError
from sigwrap.log.catalog import open_session
from sigwrap.report.check.verify import Outcome, verify_session
from tests.exec.test_approved import Run
from tests.support.harness import PYTHON, REFUSED, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S, await_that, reader

EMPTY = 'for each in "$STORE"/sessions/*; do : > "$each"; done'
GARBLE = 'for each in "$STORE"/sessions/*; do echo x > x; mv x "$each"; done'
FOLDERS = 'cd "$STORE"/sessions; for each in *; do rm $each; mkdir $each; touch $each/x; done'
WRITE = 'for each in "$STORE"/sessions/*.db; do echo x >> "$each"; done'
ELSEWHERE = 'mv "$STORE/sessions" "$STORE/gone"; ln -s /nowhere "$STORE/sessions"'
DEEDS = {
    "files removed": 'rm -f "$STORE"/sessions/*',
    "store removed": 'rm -rf "$STORE"',
    "store a file": 'rm -rf "$STORE"; echo x > "$STORE"',
    "folder moved": ELSEWHERE,
    "files emptied": EMPTY,
    "files replaced": GARBLE,
    "files made folders": FOLDERS,
    "database changed": WRITE,
    "files touched": 'touch "$STORE"/sessions/*',
    "folder closed": 'chmod 0 "$STORE/sessions" "$STORE"',
}
MARKS = ("before", "after")


def _line(subject: Sigwrap, program: str) -> list[str]:
    return ["-p", "agent-observe", "--", "sh", "-c", f"STORE={subject.store}; {program}"]


def _assert_whole(subject: Sigwrap) -> None:
    """Under the same id at the same place, with what came before and after."""
    events = subject.sealed_events()
    run = {event.payload.get("argv", [""])[-1] for event in events}
    assert run >= set(MARKS)
    (session,) = [path for path in (subject.store / "sessions").iterdir() if path.is_file()]
    assert session.name == f"{events[0].payload['session_id']}.db"


def _is_whole_and_runs(subject: Sigwrap) -> bool:
    try:
        found = open_session(str(subject.store), "")
        return found.running and verify_session(found, None).problem == ""
    except SigwrapError:
        return False


@pytest.mark.fault(
    "the store",
    "log removed, moved, emptied or replaced",
    sees="one warning; sigwrap writes the log again",
    keeps="complete, and `store_tampered`",
)
@pytest.mark.parametrize(
    "deed",
    [
        pytest.param("files removed", marks=pytest.mark.promise("tampering is detected")),
        *tuple(DEEDS)[1:],
    ],
)
def test_it_is_noticed_at_once_and_mended(as_user: Sigwrap, deed: str) -> None:
    """The deed is done by a process of the same user: where the session's own can't reach the
    store, it is noticed all the same."""
    if deed == "folder closed" and as_user.user is None:
        pytest.skip("root may write anywhere")
    process = as_user.start(*_line(as_user, "/bin/echo before; read line; /bin/echo after"))
    reader(process.stdout).until(rb"before")
    # It may be mended while it is still being done, and be done again to what was mended.
    as_user.native("sh", "-c", f"STORE={as_user.store}; {DEEDS[deed]}")
    said = reader(process.stderr).line().decode()
    assert "another program changed the event log" in said
    assert said.endswith("sigwrap wrote it again")
    await_that(lambda: _is_whole_and_runs(as_user))
    as_user.await_event("store_tampered")
    process.say(b"\n")
    assert process.wait() == 0
    _assert_whole(as_user)
    for tampered in as_user.events("store_tampered"):
        assert str(as_user.store) in tampered.payload["path"]


@pytest.mark.parametrize("deed", ["store removed", "files emptied", "folder moved"])
def test_whatever_the_session_does_to_its_log_it_is_whole_in_the_end(
    as_user: Sigwrap, deed: str
) -> None:
    done = as_user.run(*_line(as_user, f"/bin/echo before; {DEEDS[deed]}; /bin/echo after"))
    assert done.returncode == 0
    _assert_whole(as_user)


@pytest.mark.parametrize("deed", ["rm $STORE", "ln -sfn /nowhere $STORE", "ln -sfn other $STORE"])
def test_a_link_to_the_store_that_is_changed_is_told_of(as_user: Sigwrap, deed: str) -> None:
    """The log is whole, where the link led at the start."""
    real = as_user.folder / "real"
    as_user.native("mkdir", str(real), str(as_user.folder / "other"))
    link = as_user.folder / "link"
    as_user.native("ln", "-s", "real", str(link))
    as_user.store, as_user.env["SIGWRAP_STORE"] = link, str(link)
    change = deed.replace("$STORE", str(link))
    process = as_user.start(*_line(as_user, "/bin/echo before; read line; /bin/echo after"))
    reader(process.stdout).until(rb"before")
    as_user.native("sh", "-c", change)
    _, said = process.communicate(b"\n", PATIENCE_S)
    assert f"was moved to {real}/sessions".encode() in said
    assert process.returncode == REFUSED
    as_user.store = real
    _assert_whole(as_user)


def test_there_is_no_file_of_shared_memory_that_could_be_emptied(as_user: Sigwrap) -> None:
    done = as_user.run(*_line(as_user, 'ls "$STORE/sessions" >&2'))
    assert sorted(name.rpartition(".")[2] for name in done.stderr.decode().split()) == [
        "db",
        "journal",
    ]


@pytest.mark.fault(
    "the store",
    "the same, and it cannot be written again",
    sees="one warning; every exec is denied, status 125",
    keeps="lost",
)
@pytest.mark.skipif(os.getuid() != 0, reason="needs root to make a folder that isn't ours")
def test_where_nothing_can_be_written_anew_everything_is_denied_from_then_on(
    as_user: Sigwrap,
) -> None:
    if as_user.user is None:
        pytest.skip("root may write anywhere")
    closed = as_user.folder / "closed"
    closed.mkdir()
    os.chown(closed, as_user.user, as_user.user)
    as_user.store = closed / "store"
    as_user.env["SIGWRAP_STORE"] = str(as_user.store)
    process = as_user.start(*_line(as_user, "echo ready; read line; /bin/echo x; exec true"))
    reader(process.stdout).until(rb"ready")
    os.chown(closed, 0, 0)
    closed.chmod(0o555)
    as_user.store.rename(as_user.folder / "gone")
    assert b"can't rewrite the event log " in reader(process.stderr).line()
    process.say(b"\n")
    assert process.wait() == REFUSED
    assert process.stdout.read() == b""
    assert not as_user.store.exists()


def test_whoever_swaps_the_files_of_another_session_while_they_have_a_name_loses_nothing(
    as_user: Sigwrap, programs: Path
) -> None:
    folder = as_user.store / "sessions"
    as_user.native("mkdir", "-p", str(folder))
    swaps = str(programs / "swaps_new_files.py")
    one, _ = as_user.start_ready("--", *PYTHON, swaps, str(folder))
    done = as_user.run("--no-report", "--name", "other", "--", "/bin/true")
    one.stdin.close()
    one.wait(PATIENCE_S)
    if done.returncode == REFUSED:  # others can be quicker each time
        assert b"another program" in done.stderr
        if b"can't create the event log" in done.stderr:
            return
    else:
        assert (done.returncode, done.stderr) == (0, b"")
    session = open_session(str(as_user.store), "other")
    if done.returncode == 0:
        assert not Path(session.path).with_suffix(".journal").exists()
    verified = verify_session(session, None)
    assert (verified.outcome, verified.ended) == (Outcome.INTACT, True)


# The socket that takes answers is there again as well, and nobody hears that nothing waits.

ASK = """
  - {name: ask, commands: [uname], decision: approve, message: looked at first}
"""
# In one step: sigwrap would put a socket back between two.
EXCHANGE = f"""{shlex.join(PYTHON)} -c '
import ctypes, os, sys
paths = map(os.fsencode, sys.argv[1:])
sys.exit(ctypes.CDLL(None).renameat2(-100, next(paths), -100, next(paths), 2))'"""
CONTROL_DEEDS = {
    "moved": ('mv "$CONTROL"/*.sock "$CONTROL/x.sock"', "it was removed"),
    "removed": ('rm "$CONTROL"/*', "it was removed"),
    "closed": ('chmod 0 "$CONTROL"/*', "its mode was changed"),
    "a file": ('for s in "$CONTROL"/*; do echo x > x; mv x "$s"; done', "another file"),
    "a link": ('for s in "$CONTROL"/*; do ln -sf /nowhere "$s"; done', "another file"),
    "a folder": (
        f'mkdir -p d/x; for s in "$CONTROL"/*; do {EXCHANGE} d "$s"; done',
        "another file",
    ),
    "folder removed": ('mv "$CONTROL" away; rm -r away', "its directory was removed"),
    "folder a file": ('> x; mv "$CONTROL" away; mv x "$CONTROL"', "its directory was removed"),
    "folder elsewhere": ('mv "$CONTROL" gone; ln -s /nowhere "$CONTROL"', "its directory was"),
}


def _asks(subject: Sigwrap, *command: str) -> Run:
    policy(subject.folder, ASK)
    return Run(subject, *(command or ("/bin/uname", "-s")))


def _await_tampered(subject: Sigwrap, times: int) -> None:
    await_that(lambda: len(subject.events("store_tampered")) == times)


def _is_answered(run: Run, approval_id: str) -> None:
    assert run.answer("approve", approval_id).returncode == 0
    assert run.end() == 0


def test_it_is_noticed_and_there_again(as_user: Sigwrap) -> None:
    """Whatever is done, one after the other."""
    run = _asks(as_user)
    approval_id = run.question()
    for done_so_far, (deed, (script, _)) in enumerate(CONTROL_DEEDS.items(), 1):
        done = as_user.native("sh", "-c", f'CONTROL="{as_user.store}/control"; {script}')
        assert done.returncode == 0, (deed, done.stderr)
        _await_tampered(as_user, done_so_far)
        shown = json.loads(run.answer("approvals", "--json").stdout)
        assert [each["id"] for each in shown["requests"]] == [approval_id], deed
    # It is said once, and recorded each time.
    run.err.until(rb"another program changed the control socket [^\n]*; sigwrap made it again\n")
    _is_answered(run, approval_id)
    assert run.err.rest() == b""
    recorded = [event.payload for event in as_user.sealed_events("store_tampered")]
    assert len(recorded) == len(CONTROL_DEEDS)
    for (deed, (_, what)), each in zip(CONTROL_DEEDS.items(), recorded, strict=True):
        assert what in each["what"], deed
        assert Path(each["path"]).parent == as_user.store / "control"
        assert not Path(each["path"]).exists(), deed


def test_where_it_cannot_be_put_back_that_is_said_once(sigwrap: Sigwrap) -> None:
    run = _asks(sigwrap)
    approval_id = run.question()
    control = sigwrap.store / "control"
    mounted = sigwrap.native("mount", "-t", "tmpfs", "tmpfs", str(control))
    if mounted.returncode != 0:
        pytest.skip(f"can't mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        line = run.err.until(rb"the control socket [^\n]* can't be opened anew: [^\n]*\n")
        assert b"another file system is mounted" in line
    finally:
        assert sigwrap.native("umount", str(control)).returncode == 0
    _is_answered(run, approval_id)
    assert run.err.rest() == b""


def test_so_many_sockets_of_the_session_s_own_keep_nobody_from_answering(
    as_user: Sigwrap, programs: Path
) -> None:
    """Silent ones, full ones, and files of such names."""
    control = as_user.store / "control"
    script = f'"$@" {control} & read line; /bin/uname -s'
    run = _asks(as_user, "sh", "-c", script, "sh", *PYTHON, str(programs / "fills_control.py"))
    run.out.until(rb"filled")
    run.process.say(b"\n")
    approval_id = run.question()
    started_s = time.monotonic()
    _is_answered(run, approval_id)
    assert time.monotonic() - started_s < 25.0  # 4, on a machine that has nothing else to do
