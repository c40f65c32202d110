"""The remote kill switch: its URL, its answers, and the loop's own clock."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.control import remote_switch as module
from sigwrap.control.remote_switch import Answer, Killed, RemoteSwitch, read_answer
from sigwrap.errors import UsageError
from sigwrap.https import NoAnswer
from sigwrap.session.loop import Loop
from sigwrap.session.run_end import SwitchedOff
from tests.support.stand_in import session_of
from tests.support.waiting import PATIENCE_S

OPTION = "--killswitch-url"


# The URL


def switch(url: str) -> RemoteSwitch:
    return RemoteSwitch(url, OPTION, environment={}, fail_closed=False)


def test_a_file() -> None:
    for url, path in [
        ("file:///etc/switch", b"/etc/switch"),
        ("file://localhost/etc/switch?x#y", b"/etc/switch"),
        ("FILE:///a%20b%25/\N{LATIN SMALL LETTER U WITH DIAERESIS} c", b"/a b%/\xc3\xbc c"),
        ("file:///a\udcff\n", b"/a\xff\n"),
    ]:
        assert os.fsencode(switch(url)._file) == path, url
    assert switch("file:///a\x1b[2J?secret")._url == "file:///a\\e[2J"


@pytest.mark.parametrize(
    "url",
    [
        "file://server/switch",
        "file://sérver/switch",
        "file://[/switch",
        "file:///",
        "file://",
        "file:///a%00b",
        "file:/a",
        "ftp://me:secret@example.com/",
    ],
)
def test_not_an_address(url: str) -> None:
    with pytest.raises(UsageError, match=r"^--killswitch-url: .* \(.*file:///PATH\)$") as refused:
        switch(url)
    assert "secret" not in str(refused.value)


def test_who_can_change_a_link_can_change_the_switch(tmp_path: Path) -> None:
    """The list has the folders of each link, also of a link to a link, and ends for a loop."""
    for folder in ("a", "b", "c/d"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "a/one").symlink_to("../b/two")
    (tmp_path / "b/two").symlink_to(tmp_path / "c/d")
    (tmp_path / "loop").symlink_to("loop/x")
    for path, passed in ((f"{tmp_path}/a/one/../x", "abc"), (f"{tmp_path}/loop", "")):
        real = {os.path.realpath(each) for each in module._ways_to(path)}
        assert {"/", str(tmp_path)} < real
        assert {f"{tmp_path}/{folder}" for folder in passed} <= real
    deep = "/x" * 2000
    assert len(module._ways_to(deep)) == 2001


# Answers


def test_what_an_answer_says() -> None:
    for body, answer in (
        (b'{"killed": true, "reason": "stop"}', Killed("stop")),
        (b'{"killed": true}', Killed("no reason given")),
        (b'{"killed": true, "reason": {"a": 1}}', Killed("no reason given")),
        (b'{"killed": true, "reason": "a\\n b\\u001b[2J"}', Killed("a b\\e[2J")),
        (b'{"killed": true, "reason": "\xff"}', "the answer is not JSON"),
        (b'{"killed": false, "reason": "no"}', None),
        (b"{}", None),
        (b' {"a": [{"killed": true}]}\n', None),
        (b'{"killed": "true"}', "in the answer, killed is neither true nor false"),
        (b'{"killed": 1}', "in the answer, killed is neither true nor false"),
        (b'{"killed": 0}', "in the answer, killed is neither true nor false"),
        (b'{"killed": null}', "in the answer, killed is neither true nor false"),
        (b"true", "the answer is not a JSON object"),
        (b'[{"killed": true}]', "the answer is not a JSON object"),
        (b"", "the answer is not JSON"),
        (b"<html>killed: true</html>", "the answer is not JSON"),
        (b'{"killed": true', "the answer is not JSON"),
        (b'{"killed": true} {}', "the answer is not JSON"),
        (b'\xef\xbb\xbf{"killed": true}', "the answer is not JSON"),
        (b'{"killed": true, "n": ' + b"1" * 5000 + b"}", "the answer is not JSON"),
        (b"[" * 65_000, "the answer is not JSON"),
        (b'{"a":' * 9000 + b"1" + b"}" * 9000, "the answer is not JSON"),
    ):
        found: Killed | str | None
        try:
            found = read_answer(body)
        except NoAnswer as missed:
            found = missed.message
        assert found == answer


def test_a_long_reason_is_cut_to_a_line() -> None:
    for char in ("x", "\\u001b", "\\ud800"):
        found = read_answer(b'{"killed": true, "reason": "' + char.encode() * 9000 + b'"}')
        assert isinstance(found, Killed)
        assert len(found.reason) == 200
        assert found.reason.endswith("…")
        assert found.reason.isprintable()


# What follows from answers and misses


MISS = NoAnswer("refused")
URL = "http://127.0.0.1/x"


class Switch:
    """Returns what a remote switch does about an answer."""

    def __init__(self, *, fail_closed: bool = False) -> None:
        self.done: list[object] = []
        self._switch = RemoteSwitch(URL, OPTION, environment={}, fail_closed=fail_closed)
        recorder = SimpleNamespace(
            record=lambda name, _pid, payload: self.done.append((name, payload)),
            tell=lambda _line: self.done.append("told"),
        )
        run = SimpleNamespace(switch_off=lambda switched: self.done.append(switched.reason))
        self._switch._is_thread_idle = False  # it never polls here
        self._switch.begin(session_of(recorder=recorder, ending=SimpleNamespace(run=run)))

    def on(self, answer: Answer) -> list[object]:
        self.done.clear()
        self._switch._take(answer)
        return list(self.done)


def missed(count: int) -> tuple[str, dict[str, object]]:
    return ("killswitch_missed", {"url": URL, "reason": "refused", "count": count})


def reached(after: int) -> tuple[str, dict[str, object]]:
    return ("killswitch_reached", {"url": URL, "missed": after})


def test_a_kill_is_one_whatever_is_heard_before_and_then() -> None:
    assert Switch().on(None) == []
    subject = Switch()
    assert subject.on(Killed("stop")) == ["stop"]
    assert [subject.on(each) for each in (Killed("more"), None, MISS)] == [[], [], []]
    subject = Switch()
    subject.on(MISS)
    assert subject.on(Killed("stop")) == [reached(1), "stop"]


def test_the_first_miss_is_told_where_nothing_was_reached_yet() -> None:
    subject = Switch()
    assert subject.on(MISS) == [missed(1), "told"]
    assert subject.on(None) == [reached(1)]
    assert subject.on(MISS) == [missed(1)]


def test_of_a_long_row_the_first_and_every_30th_are_recorded() -> None:
    subject = Switch()
    subject.on(None)
    recorded = [step for _ in range(100) for step in subject.on(MISS)]
    assert recorded == [missed(count) for count in (1, 30, 60, 90)]
    assert subject.on(None) == [reached(100)]


def test_fail_closed_takes_three_in_a_row() -> None:
    subject = Switch(fail_closed=True)
    for answer in (MISS, MISS, None, MISS, MISS):
        assert not any("no answer" in str(step) for step in subject.on(answer))
    assert subject.on(MISS) == [missed(3), f"no answer from {URL} for 3 polls (fail closed)"]
    assert subject.on(MISS) == []


# The loop

KILLED = b'{"killed": true, "reason": "stop"}'


class Polled:
    """A remote switch whose polls end as a test says, in a loop of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, fail_closed: bool = False) -> None:
        monkeypatch.setattr(module, "EVERY_S", 0.02)
        monkeypatch.setattr(module, "_GIVE_UP_AFTER_S", 0.01)
        self.loop = Loop()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.killed: list[tuple[str, str]] = []
        self.get: Callable[[], bytes] = lambda: b"{}"
        recorder = SimpleNamespace(
            record=lambda name, _pid, payload: self.events.append((name, payload)),
            tell=lambda _line: None,
        )
        switch = RemoteSwitch("file:///x", OPTION, environment={}, fail_closed=fail_closed)
        switch._get = lambda: self.get()
        switch.start_thread()
        self._switch = switch
        self._recorder: Any = recorder

    def start(self) -> None:
        ending = SimpleNamespace(run=SimpleNamespace(switch_off=self._on_killed))
        self._switch.begin(session_of(loop=self.loop, recorder=self._recorder, ending=ending))

    @property
    def is_held_up(self) -> bool:
        return self._switch.is_held_up

    def _on_killed(self, switched: SwitchedOff) -> None:
        self.killed.append((switched.reason, switched.by))

    def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.loop.turn(None)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_poll_that_never_comes_back_is_a_row_of_misses(
    monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    """The loop's clock alone decides it."""
    polled = Polled(monkeypatch, fail_closed=True)

    def get() -> bytes:
        release.wait()
        return b"{}"

    polled.get = get
    polled.start()
    polled.until(lambda: bool(polled.killed))
    misses = [(payload["reason"], payload["count"]) for _, payload in polled.events]
    assert misses == [("the poll does not return", 1), ("the poll does not return", 3)]
    assert polled.killed == [("no answer from file:///x for 3 polls (fail closed)", "file:///x")]


@pytest.mark.parametrize("late", [b"{}", KILLED])
def test_a_late_answer_counts_only_if_it_kills(
    monkeypatch: pytest.MonkeyPatch, release: threading.Event, late: bytes
) -> None:
    polled = Polled(monkeypatch)
    monkeypatch.setattr(module, "EVERY_S", 60)

    def get() -> bytes:
        release.wait()
        return late

    polled.get = get
    polled.start()
    polled.until(lambda: bool(polled.events))
    release.set()
    polled.until(lambda: not polled.is_held_up)
    assert polled.killed == ([("stop", "file:///x")] if late == KILLED else [])
    names = [name for name, _ in polled.events]
    assert ("killswitch_reached" in names) == (late == KILLED)


def test_a_missed_poll_keeps_no_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    polled = Polled(monkeypatch)
    monkeypatch.setattr(module, "_GIVE_UP_AFTER_S", 60)
    here, there = socket.socketpair()
    there.settimeout(PATIENCE_S)

    def get() -> bytes:
        connection = here.makefile("rb")
        raise NoAnswer(f"status 503 of {connection}")

    polled.get = get
    polled.start()
    polled.until(lambda: bool(polled.events))
    here.close()
    assert there.recv(1) == b""
    there.close()


def test_an_internal_error_is_a_miss_and_shows_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    polled = Polled(monkeypatch)
    monkeypatch.setattr(module, "_GIVE_UP_AFTER_S", 60)

    def get() -> bytes:
        if not polled.events:  # the answer to the first may come too late to count
            raise ValueError("secret")
        return KILLED

    polled.get = get
    polled.start()
    polled.until(lambda: bool(polled.killed))
    assert polled.events[0][1]["reason"] == "internal error: ValueError"
