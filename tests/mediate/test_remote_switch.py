"""What an answer of the remote kill switch says, and what follows from missed polls."""

from __future__ import annotations

from sigwrap.control.remote_steps import (
    Alive,
    Kill,
    Killed,
    Missed,
    RecordMissed,
    RecordReached,
    RemoteSwitchState,
    TellNeverReached,
    read_answer,
)

MISS = Missed("refused")


def test_an_answer() -> None:
    for body, answer in (
        (b'{"killed": true, "reason": "stop"}', Killed("stop")),
        (b'{"killed": true}', Killed("no reason given")),
        (b'{"killed": true, "reason": {"a": 1}}', Killed("no reason given")),
        (b'{"killed": true, "reason": "a\\n b\\u001b[2J"}', Killed("a b\\e[2J")),
        (b'{"killed": true, "reason": "\xff"}', Missed("the answer is not UTF-8")),
        (b'{"killed": false, "reason": "no"}', Alive()),
        (b"{}", Alive()),
        (b' {"a": [{"killed": true}]}\n', Alive()),
        (b'{"killed": "true"}', Missed("in the answer, killed is neither true nor false")),
        (b'{"killed": 1}', Missed("in the answer, killed is neither true nor false")),
        (b'{"killed": 0}', Missed("in the answer, killed is neither true nor false")),
        (b'{"killed": null}', Missed("in the answer, killed is neither true nor false")),
        (b"true", Missed("the answer is not a JSON object")),
        (b'[{"killed": true}]', Missed("the answer is not a JSON object")),
        (b"", Missed("the answer is not JSON")),
        (b"<html>killed: true</html>", Missed("the answer is not JSON")),
        (b'{"killed": true', Missed("the answer is not JSON")),
        (b'{"killed": true} {}', Missed("the answer is not JSON")),
        (b'\xef\xbb\xbf{"killed": true}', Missed("the answer is not JSON")),
        (b'{"killed": true, "n": ' + b"1" * 5000 + b"}", Missed("the answer is not JSON")),
        (b"[" * 65_000, Missed("the answer is not JSON")),
        (b'{"a":' * 9000 + b"1" + b"}" * 9000, Missed("the answer is not JSON")),
    ):
        assert read_answer(body) == answer


def test_a_long_reason_is_cut_to_a_line() -> None:
    for char in ("x", "\\u001b", "\\ud800"):
        found = read_answer(b'{"killed": true, "reason": "' + char.encode() * 9000 + b'"}')
        assert isinstance(found, Killed)
        assert len(found.reason) == 201
        assert found.reason.endswith("…")
        assert found.reason.isprintable()


def state(*, fail_closed: bool = False) -> RemoteSwitchState:
    return RemoteSwitchState("https://example/x", fail_closed=fail_closed)


def test_a_kill_is_one_whatever_is_heard_before_and_then() -> None:
    assert state().on(Alive()) == ()
    subject = state()
    assert subject.on(Killed("stop")) == (Kill("stop"),)
    assert [subject.on(each) for each in (Killed("more"), Alive(), MISS)] == [(), (), ()]
    subject = state()
    subject.on(MISS)
    assert subject.on(Killed("stop")) == (RecordReached(1), Kill("stop"))


def test_the_first_miss_is_told_where_nothing_was_reached_yet() -> None:
    subject = state()
    assert subject.on(MISS) == (RecordMissed("refused", 1), TellNeverReached("refused"))
    assert subject.on(Alive()) == (RecordReached(1),)
    assert subject.on(MISS) == (RecordMissed("refused", 1),)


def test_of_a_long_row_the_first_and_every_30th_are_recorded() -> None:
    subject = state()
    subject.on(Alive())
    recorded = [step for _ in range(100) for step in subject.on(MISS)]
    assert recorded == [RecordMissed("refused", count) for count in (1, 30, 60, 90)]
    assert subject.on(Alive()) == (RecordReached(100),)


def test_fail_closed_takes_three_in_a_row() -> None:
    subject = state(fail_closed=True)
    for answer in (MISS, MISS, Alive(), MISS, MISS):
        assert not any(isinstance(step, Kill) for step in subject.on(answer))
    assert subject.on(MISS) == (
        RecordMissed("refused", 3),
        Kill("no answer from https://example/x for 3 polls (fail closed)"),
    )
    assert subject.on(MISS) == ()
