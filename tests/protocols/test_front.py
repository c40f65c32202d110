"""What one end of the channel sends is called at the other."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import sigwrap
from sigwrap.front.messages import Channel, Place, Sender
from sigwrap.front.process import FrontProcess
from sigwrap.session.front_link import FrontLink

SENDER = Sender(12, 1000, Place.OUTSIDE, "a name \udcff\n").payload
SENT = re.compile(r"(?:channel|front|supervisor)\.send\(\s*\"(\w+)\"")


class Receiver:
    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *words: self.calls.append((name, *words))


def received(*message: object) -> list[tuple[object, ...]]:
    ours, theirs = Channel.pair()
    receiver = Receiver()
    try:
        name, *words = message
        ours.send(str(name), *words)
        theirs.receive(receiver)
        return receiver.calls
    finally:
        ours.close()
        theirs.close()


@pytest.mark.parametrize(
    "words",
    [(), (2, True, False, SENDER), ("a reason",), ((b"A", b"\xff"),), ({b"A": b"\xff"},)],
)
def test_each_message_arrives_as_it_was(words: tuple[object, ...]) -> None:
    assert received("name", *words) == [("on_name", *words)]


@pytest.mark.parametrize("character", ["x", "\U0001f600", "\udcff"])
def test_a_long_text_is_cut(character: str) -> None:
    assert received("name", character * 100_000) == [("on_name", character * 4096)]


def test_each_message_that_is_sent_has_a_receiver() -> None:
    sent = {
        name
        for file in Path(inspect.getfile(sigwrap)).parent.rglob("*.py")
        for name in SENT.findall(file.read_text())
    }
    received = {
        name.removeprefix("on_")
        for end in (FrontProcess, FrontLink)
        for name in vars(end)
        if name.startswith("on_")
    }
    assert len(sent) > 10
    assert sent == received


def test_a_closed_end_is_noticed() -> None:
    ours, theirs = Channel.pair()
    ours.close()
    receiver = Receiver()
    theirs.receive(receiver)
    assert receiver.calls == []
    assert theirs.is_closed
    theirs.send("name")
    theirs.close()
