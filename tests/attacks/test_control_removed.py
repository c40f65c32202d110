"""The socket that takes answers, in the hands of whoever runs as the same user: it is there again,
and nobody hears that nothing waits."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Running, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S, Reader, await_that, reader

ASK = """
  - {name: ask, commands: [uname], decision: approve, message: looked at first}
"""
DEEDS = {
    "moved": ('mv "$CONTROL"/*.sock "$CONTROL/x.sock"', "it was removed"),
    "removed": ('rm "$CONTROL"/*', "it was removed"),
    "closed": ('chmod 0 "$CONTROL"/*', "its mode was changed"),
    "a file": ('for s in "$CONTROL"/*; do echo x > x; mv x "$s"; done', "another file"),
    "a link": ('for s in "$CONTROL"/*; do ln -sf /nowhere "$s"; done', "another file"),
    "a folder": ('for s in "$CONTROL"/*; do rm "$s"; mkdir "$s"; > "$s/x"; done', "another file"),
    "folder removed": ('rm -rf "$CONTROL"', "its folder was removed"),
    "folder a file": ('rm -rf "$CONTROL"; > "$CONTROL"', "its folder was removed"),
    "folder elsewhere": ('mv "$CONTROL" gone; ln -s /nowhere "$CONTROL"', "its folder was"),
}


def _asks(subject: Sigwrap, *command: str) -> Running:
    path = policy(subject.folder, ASK)
    options = ("-p", path, "--no-report", "--approvals", "control")
    return subject.start(*options, "--", *(command or ("/bin/uname", "-s")))


def _asked(subject: Sigwrap, asks: Running) -> tuple[str, Reader]:
    """The one request's id, once it waits for an answer."""
    said = reader(asks.stderr)
    said.until(rb"sigwrap approve \w+")
    (request,) = subject.events("approval_requested")
    return request.payload["approval_id"], said


def _is_answered(subject: Sigwrap, asks: Running, approval_id: str) -> None:
    answer = subject.native(*subject.line("approve", approval_id))
    assert answer.returncode == 0, answer.stderr
    assert asks.wait(PATIENCE_S) == 0


def _await_tampered(subject: Sigwrap, times: int) -> None:
    await_that(lambda: len(subject.events("store_tampered")) == times)


def test_it_is_noticed_and_there_again(as_user: Sigwrap) -> None:
    """Whatever is done, one after the other."""
    asks = _asks(as_user)
    approval_id, said = _asked(as_user, asks)
    for done_so_far, (deed, (script, _)) in enumerate(DEEDS.items(), 1):
        done = as_user.native("sh", "-c", f'CONTROL="{as_user.store}/control"; {script}')
        assert done.returncode == 0, (deed, done.stderr)
        _await_tampered(as_user, done_so_far)
        shown = json.loads(as_user.native(*as_user.line("approvals", "--json")).stdout)
        assert [each["id"] for each in shown["requests"]] == [approval_id], deed
    # It is said once, and recorded each time.
    said.until(rb"somebody tampered with the control socket [^\n]*; there is another one\n")
    _is_answered(as_user, asks, approval_id)
    assert said.rest() == b""
    tampered = [event.payload for event in as_user.sealed_events("store_tampered")]
    assert len(tampered) == len(DEEDS)
    for (deed, (_, what)), each in zip(DEEDS.items(), tampered, strict=True):
        assert what in each["what"], deed
        assert Path(each["path"]).parent == as_user.store / "control"
        assert not Path(each["path"]).exists(), deed


def test_where_it_cannot_be_put_back_that_is_said_once(sigwrap: Sigwrap) -> None:
    asks = _asks(sigwrap)
    approval_id, said = _asked(sigwrap, asks)
    control = sigwrap.store / "control"
    mounted = sigwrap.native("mount", "-t", "tmpfs", "tmpfs", str(control))
    if mounted.returncode != 0:
        pytest.skip(f"can't mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        line = said.until(rb"the control socket [^\n]* can't be opened anew: [^\n]*\n")
        assert b"another file system is mounted" in line
    finally:
        assert sigwrap.native("umount", str(control)).returncode == 0
    _is_answered(sigwrap, asks, approval_id)
    assert said.rest() == b""


def test_so_many_sockets_of_the_session_s_own_keep_nobody_from_answering(
    as_user: Sigwrap, programs: Path
) -> None:
    """Silent ones, full ones, and files of such names."""
    control = as_user.store / "control"
    script = f'"$@" {control} & read line; /bin/uname -s'
    asks = _asks(as_user, "sh", "-c", script, "sh", *PYTHON, str(programs / "fills_control.py"))
    reader(asks.stdout).until(rb"filled")
    asks.say(b"\n")
    approval_id, _ = _asked(as_user, asks)
    started_s = time.monotonic()
    _is_answered(as_user, asks, approval_id)
    assert time.monotonic() - started_s < 25.0  # 4, on a machine that has nothing else to do
