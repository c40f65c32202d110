from __future__ import annotations

from typing import Any

import pytest

from sigwrap.events import Event
from sigwrap.report.folds import incidents as module
from sigwrap.report.folds.incidents import Incidents


class Fold(Incidents):
    def __init__(self) -> None:
        super().__init__()
        self.seq = 0

    def happens(self, type_name: str, pid: int = 10, **payload: Any) -> None:
        self.seq += 1
        self.add(Event(self.seq, self.seq, type_name, pid, payload, ""))

    def trust(self, source: str, reason: str, outcome: str = "delivered") -> None:
        self.happens(
            "agent_signal", signal="SIGTRUST", source=source, reason=reason, outcome=outcome
        )

    @property
    def said(self) -> list[str]:
        return [each.sentence for each in self.found]


@pytest.fixture
def fold() -> Fold:
    return Fold()


def test_agent_signals_are_one_only_where_the_same_is_told_of_them(fold: Fold) -> None:
    fold.trust("trust.path_shadow", "/a/pip was called")
    fold.trust("trust.path_shadow", "/b/pip was called")
    fold.trust("trust.boundary", "sh (9) tried SIGTERM by kill on sigwrap's own process 7")
    fold.trust("trust.path_shadow", "/a/pip was called")
    fold.trust("a person", "look", "held back")
    fold.trust("a person", "look", "delivered")
    signal = "agent signal SIGTRUST from"
    assert fold.said == [
        f"{signal} on.boundary: sh (9) tried SIGTERM by kill on sigwrap's own process 7: delivered",
        f"{signal} a person: look: held back",
        f"{signal} a person: look: delivered",
        f"{signal} trust.path_shadow: /a/pip was called: delivered (2 times)",
        f"{signal} trust.path_shadow: /b/pip was called: delivered",
    ]


def test_many_of_a_kind_leave_the_others_their_room_and_are_counted_as_such(fold: Fold) -> None:
    limit = module._OF_A_KIND_LIMIT
    for number in range(limit + 5):
        fold.trust("trust.path_shadow", f"/bin{number}/pip was called")
        fold.happens("call_refused", comm=f"sh{number}", syscall_number=1)
    fold.trust("trust.path_shadow", f"/bin{limit}/pip was called")
    fold.trust("trust.boundary", "sh tried it")
    assert fold.said[0].startswith("agent signal SIGTRUST from on.boundary: sh tried it")
    assert len(fold.said) == 1 + 2 * limit
    assert fold.more == {"call_refused": 5, "agent_signal trust.path_shadow": 6}
    assert fold.sentences()[-1] == (
        "and 11 more: 5 call refused, 6 agent signal from trust.path_shadow"
    )


def test_what_differs_in_what_a_reader_must_know_is_not_one(fold: Fold) -> None:
    for path in ("/s/s1.db", "/s/s1.db-wal", "/s/s1.db"):
        fold.happens("store_tampered", what="the log was removed", path=path)
    for pid, command in ((5, "curl"), (6, "curl"), (7, "nc")):
        fold.happens("control_refused", peer_pid=pid, peer_cmd=command, reason="it is inside")
    for effect in ("refused", "terminated"):
        fold.happens("limit_exceeded", limit="max_processes", effect=effect, count=3)
    touched = "the files of the log were tampered with (the log was removed)"
    assert fold.said == [
        f"{touched}: /s/s1.db (2 times)",
        f"{touched}: /s/s1.db-wal",
        "the limit max_processes was reached (3 times)",
        "the limit max_processes ended the run (3 times)",
        "curl (5) was refused at the control socket: it is inside (2 times, by several processes)",
        "nc (7) was refused at the control socket: it is inside",
    ]


def test_a_count_of_files_or_processes_is_not_how_often_it_happened(fold: Fold) -> None:
    fold.happens("own_files_changed", files=["/a", "/b", "/c"], count=5)
    for count in (1, 30, 60, 1):
        fold.happens("killswitch_missed", url="https://x", reason="timeout", count=count)
    assert fold.said == [
        "files that sigwrap runs from were changed: /a /b /c and 2 more",
        "the remote kill switch https://x gave no answer: timeout (61 times)",
    ]
