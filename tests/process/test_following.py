"""`sigwrap report --follow` of a session while it runs."""

from __future__ import annotations

import subprocess

from tests.support.harness import Sigwrap
from tests.support.waiting import PATIENCE_S, reader


def test_what_comes_is_told_and_the_end(sigwrap: Sigwrap) -> None:
    session, _ = sigwrap.start_ready(
        "--", "sh", "-c", "echo ready; read a; rm -rf /; read b; exit 3"
    )
    following = sigwrap.start("report", "--follow", stdin=subprocess.DEVNULL)
    said = reader(following.stdout)
    said.until(rb"all of it: [^\n]*\n\n")
    session.say(b"\n")
    said.until(rb" s  denied  rm -rf /  \(rule destroy-system: [^\n]*\n")
    session.say(b"\n")
    rest = said.rest()
    assert rest.startswith(b"\nFailed, exit 3, "), "the refusal is told once"
    assert rest.endswith(b"counts   2 commands (1 denied)\n")
    assert following.wait(PATIENCE_S) == 0
    assert session.wait(PATIENCE_S) == 3
