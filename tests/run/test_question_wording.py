"""A question as its reader sees it."""

from __future__ import annotations

from typing import Any

from sigwrap.mediate.questions import Open, Question
from sigwrap.run.asking.wording import Session, lines_of, store_option

SESSION = Session("mine")


def lines(**different: Any) -> list[str]:
    values: dict[str, Any] = {
        "kind": "exec",
        "pid": 7,
        "process": "bash",
        "depth": 2,
        "what": "./deploy 'a b'",
        "rule": "ask",
        "message": "look",
        "key": (),
        "files": ("/work/deploy", "/usr/bin/bash"),
        "folder": "/work",
    }
    request = Open("3f9a10", Question(**(values | different)), asked_at_s=0.0, deadline_s=60.0)
    return lines_of(request, SESSION, 13.0)


def test_all_that_is_known_is_said() -> None:
    *said, deadline = lines(note="it has changed")
    assert said == [
        "sigwrap: bash (pid 7, depth 2) wants to run",
        "    ./deploy 'a b'",
        "  file /work/deploy, then /usr/bin/bash",
        "  folder /work",
        "  note it has changed",
        "  rule ask of mine: look [3f9a10]",
    ]
    assert deadline.startswith("  denied if nobody answers until ")
    assert deadline.endswith(", in 47 s")


def test_a_signal_has_no_file() -> None:
    said = lines(kind="signal", what="SIGUSR2 to 50 (sleep)", files=(), folder="", message="")
    assert said[:-1] == [
        "sigwrap: bash (pid 7, depth 2) wants to send",
        "    SIGUSR2 to 50 (sleep)",
        "  rule ask of mine [3f9a10]",
    ]


def test_what_is_cut_says_so_and_shows_its_end() -> None:
    said = lines(what="rm " + "a" * 5_000 + " /")
    assert said[1].endswith("a ... and 3505 more characters")
    assert said[2] == "    which end in: " + "a" * 198 + " /"
    assert said[3] == "  all of it: sigwrap approvals --full 3f9a10"


def test_what_would_be_cut_by_a_little_is_not_cut() -> None:
    assert lines(what="a" * 1_700)[1] == "    " + "a" * 1_700


def test_nothing_can_be_faked_by_a_name() -> None:
    said = lines(
        process="x\r\nsigwrap:",
        what="ls\x1b[2J",
        files=("/tmp/a, then /usr/bin/ls",),
        folder="/tmp/\x9b2J\n  rule harmless",
        rule="r\x1b",
        message="\u202e",
        note="\n",
    )
    assert said[:-1] == [
        "sigwrap: $'x\\r\\nsigwrap:' (pid 7, depth 2) wants to run",
        "    ls\\e[2J",
        "  file '/tmp/a, then /usr/bin/ls'",
        "  folder $'/tmp/\\u009b2J\\n  rule harmless'",
        "  note \\n",
        "  rule r\\e of mine: \\u202e [3f9a10]",
    ]


def test_commands_name_the_store_where_they_would_look_elsewhere() -> None:
    home = {"HOME": "/home/a"}
    assert store_option("/home/a/.local/state/sigwrap", home) == ""
    assert store_option("/srv/my store", home) == "--store '/srv/my store'"
    assert store_option("/srv/x", {**home, "SIGWRAP_STORE": "/srv/x"}) == "--store /srv/x"
    assert store_option("/srv/x", {"HOME": "nowhere"}) == "--store /srv/x"
    session = Session("mine", "--store /srv/x")
    assert session.command("approve", "3f9a10") == "sigwrap approve 3f9a10 --store /srv/x"
