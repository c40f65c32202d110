"""What one end of the channel sends is what the other receives."""

from __future__ import annotations

import pytest

from sigwrap.protocols import front
from sigwrap.protocols.front import Channel, Message, Place, Sender

SENDER = Sender(12, 1000, Place.OUTSIDE, "a name \udcff\n")
MESSAGES: list[Message] = [
    front.InterruptArrived(2, from_terminal=True, ends_run=False, sender=SENDER),
    front.InterruptWithdrawn(),
    front.SignalForCommand(10, front.NO_SENDER),
    front.KillTree("a reason"),
    front.CommandStarted(4242),
    front.Forget((b"A", b"\xff", b"C", b"D")),
    front.Forget(()),
    front.Forgotten(),
    front.CommandEnded(),
    front.NothingMore(),
    front.DiedOf(9),
    front.InterruptDemanded("somewhere \udcff"),
    front.HeldUp(125),
    front.Notice("3f9a10", "May it?", "a rule", "/a/store"),
    front.NotifyFailed(),
]


def _received(*messages: Message) -> list[Message]:
    ours, theirs = Channel.pair()
    try:
        for message in messages:
            ours.send(message)
        return theirs.receive()
    finally:
        ours.close()
        theirs.close()


def test_each_message_arrives_as_it_was() -> None:
    assert _received(*MESSAGES) == MESSAGES
    assert {type(each) for each in MESSAGES} == set(front._KINDS)


@pytest.mark.parametrize("character", ["x", "\U0001f600", "\udcff"])
def test_a_long_text_is_cut(character: str) -> None:
    (notice,) = _received(front.Notice(*[character * 100_000] * 4))
    assert notice == front.Notice(*[character * 4096] * 4)
    sender = SENDER._replace(command=character * 100_000)
    (signal,) = _received(front.SignalForCommand(10, sender))
    assert signal == front.SignalForCommand(10, sender._replace(command=character * 4096))


def test_of_too_many_names_all_are_forgotten() -> None:
    assert _received(front.Forget((b"x" * 4000, b"y" * 97))) == [front.Forget(())]


def test_a_closed_end_is_noticed() -> None:
    ours, theirs = Channel.pair()
    ours.close()
    assert theirs.receive() == []
    assert theirs.is_closed
    theirs.send(front.Forgotten())
    theirs.close()
