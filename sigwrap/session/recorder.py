"""Write the log: every event, repeated events as counts, and nothing beyond its size limit."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING, Counter, NamedTuple
from sigwrap.errors import StoreError
from sigwrap.events import Counts, Payload
from sigwrap.log.codec import EVENT_LIMIT, encode_payload
from sigwrap.log.writer import SessionLog
from sigwrap.session.effects import Logged
from sigwrap.session.lineage import Process
from sigwrap.session.run_end import LimitReached

if TYPE_CHECKING:
    from sigwrap.session.session import Session

# At its limit, the log still gets the end of the tree, up to a second limit, and its own end.
_ALWAYS = frozenset({"session_ended", "limit_exceeded", "killswitch_activated"})
_BEYOND = frozenset(
    {
        "process_exited",
        "recording_ended",
        "store_tampered",
        "interrupt_received",
        "interrupt_forwarded",
        "interrupt_escalated",
        "agent_signal",
        "tree_frozen",
        "tree_thawed",
    }
)
_LEAST_BEYOND_BYTES = 1 << 20
_MOST_DIGITS = 20  # of a time in µs

Key = tuple[object, ...]  # of repeated events; its first element is the process, if one did it

LOOK_S = 0.5
_REPEATED_AFTER_S = 10.0  # since the last denial; a small event may still fit in between
_REST_AFTER_RESTORING = 20  # times as long as it took, if a process removes the log repeatedly


class EncodedEvent(NamedTuple):
    """An event that recurs, and differs only in how long its judgement took."""

    type_name: str
    payload: Payload  # without that time
    before: str  # the encoded payload up to that time


def encoded(type_name: str, payload: Payload) -> EncodedEvent | None:
    """Encode an event that recurs; return None if it is so long that it could be cut."""
    text = encode_payload(type_name, {**payload, "evaluation_us": 0})
    if len(text) > EVENT_LIMIT - _MOST_DIGITS:
        return None
    return EncodedEvent(type_name, payload, text.removesuffix("0}"))


class Recorder:
    """Writes the log. An action whose event is not recorded must not happen."""

    def __init__(
        self,
        log: SessionLog,
        tell: Callable[[str], None],
        maximum: int = 0,
        *,
        ends_run: bool = True,
    ) -> None:
        """`maximum`: bytes of the log, 0 for no limit. A full log ends the run, or denies all."""
        self.log = log
        self.tell = tell
        self.maximum = maximum
        self._ends_run = ends_run
        self._next_mark = (maximum + 1) // 2 or sys.maxsize  # first half of the limit, then all
        self._reached: LimitReached | None = None
        self._session: Session | None = None  # the first events come before it
        self._is_known_until_s = 0.0
        self._reported_files: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.actions = Counts()
        self.unrecorded = 0
        self.why_not = ""  # the last reason why an event was not recorded
        self.repeated = 0  # execs that went on without being judged again

    def attend(self, session: Session) -> None:
        """Attach the session: its watchers see events of their types before these are written, and
        a full log ends it."""
        self._session = session

    def record(self, type_name: str, pid: int, payload: Payload) -> bool:
        if self._session is not None and type_name in self._session.watchers.watched:
            self._session.watchers.on_event(type_name, payload)
        return self.record_text(type_name, pid, encode_payload(type_name, payload), payload)

    def record_again(self, event: EncodedEvent, pid: int, took_us: int) -> bool:
        return self.record_text(event.type_name, pid, f"{event.before}{took_us}}}", event.payload)

    def record_text(self, type_name: str, pid: int, text: str, payload: Payload) -> bool:
        """Record an event with this encoded payload, which no watcher sees."""
        if self.log.size >= self._next_mark and not self._has_room(type_name):
            self.unrecorded += 1
            return False
        try:
            self.log.append_text(type_name, pid, text, time.time_ns())
        except StoreError as failure:
            self.unrecorded += 1
            self._fails(failure)
            return False
        self.counts[type_name] += 1
        self.actions.add(type_name, payload)
        return True

    def look(self) -> float:
        """Write the session's files again if another program changed them.

        Return after how many seconds to look again.
        """
        what = self.log.objection()
        if not what:
            return LOOK_S
        started_s = time.monotonic()
        try:
            self.log.restore()
            self.tampered("event log", self.log.path, what, "sigwrap wrote it again")
        except StoreError as failure:
            self._fails(failure)
        return LOOK_S + _REST_AFTER_RESTORING * (time.monotonic() - started_s)

    def tampered(self, name: str, path: str, what: str, mended: str) -> None:
        """Record each change of a file, and report the first one on standard error."""
        self.record("store_tampered", os.getpid(), {"what": what, "path": path})
        if name not in self._reported_files:
            self._reported_files.add(name)
            self.tell(f"another program changed the {name} {path}: {what}; {mended}")

    def _has_room(self, event: str) -> bool:
        """Return whether the event may be recorded now that the log is half full, or full."""
        is_half_full_now = self._next_mark < self.maximum
        self._next_mark = self.maximum
        if is_half_full_now and self.log.size < self.maximum:
            self.tell(f"the event log has reached half of its limit of {self.maximum} bytes")
            payload = {"limit": "log_size", "maximum": self.maximum, "used": self.log.size}
            self.record("limit_near", os.getpid(), payload)  # which may fill the log
        size = self.log.size
        if size < self.maximum:
            return True
        if self._reached is None:
            self._is_full()
        most = self.maximum + max(self.maximum // 16, _LEAST_BEYOND_BYTES)
        if event in _ALWAYS or (event in _BEYOND and size < most):
            return True
        assert self._reached is not None, "the log is full"
        if not self._ends_run:
            self._report_denials(f"{self._reached.why}; sigwrap denies every exec and signal")
        elif self._session is not None:
            self._session.ending.run.will_end(self._reached)  # the command may end before that
        return False

    def _is_full(self) -> None:
        maximum, size = self.maximum, self.log.size
        why = f"log_size: the event log has reached its limit of {maximum} bytes"
        self._reached = LimitReached("log_size", maximum, why, size)
        if self._ends_run:
            self.why_not = f"{why}; sigwrap ends the run"
            self.tell(self.why_not)
            if self._session is not None:
                # Not in the middle of a request.
                self._session.loop.call_in(0, self._session.ending.run.limit_reached, self._reached)
            return
        self._report_denials(f"{why}; sigwrap now denies every exec and signal")
        payload: Payload = {
            "limit": "log_size",
            "maximum": maximum,
            "effect": "refused",
            "reason": why,
            "used": size,
        }
        self.record("limit_exceeded", os.getpid(), payload)

    def _fails(self, failure: StoreError) -> None:
        self._report_denials(f"{failure}; sigwrap denies every exec and signal until it can write")

    def _report_denials(self, why: str) -> None:
        self.why_not = why
        now_s = time.monotonic()
        is_known = now_s < self._is_known_until_s
        self._is_known_until_s = now_s + _REPEATED_AFTER_S
        if not is_known:
            self.tell(why)


class Repeats:
    """Logs an event that may come a thousand times a second: the first, then a count of others."""

    def __init__(self, session: Session) -> None:
        self._recorder = session.recorder
        self._loop = session.loop
        self._first: dict[Key, tuple[str, int, Payload]] = {}
        self._further: Counter[Key] = Counter()
        self._of_process: dict[object, set[Key]] = {}  # first element of a key -> keys

    def record(self, event: str, pid: int, payload: Payload, key: Key, within_s: float) -> Logged:
        if key in self._first:
            self._further[key] += 1
            return Logged.COUNTED
        if not self._recorder.record(event, pid, payload):
            return Logged.FAILED
        first = self._first[key] = (event, pid, payload)
        self._of_process.setdefault(key[0], set()).add(key)

        def over() -> None:
            if self._first.get(key) is first:  # its process has not ended since
                self._sum_up(key)

        self._loop.call_in(within_s, over)
        return Logged.WRITTEN

    def process_ended(self, process: Process) -> None:
        for key in tuple(self._of_process.get(process, ())):
            self._sum_up(key)

    def close(self) -> None:
        for key in tuple(self._first):
            self._sum_up(key)

    def _sum_up(self, key: Key) -> None:
        event, pid, payload = self._first.pop(key)
        of_process = self._of_process[key[0]]
        of_process.discard(key)
        if not of_process:
            del self._of_process[key[0]]
        if further := self._further.pop(key, 0):
            payload = {**payload, "count": further}
            if "evaluation_us" in payload:
                payload["evaluation_us"] = 0
            self._recorder.record(event, pid, payload)
