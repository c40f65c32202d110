"""While the front process is stopped, somebody else looks whether the loop goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from sigwrap.kernel import procfs
from sigwrap.session import front_link
from sigwrap.session.front_link import JobControl
from tests.support.stand_in import session_of


@pytest.fixture
def child() -> Iterator[int]:
    """The front process's part, and COMMAND's."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process.pid
        process.kill()


def _stopped(child: int, beats: Iterator[int]) -> None:
    class Channel:
        @property
        def beats(self) -> int:
            return next(beats)

    facts = SimpleNamespace(command_pid=child, waited_for_pid=child, bootloader_pid=0)
    JobControl(session_of(facts=facts, channel=Channel())).stop_front()
    _, status = os.waitpid(child, os.WUNTRACED)
    assert os.WSTOPSIG(status) == signal.SIGSTOP


def test_it_goes_on_when_the_beat_is_missing(child: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_link, "LOOKED_AT_EVERY_S", 0.01)
    _stopped(child, iter(lambda: 7, 0))
    _, status = os.waitpid(child, os.WCONTINUED)
    assert os.WIFCONTINUED(status)


def test_it_stays_stopped_while_the_loop_beats(child: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_link, "LOOKED_AT_EVERY_S", 0.01)
    looks, looked = os.pipe()

    def beats() -> Iterator[int]:
        yield from range(1, 20)
        os.write(looked, b"x")
        while True:
            yield 0

    _stopped(child, beats())
    os.read(looks, 1)
    os.close(looks)
    os.close(looked)
    found = procfs.stat(child)
    assert found is not None and found.state == "T"
