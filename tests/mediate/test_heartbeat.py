"""A supervisor that doesn't go on is noticed, and one that is slow isn't taken for it."""

from __future__ import annotations

from sigwrap.front.messages import Heartbeat


def test_a_count_that_stays_is_missed_at_the_third_look_in_vain() -> None:
    heartbeat = Heartbeat()
    assert [heartbeat.is_missing(count) for count in (1, 2, 2, 2, 2)] == [False] * 4 + [True]
    heartbeat = Heartbeat()
    assert not any(heartbeat.is_missing(count) for count in (1, 1, 1, 2, 2, 2, 255, 1, 1, 1))
    heartbeat = Heartbeat()
    assert not any(heartbeat.is_missing(count) for count in (0, 0, 0, 0, 7, 0, 0, 0, 0))
