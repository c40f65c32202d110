"""Questions and answers through the control socket, as a user gives them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from sigwrap.approve.control_client import ask_all, ask_one
from sigwrap.errors import SessionError
from sigwrap.log.catalog import session_ids
from sigwrap.watch.actions import carry_out
from sigwrap.watch.board import Approve, Interrupt
from sigwrap.watch.source import Source
from tests.support.harness import REFUSED, UNDER_TEST, Sigwrap
from tests.support.waiting import PATIENCE_S, Watch, await_that

Make = Callable[..., Any]


def settled(subject: Any) -> list[tuple[str, str, str]]:
    types = ("approval_granted", "approval_denied", "approval_expired")
    return [
        (event.type, event.payload["reason"], event.payload["by"])
        for event in subject.events(*types)
    ]


def test_yes(asking: Make) -> None:
    subject, approval_id = asking().start_and_ask()
    folder = subject.store / "control"
    assert folder.stat().st_mode & 0o777 == 0o700
    [path] = folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    said = subject.sigwrap("approve", approval_id)
    assert said.returncode == 0, said.stderr
    assert said.stdout == f"{approval_id} approved in session s1\n  git push --force\n"
    assert subject.answer() == (approval_id, True, "granted")
    [(kind, reason, by)] = settled(subject)
    assert (kind, reason) == ("approval_granted", "granted")
    assert by.startswith("uid ")
    [asked] = subject.events("approval_requested")
    assert asked.pid == 4312
    assert asked.payload["asked"] == ["control"]


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("deny", "--approvals deny"),
        ("tty", "there is no terminal (see sigwrap help approvals)"),
        ("auto", "there is no terminal (see sigwrap help approvals)"),
    ],
)
def test_where_nobody_can_answer_it_is_no_at_once(asking: Make, mode: str, why: str) -> None:
    subject = asking(mode).start()
    approval_id = subject.ask()
    said = subject.next()
    assert (said["answer"], said["granted"], said["reason"]) == (approval_id, False, "nobody")
    assert why in said["message"]
    assert [kind for kind, _, _ in settled(subject)] == ["approval_denied"]


def test_a_session_that_ends_withdraws_what_is_open(asking: Make) -> None:
    subject, approval_id = asking().start_and_ask()
    with Watch([subject.pid]) as watch:
        subject.quit()
        assert subject.answer() == (approval_id, False, "withdrawn")
        watch.await_ends()
    assert not list((subject.store / "control").iterdir())
    said = subject.sigwrap("approve", approval_id)
    assert said.returncode == 125
    assert "a session's requests end with the session" in said.stderr


def test_the_right_session_of_several_gets_the_answer(asking: Make) -> None:
    first, second = asking().start(), asking().start()
    first.ask("a")
    approval_id = second.ask("b")
    listing = first.sigwrap("watch").stdout
    assert "session s1" in listing and "session s2" in listing
    assert second.sigwrap("deny", approval_id).returncode == 0
    assert second.answer() == (approval_id, False, "denied")
    assert "pong" in first.ping()  # and nothing before it


def test_names_can_not_paint_on_the_terminal(asking: Make) -> None:
    subject = asking().start()
    subject.ask("rm \x1b[2J\r\nsigwrap: all is well", process="\x1b]0;x\x07")
    listing = subject.sigwrap("watch").stdout
    assert "\x1b" not in listing and "\r" not in listing
    assert "rm \\e[2J\\r\\nsigwrap" in listing


def test_no_long_word_looks_like_a_line_of_ours_on_a_terminal(asking: Make) -> None:
    subject = asking().start()
    subject.ask("ls " + " " * 500 + "x" * 500 + "        file /usr/bin/ls")
    line = [UNDER_TEST, "watch", "--format", "text", "--store", str(subject.store)]
    terminal = subject.subject.terminal_for(line)
    first, *others, rule, rest = terminal.output.rest().splitlines()
    assert b"wants to run ls" in first
    assert len(others) > 10
    assert all(row.startswith(b"    | ") for row in [*others, rest])
    assert rule.startswith(b"        rule ask-push, policy mine")
    assert all(len(row) <= 80 for row in [first, *others, rule, rest])


def test_all_of_a_long_one(asking: Make) -> None:
    subject = asking().start()
    what = "rm " + "a" * 60_000 + " /"
    approval_id = subject.ask(what, files=["/usr/bin/rm"], folder="/project", note="look twice")
    listed = subject.sigwrap("watch").stdout
    assert "a ... and 56005 more characters\n" in listed
    command = f"sigwrap watch --full {approval_id} --store {subject.store}"
    assert f"in full: {command}\n" in listed
    for line in ("file /usr/bin/rm", "directory /project", "note look twice"):
        assert f"\n        {line}\n" in listed
    full = subject.sigwrap("watch", "--full", approval_id)
    assert full.stdout.startswith(f"{approval_id}  bash (pid 4312, depth 2) wants to run {what}\n")
    assert "all that is known" not in full.stdout
    [event] = subject.events("approval_requested")
    assert event.payload["what"].endswith("a ... and 59005 more characters")
    assert (event.payload["files"], event.payload["cwd"]) == (["/usr/bin/rm"], "/project")
    missing = subject.sigwrap("watch", "--full", "zzzzzz")
    assert missing.returncode == 125
    assert f"open: {approval_id}" in missing.stderr
    nearly = subject.sigwrap("approve", f"{approval_id}0")
    assert f'did you mean "{approval_id}"?' in nearly.stderr


def test_what_a_rule_for_it_would_be_about_is_in_the_log_unless_it_is_long(asking: Make) -> None:
    subject = asking().start()
    short = {"path": "/usr/bin/rm", "argv": ["rm", "x"]}
    subject.ask("rm x", exec_payload=short)
    subject.ask("rm y", exec_payload={**short, "argv": ["rm", "y" * 2_048]})
    told, untold = (each.payload for each in subject.events("approval_requested"))
    assert told["exec"] == short
    assert "exec" not in untold
    assert untold["what"] == "rm y"


def test_no_more_than_a_person_could_answer(asking: Make) -> None:
    """Each of them holds descriptors of the supervisor."""
    subject = asking().start()
    ids = [subject.ask(f"number {number}") for number in range(64)]
    too_many = subject.ask("one more")
    said = subject.next()
    assert (said["answer"], said["granted"], said["reason"]) == (too_many, False, "nobody")
    assert said["message"] == "64 other requests are open already"
    assert subject.sigwrap("deny", ids[0]).returncode == 0
    assert subject.answer() == (ids[0], False, "denied")
    assert (
        json.loads(subject.sigwrap("watch", "--format", "json").stdout)["requests"][-1]["id"]
        == ids[-1]
    )
    subject.ask("and this has room again")
    assert subject.ping()


def test_each_expires_in_its_turn(asking: Make) -> None:
    subject = asking(timeout_s=0.2).start()
    for approval_id in subject.ask_at_once("a", "b"):
        assert subject.answer() == (approval_id, False, "expired")
    third = subject.ask("c")
    assert subject.answer() == (third, False, "expired")


@pytest.mark.usefixtures("held_proc")
def test_what_was_meant_for_another_session_is_not_done(asking: Make) -> None:
    """A process in the session can rename the socket to another session's."""
    subject, approval_id = asking().start_and_ask()
    for order in (Approve("s1", approval_id, False), Interrupt("s1")):
        other = subject.store / "control" / "s2.sock"
        other.symlink_to("s1.sock")
        with pytest.raises(SessionError, match="this is session s1"):
            carry_out(str(subject.store), order._replace(session_id="s2"))
        other.unlink()
    subject.quit()


@pytest.mark.usefixtures("held_proc")
def test_however_many_names_a_socket_has_it_is_asked_once(asking: Make) -> None:
    subject = asking().start()
    subject.ask()
    control = subject.store / "control"
    (control / "s2.sock").symlink_to("s1.sock")
    for number in range(3_000):
        (control / f"a{number}.sock").hardlink_to(control / "s1.sock")
    answered, failures = ask_all(str(subject.store), {"do": "list"})
    assert [each.session_id for each in answered] == ["s1"]
    assert not failures
    subject.quit()


@pytest.mark.usefixtures("held_proc")
def test_what_has_the_name_of_another_session_is_not_believed(asking: Make) -> None:
    subject = asking().start()
    subject.ask()
    control = subject.store / "control"
    (control / "s1.sock").rename(control / "s2.sock")
    with closing(Source(str(subject.store))) as source:
        source.start()
        problem = "session s2: another session answered on its socket"
        await_that(lambda: problem in source.board().problems)
        assert not source.board().waiting
    subject.quit()


@pytest.mark.usefixtures("held_proc")
def test_one_that_runs_and_whose_socket_was_taken_away_is_named(
    asking: Make, sigwrap: Sigwrap
) -> None:
    """A process in the session can do it again and again."""
    subject = asking().start()
    subject.ask()
    (subject.store / "control" / "s1.sock").unlink()
    done = sigwrap.native(UNDER_TEST, "watch", "--format", "text", "--store", str(subject.store))
    assert done.returncode == REFUSED
    assert b"session s1 is running but does not answer" in done.stderr
    with closing(Source(str(subject.store))) as source:
        source.start()
        name = "session s1 is running but"
        await_that(lambda: any(name in each for each in source.board().problems))
    subject.quit()


@pytest.mark.usefixtures("held_proc")
def test_no_number_that_is_told_of_a_process_ends_the_session(sigwrap: Sigwrap) -> None:
    process, _ = sigwrap.start_ready("--no-report", "--", "sh", "-c", "echo ready; read line")
    (session_id,) = session_ids(str(sigwrap.store))
    for pid in (-1, 0, 1 << 31, 1 << 32, (1 << 63) - 1, 10**26):
        request = {"do": "refused", "pid": pid}
        reply = ask_one(str(sigwrap.store), session_id, request)
        assert (reply["ok"], reply["recorded"]) == (True, False)
    process.stdin.close()
    process.wait(PATIENCE_S)
    assert sigwrap.sealed_events("session_ended")
