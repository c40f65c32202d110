from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sigwrap.report.style import Style
from sigwrap.report.summary import Ending, SummaryFold
from sigwrap.report.text import render_text, render_verification
from sigwrap.report.verify import verify_session

Scenarios = Callable[..., Any]


def report(made: Any, ending: Ending = Ending.NOT_CLEAN, key: bytes | None = None) -> str:
    fold = SummaryFold()
    verification = verify_session(made.session, key, and_also=fold.add)
    return render_text(fold.result(ending), verification)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigwrap.report.text.local_time", lambda time_ns: "2025-11-21 06:03:20 UTC")


def test_the_whole_report_of_a_small_session(scenario: Scenarios) -> None:
    made = scenario()
    made.execute(10, 1, "npm", "start")
    made.execute(11, 10, "sh", "-c", "node server.js")
    made.execute(11, 10, "node", "server.js")
    for pid in (12, 13, 14):
        made.execute(pid, 11, "git", "status")
        made.exit(pid, 1 if pid == 14 else 0)
    made.signal("SIGTERM", "node", "npm", "parent")
    made.add(
        "interrupt_received",
        7,
        signal=15,
        signal_name="SIGTERM",
        origin="process",
        sender_pid=7,
        sender_cmd="kill 5",
    )
    made.add("interrupt_escalated", 1, reason="second interrupt", processes=2)
    made.exit(11, None, "SIGKILL")
    made.exit(10, 130)
    head = made.end(exit_status=130)
    assert (
        report(made)
        == f"""\
exited: exit status 130 after 2.50 s
16 events, verified, head {head}

session  s1 (demo)
command  npm start
in       /work
by       ann on box, sigwrap 0.1.0
started  2025-11-21 06:03:20 UTC
policy   builtin:record abcd

Events
        6  exec_audited
        5  process_exited
        1  session_started
        1  signal_sent
        1  interrupt_received
        1  interrupt_escalated
        1  session_ended

Decisions
        7  audit

Interrupts
     +11.000 s  received SIGTERM from process, pid 7 kill 5
     +12.000 s  killed the tree (2 processes): second interrupt

Died of a signal
     +13.000 s  pid 11 comm  exit 137: SIGKILL from sigwrap: second interrupt

Who signalled whom
        1  SIGTERM  node -> npm (parent)  audit

Programs run most
        3  /usr/bin/git
        1  /usr/bin/npm
        1  /usr/bin/sh
        1  /usr/bin/node

Processes (5)
  10 npm start  (failed)
    11 sh -c 'node server.js'
      => 11 node server.js  (1 died of SIGKILL)
        12 git status  (x3, 1 failed)"""
    )


def test_the_first_line_is_the_verdict(scenario: Scenarios) -> None:
    made = scenario()
    made.execute(10, 1, "npm")
    assert report(made).startswith("did not end cleanly: ")
    assert "Processes (1, 1 whose end is not recorded)" in report(made)
    assert report(made, Ending.RUNNING).startswith("running for 1.00 s so far")
    assert "Processes (1, 1 running)" in report(made, Ending.RUNNING)
    assert "LOST" not in report(made)
    made.end(unrecorded=4)
    assert report(made).startswith("exited: exit status 0 after 2.50 s")
    assert "LOST     4 events could not be recorded" in report(made)


def test_a_broken_or_unchecked_chain_is_said_in_the_second_line(scenario: Scenarios) -> None:
    made = scenario(key=b"secret")
    made.end()
    assert "verified with the key" in report(made, key=b"secret").splitlines()[1]
    assert "NOT INTACT: row 1: its hash" in report(made, key=b"wrong").splitlines()[1]
    assert "not verified: the log is keyed: set $SIGWRAP_KEY" in report(made).splitlines()[1]


def test_nothing_hostile_reaches_the_terminal(scenario: Scenarios) -> None:
    evil = "\x1b[2J\n\u202e\x07\udcff"
    made = scenario()
    made.execute(10, 1, "sh" + evil, evil)
    made.signal("SIG" + evil, evil, evil, evil)
    made.add("interrupt_received", 1, signal_name=evil, origin=evil, sender_pid=3, sender_cmd=evil)
    made.add("process_exited", 10, comm=evil, exit_code=None, signal_name=evil)
    made.end(reason=evil)
    for line in report(made).split("\n"):
        assert line.isprintable()


def test_a_large_report_says_what_it_leaves_out(scenario: Scenarios) -> None:
    made = scenario()
    for pid in range(10, 110):
        made.execute(pid, 1, f"program{pid}")
        made.signal("SIGTERM", f"program{pid}", "sh", "parent")
        made.exit(pid, None, "SIGKILL")
    made.log.close()
    text = report(made)
    assert "and 50 more" in text
    assert "... 40 more lines are not shown" in text
    assert text.count("     90  others") == 1
    assert text.count("     85  others") == 1


def test_colour_is_for_terminals_that_want_it() -> None:
    assert Style.suited_to(True, {}).colour
    assert Style.suited_to(True, {"NO_COLOR": ""}).colour
    assert not Style.suited_to(True, {"NO_COLOR": "1"}).colour
    assert not Style.suited_to(True, {"TERM": "dumb"}).colour
    assert not Style.suited_to(False, {}).colour
    assert Style(colour=True).bad("x") == "\x1b[1;31mx\x1b[0m"
    assert Style(colour=False).bad("x") == "x"


def test_a_verification_tells_what_it_could_not_see(scenario: Scenarios) -> None:
    made = scenario()
    verification = verify_session(made.session, None)
    assert render_verification("s1", verification, True).splitlines() == [
        "s1: intact, 1 event, checked without a key",
        "it is running",
        f"head {made.log.head}",
        "whether its end was cut off: compare the head, or give it as --head",
    ]
    head = made.end()
    text = render_verification("s1", verify_session(made.session, None, head), False)
    assert text.splitlines() == ["s1: intact, 2 events, checked without a key", f"head {head}"]
