from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwrap.store.reader import Session
from sigwrap.store.writer import SessionLog

SECOND = 1_000_000_000
STARTED_NS = 1_763_705_000 * SECOND


class Scenario:
    """Records a session event by event, a second apart, and counts as the supervisor does."""

    def __init__(self, store: Path, session_id: str = "s1", key: bytes | None = None) -> None:
        self.store = str(store)
        self.log = SessionLog.create(self.store, session_id, key=key)
        self.counts: dict[str, int] = {}
        self.add(
            "session_started",
            1,
            session_id=session_id,
            name="demo",
            command=["npm", "start"],
            cwd="/project",
            user="ann",
            uid=1000,
            host="box",
            sigwrap="0.1.0",
            kernel="6.18",
            policy="builtin:record",
            policy_digest="abcd",
            missing=[],
            keyed=key is not None,
        )

    def add(self, type_name: str, pid: int, **payload: Any) -> int:
        self.counts[type_name] = self.counts.get(type_name, 0) + 1
        time_ns = STARTED_NS + self.log.seq * SECOND
        return self.log.append(type_name, pid, payload, time_ns)

    def execute(self, pid: int, ppid: int, *argv: str) -> int:
        return self.add(
            "exec_audited",
            pid,
            path="/usr/bin/" + argv[0],
            argv=argv,
            ppid=ppid,
            depth=1,
            decision="audit",
            rule_name="builtin:record",
        )

    def exit(self, pid: int, exit_code: int | None = 0, signal_name: str | None = None) -> int:
        return self.add(
            "process_exited",
            pid,
            ppid=1,
            comm="comm",
            depth=1,
            exit_code=exit_code,
            signal=9 if signal_name else None,
            signal_name=signal_name,
        )

    def signal(self, signal_name: str, source: str, target: str, target_type: str) -> int:
        return self.add(
            "signal_sent",
            10,
            signal=15,
            signal_name=signal_name,
            source_pid=10,
            source_cmd=source,
            target_pid=11,
            target_cmd=target,
            target_type=target_type,
            decision="audit",
        )

    def end(self, exit_status: int = 0, **different: Any) -> str:
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

    @property
    def session(self) -> Session:
        return Session(self.log.session_id, self.log.path)


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., Scenario]:
    def make(**options: Any) -> Scenario:
        return Scenario(tmp_path, **options)

    return make
