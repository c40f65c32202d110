from __future__ import annotations

from typing import Any

import pytest

from sigwrap.cli.replay import state_after
from sigwrap.report.check.verify import verify_session
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.layout import Style
from sigwrap.report.forms.text import Page, render_text
from tests.report.conftest import SECOND, STARTED_NS, Scenario, Scenarios


def report(
    made: Any,
    ending: Ending = Ending.NOT_CLEAN,
    key: bytes | None = None,
    columns: int = 0,
    *,
    tree: bool = False,
) -> str:
    fold = Summary()
    verification = verify_session(made.session, key, and_also=fold.add)
    page = Page(utc=True, now_ns=STARTED_NS + 90 * SECOND, columns=columns, tree=tree)
    return render_text(fold.end(ending), verification, page)


def section(title: str, text: str) -> list[str]:
    _, _, rest = text.partition(f"\n\n{title}\n")
    return [line.strip() for line in rest.partition("\n\n")[0].splitlines()]


def test_the_whole_report_of_a_small_session(made: Scenario) -> None:
    made.execute(10, 1, "npm", "start")
    made.execute(11, 10, "sh", "-c", "node server.js")
    made.execute(11, 10, "node", "server.js")
    for pid in (12, 13, 14):
        made.execute(pid, 11, "git", "status")
        made.exit(pid, 1 if pid == 14 else 0)
    made.signal("SIGTERM", "node", "npm", "parent")
    sent = {"signal": 15, "signal_name": "SIGTERM", "origin": "process"}
    made.add("interrupt_received", 7, **sent, sender_pid=7, sender_cmd="kill 5")
    made.add("interrupt_escalated", 1, reason="second interrupt", processes=2)
    made.exit(11, None, "SIGKILL")
    made.exit(10, 130)
    head = made.end(exit_status=130)
    assert (
        report(made, tree=True)
        == f"""\
Exited, exit 130, 2.50 s. Nothing was denied.

command  npm start
started  2025-11-21 06:03:20 UTC, 1 min ago, by ann (uid 1000) on box, in /project
session  s1 (demo), sigwrap 0.1.0
policy   builtin:record abcd
counts   6 commands (6 audited), 1 signal (1 audited)
log      16 events, hash chain intact (no key), head {head}

Needs attention
  7 audited: git (3), npm, sh, node, SIGTERM to npm (11, parent) (--only audited)

Interrupts
     +11.000 s  received SIGTERM from 7 "kill 5"
     +12.000 s  killed the tree (2 processes): second interrupt

Killed by a signal
     +13.000 s  pid 11 comm  exit 137: SIGKILL from sigwrap: second interrupt

Failed commands
        1  exit 1  git status
        1  exit 130  npm start

What the command did (1 step)
     +1.00 s  exit 130  npm start  (ran node, git)

Signals
        1  SIGTERM  node -> npm (parent)  audited

Processes (5)
  10 npm start  (failed)
    11 sh -c 'node server.js'
      => 11 node server.js  (1 killed by SIGKILL)
        12 git status  (x3, 1 failed)"""
    )
    short = report(made)
    assert "Processes" not in short and "Signals" not in short
    assert short.endswith("\nall of it: sigwrap report s1 --tree (5 processes), or --format html")


def test_what_runs_and_what_was_lost_is_said(made: Scenario) -> None:
    made.execute(10, 1, "npm")
    assert "Processes (1, 1 with no recorded end)" in report(made, tree=True)
    assert "Processes (1, 1 running)" in report(made, Ending.RUNNING, tree=True)
    assert "LOST" not in report(made)
    made.end(unrecorded=4)
    assert "LOST     4 events could not be recorded and are not counted below" in report(made)


def test_a_broken_or_unchecked_chain_is_said_at_once(scenario: Scenarios) -> None:
    made = scenario(key=b"secret")
    made.end()
    for key, said in (
        (b"secret", "2 events, hash chain intact (with the key)"),
        (b"wrong", "2 events, NOT INTACT: row 1: its hash"),
        (None, "2 events, not checked: the log is keyed: set $SIGWRAP_KEY"),
    ):
        assert f"\nlog      {said}" in report(made, key=key)


def test_what_was_not_simply_let_through_comes_first_with_its_rule(made: Scenario) -> None:
    made.execute(10, 1, "sh")
    for n, folder in enumerate(("/usr/local/bin", "/usr/bin", "/bin")):  # a shell that tries PATH
        rm: dict[str, Any] = {"path": f"{folder}/rm", "message": "not that", "retry": n > 0}
        made.deny(11, 10, "no-rm", "rm", "-rf", "/", **rm)
    made.add("approval_denied", 12, kind="exec", reason="no answer")
    made.deny(12, 10, "installs", "npm", "install", reason="not approved by ann")
    made.execute(12, 10, "git", "reset", "--hard")
    made.add("limit_exceeded", 12, limit="max_execs", effect="terminated", reason="9 are over 8")
    text = report(made)
    assert "counts   4 commands (2 denied, 2 audited)\n" in text
    assert "answers  1 denied (to approval requests)\n" in text
    assert section("Needs attention", text) == [
        "denied  rm -rf /  (rule no-rm: not that), event 3",
        "by sh (10)",
        "denied  npm install  (rule installs: not approved by ann), event 7",
        "by sh (10)",
        "look  git reset --hard may have discarded uncommitted changes (12, event 8)",
        "2 audited: sh, git (--only audited)",
        "proposed rules: sigwrap policy learn s1",
    ]
    assert section("Session events", text) == [
        "+8.000 s  the limit max_execs ended the run: 9 are over 8"
    ]


def test_on_a_terminal_no_line_is_wider_than_it(made: Scenario) -> None:
    made.execute(10, 1, "sh", "-c", "x" * 300)
    message = "a reason that is " + "very " * 40 + "long"
    made.deny(10, 1, "no-rm", "rm", *(f"file{number}" for number in range(60)), message=message)
    made.signal("SIGTERM", "node", "npm", "parent")
    made.add("interrupt_received", 1, signal_name="SIGINT", sender_cmd="y" * 200, sender_pid=7)
    made.end()
    for columns in (80, 200):
        lines = report(made, columns=columns, tree=True).splitlines()
        assert [line for line in lines if len(line) > columns] == []
    assert "x" * 300 in report(made, tree=True)


def test_what_waits_for_an_answer_is_said_while_it_can_have_one(made: Scenario) -> None:
    made.add("approval_requested", 10, approval_id="a1", what="npm install", rule_name="ask")
    assert section("Approval requests", report(made, Ending.RUNNING)) == [
        "+1.000 s  npm install  (rule ask): sigwrap approve a1"
    ]
    assert section("Approval requests", report(made)) == []


def test_recordings_are_listed_with_their_sizes_as_far_as_they_got(made: Scenario) -> None:
    made.add("io_recorded", 10, stream="stdout", offset=0, size=3, text="abc")
    made.add("io_recorded", 10, stream="stdout", offset=3, size=2, text="de")
    made.add("io_recorded", 11, stream="stderr", offset=0, size=1, text="x")
    made.add("recording_ended", 11, stdin=0, stdout=0, stderr=1)
    made.add("recording_ended", 12, stdin=1, stdout=2, stderr=0, reason="the log was full")
    made.add("recording_ended", 13, stdin=0, stdout=5)
    assert section("Recorded (sigwrap replay --recorded stdout)", report(made)) == [
        "+4.000 s  pid 11  stdin 0 B, stdout 0 B, stderr 1 B",
        "+5.000 s  pid 12  stdin 1 B, stdout 2 B, stderr 0 B  the log was full",
        "+6.000 s  pid 13  stdin 0 B, stdout 5 B, stderr ? B",
        "+1.000 s  pid 10  stdin 0 B, stdout 5 B, stderr 0 B  its end is not recorded",
    ]


@pytest.mark.parametrize(("status", "code"), [(0, "32"), (3, "1;31"), (None, "1;31")])
def test_the_verdict_is_green_only_for_a_status_of_0(
    made: Scenario, status: int | None, code: str
) -> None:
    made.end(exit_status=status)
    page = Page(style=Style(colour=True))
    text = render_text(state_after(made.session.events(), 9), page=page)
    assert text.startswith(
        f"\x1b[{code}mExited, exit {status}, 2.50 s. Nothing was denied.\x1b[0m\n"
    )


def test_a_large_report_says_what_it_leaves_out(made: Scenario) -> None:
    for pid in range(10, 110):
        made.execute(pid, 1, f"program{pid}")
        made.signal("SIGTERM", f"program{pid}", "sh", "parent")
        made.exit(pid, None, "SIGKILL")
    text = report(made, tree=True)
    assert "and 50 more" in text
    assert "... 40 more lines" in text
    assert text.count("     85  others") == 1


def test_colour_is_for_terminals_that_want_it() -> None:
    assert Style.suited_to(True, {}).colour
    assert Style.suited_to(True, {"NO_COLOR": ""}).colour
    assert not Style.suited_to(True, {"NO_COLOR": "1"}).colour
    assert not Style.suited_to(True, {"TERM": "dumb"}).colour
    assert not Style.suited_to(False, {}).colour
    assert Style(colour=True).bad("x") == "\x1b[1;31mx\x1b[0m"
    assert Style(colour=False).bad("x") == "x"


def test_what_was_written_is_told_by_folder(made: Scenario) -> None:
    made.execute(10, 1, "tar", "-x")
    for n in range(100):
        made.add("file_audited", 10, operation="create", path=f"/p/tree/{n}/f", rule_name="all")
    made.add(
        "file_audited", 10, operation="rename", path="/p/a\x1b", to="/p/b\x1b/c", rule_name="all"
    )
    made.add("file_audited", 10, operation="unseen", path="", rule_name="builtin:unseen")
    made.end()
    text = report(made)
    assert section("Files changed", text) == [
        "100  /p/tree/**  100 made",
        "1  /p/b\\e  1 renamed",
        "1  changes in places that could not be watched",
    ]
    assert "changes  102: 100 made, 1 renamed, 1 unseen" in text
    assert section("Needs attention", text) == ["1 audited: tar (--only audited)"]
