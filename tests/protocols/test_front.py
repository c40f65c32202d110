"""What one end of the channel sends is what the other receives."""

from __future__ import annotations

import pytest

from sigwrap.front import messages
from sigwrap.front.messages import Channel, Message, Place, Sender

SENDER = Sender(12, 1000, Place.OUTSIDE, "a name \udcff\n").payload
MESSAGES: list[Message] = [
    messages.InterruptArrived(2, from_terminal=True, ends_run=False, sender=SENDER),
    messages.InterruptWithdrawn(),
    messages.SignalForCommand(10, messages.NO_SENDER.payload),
    messages.KillTree("a reason"),
    messages.CommandStarted(4242),
    messages.Forget((b"A", b"\xff", b"C", b"D")),
    messages.Forget(()),
    messages.Forgotten(),
    messages.CommandEnded(),
    messages.NothingMore(),
    messages.DiedOf(9),
    messages.InterruptDemanded("somewhere \udcff"),
    messages.HeldUp(125),
    messages.Notice("3f9a10", "May it?", "a rule", "/a/store"),
    messages.NotifyFailed(),
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
    assert {type(each) for each in MESSAGES} == set(messages._KINDS)


@pytest.mark.parametrize("character", ["x", "\U0001f600", "\udcff"])
def test_a_long_text_is_cut(character: str) -> None:
    (notice,) = _received(messages.Notice(*[character * 100_000] * 4))
    assert notice == messages.Notice(*[character * 4096] * 4)


def test_of_too_many_names_all_are_forgotten() -> None:
    assert _received(messages.Forget((b"x" * 4000, b"y" * 97))) == [messages.Forget(())]


def test_a_closed_end_is_noticed() -> None:
    ours, theirs = Channel.pair()
    ours.close()
    assert theirs.receive() == []
    assert theirs.is_closed
    theirs.send(messages.Forgotten())
    theirs.close()
