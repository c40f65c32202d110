"""Questions and answers through the control socket, as a user gives them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.waiting import await_that

Make = Callable[..., Any]


def settled(subject: Any) -> list[tuple[str, str, str]]:
    types = ("approval_granted", "approval_denied", "approval_expired")
    return [
        (event.type, event.payload["reason"], event.payload["by"])
        for event in subject.events(*types)
    ]


def test_yes(asking: Make) -> None:
    subject = asking().start()
    approval_id = subject.ask()
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


def test_always_covers_the_next_one_too(asking: Make) -> None:
    subject = asking().start()
    first, same, other = subject.ask("a"), subject.ask("a"), subject.ask("b")
    said = subject.sigwrap("approve", first, "--always")
    assert "and 1 more of the same" in said.stdout
    assert [subject.answer()[0] for _ in range(2)] == [first, same]
    later = subject.ask("a")
    assert subject.answer() == (later, True, "granted")
    assert subject.events("approval_granted")[-1].payload["always"] is True
    listed = json.loads(subject.sigwrap("approvals", "--json").stdout)
    assert [each["id"] for each in listed["requests"]] == [other]


def test_timeout_then_a_late_answer_is_told_so(asking: Make) -> None:
    subject = asking(timeout_s=0.05).start()
    approval_id = subject.ask()
    assert subject.answer() == (approval_id, False, "expired")
    said = subject.sigwrap("approve", approval_id)
    assert said.returncode == 125
    assert f"too late: {approval_id} was expired" in said.stderr
    assert [kind for kind, _, _ in settled(subject)] == ["approval_expired"]


@pytest.mark.parametrize(
    ("mode", "why"), [("deny", "--approvals deny"), ("tty", "there is no terminal")]
)
def test_where_nobody_can_answer_it_is_no_at_once(asking: Make, mode: str, why: str) -> None:
    subject = asking(mode).start()
    approval_id = subject.ask()
    said = subject.next()
    assert (said["answer"], said["granted"], said["reason"]) == (approval_id, False, "nobody")
    assert why in said["message"]
    assert [kind for kind, _, _ in settled(subject)] == ["approval_denied"]


def test_a_session_that_ends_withdraws_what_is_open(asking: Make) -> None:
    subject = asking().start()
    approval_id = subject.ask()
    subject.quit()
    assert subject.answer() == (approval_id, False, "withdrawn")
    folder = subject.store / "control"
    await_that(lambda: not list(folder.iterdir()))
    said = subject.sigwrap("approve", approval_id)
    assert said.returncode == 125
    assert "a session that is over takes no answers" in said.stderr


def test_an_unknown_id_gets_the_nearest(asking: Make) -> None:
    subject = asking().start()
    approval_id = subject.ask()
    wrong = ("0" if approval_id[0] != "0" else "1") + approval_id[1:]
    said = subject.sigwrap("approve", wrong)
    assert said.returncode == 125
    assert f"did you mean {approval_id}?" in said.stderr


def test_the_right_session_of_several_gets_the_answer(asking: Make) -> None:
    first, second = asking().start(), asking().start()
    first.ask("a")
    approval_id = second.ask("b")
    listing = first.sigwrap("approvals").stdout
    assert "session s1" in listing and "session s2" in listing
    assert second.sigwrap("deny", approval_id).returncode == 0
    assert second.answer() == (approval_id, False, "denied")
    assert "pong" in first.ping()  # and nothing before it


def test_names_can_not_paint_on_the_terminal(asking: Make) -> None:
    subject = asking().start()
    subject.ask("rm \x1b[2J\r\nsigwrap: all is well", process="\x1b]0;x\x07")
    listing = subject.sigwrap("approvals").stdout
    assert "\x1b" not in listing and "\r" not in listing
    assert "rm \\e[2J\\r\\nsigwrap" in listing


def test_a_store_with_a_long_path(asking: Make, tmp_path: Any) -> None:
    subject = asking(store=tmp_path / ("d" * 100) / ("e" * 100)).start()
    approval_id = subject.ask()
    assert subject.sigwrap("approve", approval_id).returncode == 0
    assert subject.answer() == (approval_id, True, "granted")


def test_the_socket_is_for_its_user_only(asking: Make) -> None:
    subject = asking().start()
    folder = subject.store / "control"
    assert folder.stat().st_mode & 0o777 == 0o700
    [path] = folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
