"""How often a watcher sends a signal for the same thing."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.agent import AgentSignal
from sigwrap.control import watchers as module
from sigwrap.control.watchers import Watchers
from tests.mediate.transcript import engine
from tests.support.stand_in import session_of


class Session:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.sent: list[tuple[str, str]] = []
        self.later: list[Callable[[], None]] = []
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        self.watchers = Watchers(
            session_of(
                policy=engine("defaults: {command: allow, signal: allow}\n").policy,
                plan=SimpleNamespace(profile=None),
                agent_signals=SimpleNamespace(
                    send=lambda *words: self._note("sent", *words),
                    note=lambda *words: self._note("noted", *words),
                ),
                loop=SimpleNamespace(call_in=lambda _seconds, call: self.later.append(call)),
                is_inside=lambda pid: pid == 7,
            )
        )

    def _note(self, how: str, signal: AgentSignal, source: str, reason: str) -> None:
        self.sent.append((f"{how} {signal.name} {source}", reason))

    def happened(self, event: str, **payload: Any) -> list[tuple[str, str]]:
        """Return what is sent for it at the end of the turn."""
        self.sent.clear()
        self.watchers.on_event(event, payload)
        assert self.sent == []
        while self.later:
            self.later.pop()()
        return self.sent


def test_a_shadow_is_sent_once_and_the_last_one_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(monkeypatch)
    for number in range(1, 103):
        more = " (sigwrap reports no more of these: 100 so far)" if number == 100 else ""
        found = ("noted SIGTRUST trust.path_shadow", f"/x/{number} shadows /bin/ls{more}")
        for expected in ([found] if number <= 100 else [], []):
            shadow = {"path": f"/x/{number}", "shadows": "/bin/ls"}
            assert session.happened("exec_allowed", **shadow) == expected


def test_an_attempt_is_sent_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(monkeypatch)
    attempt = {"what": "the journal was removed", "path": "/s"}
    sent = [("sent SIGTRUST trust.boundary", "the journal was removed: /s")]
    for now_s, expected in ((0, sent), (9, []), (10, sent), (19, []), (20, sent)):
        session.now_s = now_s
        assert session.happened("store_tampered", **attempt) == expected
    assert session.happened("killswitch_invented", path="/k") != []


def test_a_refused_peer_counts_if_it_is_in_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(monkeypatch)
    for pid, count in ((9, 0), (7, 1)):
        peer = {"inside_session": True, "peer_pid": pid, "peer_cmd": "curl"}
        assert len(session.happened("control_refused", **peer)) == count
