"""The socket that takes answers, in the hands of whoever runs as the same user: it is there again,
and nobody hears that nothing waits."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S, reader

ASK = """
  - {name: ask, commands: [uname], decision: approve, message: looked at first}
"""
DEEDS = {
    "removed": ('rm "$CONTROL"/*', "it was removed"),
    "moved": ('mv "$CONTROL"/*.sock "$CONTROL/x.sock"', "it was removed"),
    "a file": ('for s in "$CONTROL"/*; do echo x > x; mv x "$s"; done', "another file"),
    "a folder": ('for s in "$CONTROL"/*; do rm "$s"; mkdir "$s"; > "$s/x"; done', "another file"),
    "a link": ('for s in "$CONTROL"/*; do ln -sf /nowhere "$s"; done', "another file"),
    "closed": ('chmod 0 "$CONTROL"/*', "its mode was changed"),
    "folder removed": ('rm -rf "$CONTROL"', "its folder was removed"),
    "folder a file": ('rm -rf "$CONTROL"; > "$CONTROL"', "its folder was removed"),
    "folder elsewhere": ('mv "$CONTROL" gone; ln -s /nowhere "$CONTROL"', "its folder was"),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_it_is_noticed_and_there_again(as_user: Sigwrap, deed: str) -> None:
    path = policy(as_user.folder, ASK)
    words = ("-p", path, "--no-report", "--approvals", "control", "--", "/bin/uname", "-s")
    asks = as_user.start(*words)
    said = reader(asks.stderr)
    said.until(rb"sigwrap approve \w+")
    (request,) = as_user.events("approval_requested")
    approval_id = request.payload["approval_id"]
    script, what = DEEDS[deed]
    done = as_user.native("sh", "-c", f'CONTROL="{as_user.store}/control"; {script}')
    assert done.returncode == 0, done.stderr
    line = said.until(rb"somebody tampered with the control socket [^\n]*; there is another one\n")
    assert what in line.decode()
    as_user.await_event("store_tampered")
    shown = json.loads(as_user.native(*as_user.line("approvals", "--json")).stdout)
    assert [each["id"] for each in shown["requests"]] == [approval_id]
    answer = as_user.native(*as_user.line("approve", approval_id))
    assert answer.returncode == 0, answer.stderr
    assert asks.wait(PATIENCE_S) == 0
    (tampered,) = as_user.sealed_events("store_tampered")
    assert what in tampered.payload["what"]
    socket_file = Path(tampered.payload["path"])
    assert socket_file.parent == as_user.store / "control"
    assert not socket_file.exists()


def test_where_it_cannot_be_put_back_that_is_said_once(sigwrap: Sigwrap) -> None:
    path = policy(sigwrap.folder, ASK)
    words = ("-p", path, "--no-report", "--approvals", "control", "--", "/bin/uname", "-s")
    asks = sigwrap.start(*words)
    said = reader(asks.stderr)
    said.until(rb"sigwrap approve \w+")
    (request,) = sigwrap.events("approval_requested")
    control = sigwrap.store / "control"
    mounted = sigwrap.native("mount", "-t", "tmpfs", "tmpfs", str(control))
    if mounted.returncode != 0:
        pytest.skip(f"can't mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        line = said.until(rb"the control socket [^\n]* can't be opened anew: [^\n]*\n")
        assert b"another file system is mounted" in line
    finally:
        assert sigwrap.native("umount", str(control)).returncode == 0
    answer = sigwrap.native(*sigwrap.line("approve", request.payload["approval_id"]))
    assert answer.returncode == 0, answer.stderr
    assert asks.wait(PATIENCE_S) == 0
    assert said.rest() == b""


def test_so_many_sockets_of_the_session_s_own_keep_nobody_from_answering(
    as_user: Sigwrap, programs: Path
) -> None:
    """Silent ones, full ones, and files of such names."""
    path = policy(as_user.folder, ASK)
    control = as_user.store / "control"
    script = f'"$@" {control} & read line; /bin/uname -s'
    line = ("-p", path, "--no-report", "--approvals", "control", "--", "sh", "-c", script, "sh")
    asks = as_user.start(*line, *PYTHON, str(programs / "fills_control.py"))
    reader(asks.stdout).until(rb"filled")
    asks.say(b"\n")
    said = reader(asks.stderr)
    said.until(rb"sigwrap approve \w+")
    (request,) = as_user.events("approval_requested")
    started_s = time.monotonic()
    answer = as_user.native(*as_user.line("approve", request.payload["approval_id"]))
    assert answer.returncode == 0, answer.stderr
    assert time.monotonic() - started_s < 25.0  # 4, on a machine that has nothing else to do
    assert asks.wait(PATIENCE_S) == 0
