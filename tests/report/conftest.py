from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sigwrap.log.reader import Session
from sigwrap.log.writer import SessionLog
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.selection import Selection
from sigwrap.report.folds.summary import Summary
from tests.store.conftest import is_open, leave_as_killed

SECOND = 1_000_000_000
STARTED_NS = 1_763_705_000 * SECOND


class Scenario:
    """Records a session event by event, a second apart, and counts as the supervisor does."""

    def __init__(
        self, store: Path, session_id: str = "s1", key: bytes | None = None, **different: Any
    ) -> None:
        self.store = str(store)
        self.log = SessionLog.create(self.store, session_id, key=key)
        self.counts: dict[str, int] = {}
        session = {"session_id": session_id, "name": "demo", "command": ["npm", "start"]}
        by = {"cwd": "/project", "user": "ann", "uid": 1000, "host": "box", "kernel": "6.18"}
        under = {"sigwrap": "0.1.0", "policy": "builtin:record", "policy_digest": "abcd"}
        about = {**session, **by, **under, "missing": [], "keyed": key is not None, **different}
        self.add("session_started", 1, **about)

    def add(self, type_name: str, pid: int, **payload: Any) -> int:
        self.counts[type_name] = self.counts.get(type_name, 0) + 1
        time_ns = STARTED_NS + self.log.seq * SECOND
        return self.log.append(type_name, pid, payload, time_ns)

    def execute(self, pid: int, ppid: int, *argv: str) -> int:
        ran = {"path": f"/usr/bin/{argv[0]}", "argv": argv, "ppid": ppid, "depth": 1}
        return self.add("exec_audited", pid, **ran, decision="audit", rule_name="builtin:record")

    def deny(self, pid: int, ppid: int, rule: str, *argv: str, **more: Any) -> int:
        asked = {"path": f"/usr/bin/{argv[0]}", "argv": argv, "ppid": ppid, "decision": "deny"}
        return self.add("exec_denied", pid, **{**asked, "rule_name": rule, **more})

    def exit(self, pid: int, exit_code: int | None = 0, signal_name: str | None = None) -> int:
        died = {"signal": 9 if signal_name else None, "signal_name": signal_name}
        about = {"ppid": 1, "comm": "comm", "depth": 1, "exit_code": exit_code}
        return self.add("process_exited", pid, **about, **died)

    def signal(self, signal_name: str, source: str, target: str, target_type: str) -> int:
        sent = {"signal": 15, "signal_name": signal_name, "decision": "audit"}
        by = {"source_pid": 10, "source_cmd": source}
        to = {"target_pid": 11, "target_cmd": target, "target_type": target_type}
        return self.add("signal_sent", 10, **sent, **by, **to)

    def end(self, exit_status: int | None = 0, **different: Any) -> str:
        account: dict[str, Any] = {
            "exit_status": exit_status,
            "reason": "exited",
            "duration_ns": 2_500_000_000,
            "counts": dict(self.counts),
            "head": self.log.head,
            "unrecorded": 0,
            **different,
        }
        self.add("session_ended", 1, **account)
        self.log.close()
        return self.log.head

    def is_killed(self) -> None:
        leave_as_killed(self.log)

    @property
    def session(self) -> Session:
        return Session(self.log.session_id, self.log.path)


def summarise(
    made: Scenario, ending: Ending = Ending.NOT_CLEAN, selection: Selection | None = None
) -> Summary:
    fold = Summary(selection)
    for event in made.session.events():
        fold.add(event)
    return fold.end(ending)


def tamper(path: str, *statements: str) -> None:
    """What SQLite does for any client that drops the triggers first."""
    with closing(sqlite3.connect(path)) as database:
        for trigger in ("events_are_not_changed", "events_are_not_deleted"):
            database.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        database.executescript(";".join(statements))
        database.commit()


Scenarios = Callable[..., Any]


@pytest.fixture
def scenario(tmp_path: Path) -> Iterator[Scenarios]:
    """Each is open until it ends or the test does."""
    made: list[Scenario] = []

    def make(**options: Any) -> Scenario:
        made.append(Scenario(tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        if is_open(each.log):
            each.log.close()


@pytest.fixture
def made(scenario: Scenarios) -> Scenario:
    """One of them."""
    recorded: Scenario = scenario()
    return recorded
