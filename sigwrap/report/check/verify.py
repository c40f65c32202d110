"""Check that a log is what its writer wrote: its hash chain, order, frame and counts.

A truncated log is intact in itself. Only the head, kept elsewhere, shows that its end is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from sigwrap.errors import StoreError
from sigwrap.events import EVENT_TYPES, Event, Payload
from sigwrap.log.chain import ChainWalk
from sigwrap.log.codec import KEY_VARIABLE, Row, decode_row, is_as_written
from sigwrap.log.reader import Session
from sigwrap.report.check.decisions import Reproduction

_OTHER_IN_DATABASE = "the database and the journal differ at this row"
_OTHERWISE_WRITTEN = "its payload is not in the form that sigwrap writes"
_STRAY = "the journal beside the finished database differs at this row"
# Checking some rows before their events are passed on is faster: each part of the work stays in the
# processor's caches. The limit is on the characters of payloads, because a row can be a large one.
_AT_ONCE = 16 << 10


class Outcome(Enum):
    INTACT = "intact"
    BROKEN = "broken"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """`row` is the first that is wrong, or 0 if the problem has no row."""

    outcome: Outcome
    problem: str = ""
    row: int = 0
    events: int
    head: str
    head_given: bool
    keyed: bool
    ended: bool


def verify_session(
    session: Session,
    key: bytes | None,
    expected_head: str = "",
    and_also: Callable[[Event], object] = lambda event: None,
    *,
    meanwhile: Callable[[int], object] = lambda events: None,
    exact_json: bool = False,
) -> Verification:
    """Check a log, and pass each event that can be read to `and_also`.

    `meanwhile` gets the number of rows that were read, now and then.
    `exact_json` also compares each payload with the JSON that sigwrap writes, which takes time.
    """
    # Before the walk, so that a writer that ends meanwhile does not look as if it was killed.
    running = session.running
    check = LogCheck(session.id, key, expected_head)
    lagging = session.row_of_the_lagging_database()
    checked: list[Event] = []
    characters = 0
    try:
        for row in session.rows():
            if lagging is not None and row.seq == lagging.seq:
                if row != lagging:
                    check.fail(row.seq, _OTHER_IN_DATABASE)
                lagging = None
            try:
                event = decode_row(row)
            except StoreError as error:
                check.skip(row, error.message.removeprefix(f"row {row.seq}").lstrip(": "))
                continue
            check.add(row, event)
            if exact_json and not is_as_written(row, event):
                check.fail(row.seq, _OTHERWISE_WRITTEN)
            checked.append(event)
            characters += len(row.payload)
            if characters > _AT_ONCE:
                for each in checked:
                    and_also(each)
                meanwhile(check.events)
                checked, characters = [], 0
    except StoreError as error:
        check.fail(check.events + 1, str(error))
    else:
        if lagging is not None:
            check.fail(lagging.seq, _OTHER_IN_DATABASE)
        if stray := session.first_stray_row():
            check.fail(stray, _STRAY)
    for each in checked:
        and_also(each)
    return check.result(running)


def with_reproduction(verification: Verification, reproduction: Reproduction) -> Verification:
    """Return the verification, with the first wrong row of the chain and of the decisions."""
    row = reproduction.row
    if not row or (verification.outcome is Outcome.BROKEN and 0 < verification.row <= row):
        return verification
    return replace(verification, outcome=Outcome.BROKEN, problem=reproduction.problem, row=row)


_FRAME = frozenset({"session_started", "session_ended"})


class LogCheck:
    def __init__(self, session_id: str, key: bytes | None, expected_head: str) -> None:
        self.events = 0
        self._key = key
        self._expected_head = expected_head.strip().lower()
        self._walk = ChainWalk(session_id, key)
        self._head = ""
        self._head_found_at = 0
        self._keyed = False
        self._unchecked = ""
        self._problem = ""
        self._problem_row = 0
        self._counts: dict[str, int] = {}
        self._ended = False

    def add(self, row: Row, event: Event) -> None:
        """Check a row. A log can have millions, so this does little."""
        self.events += 1
        if self.events == 1:
            self._begin(event)
        if self._problem:
            return
        seq, _, name, _, _, head = row
        problem = "" if self._unchecked else self._walk.follow(row)
        if not problem and (self._ended or name in _FRAME or seq == 1):
            problem = self._misplaced(event)
        if problem:
            hint = f" (is ${KEY_VARIABLE} the right one?)" if self._keyed and seq == 1 else ""
            self.fail(seq, problem + hint)
            return
        counts = self._counts
        counts[name] = counts.get(name, 0) + 1
        self._head = head
        if head == self._expected_head:
            self._head_found_at = seq

    def skip(self, row: Row, problem: str) -> None:
        self.events += 1
        self.fail(row.seq, problem)

    def fail(self, row: int, problem: str) -> None:
        if not self._problem or row < self._problem_row:
            self._problem, self._problem_row = problem, row

    def result(self, running: bool) -> Verification:
        if not self.events and not running:
            self.fail(1, "nothing was recorded")
        if self._expected_head and not self._problem:
            self._check_head(running)
        if self._problem:
            outcome, problem = Outcome.BROKEN, self._problem
        elif self._unchecked:
            outcome, problem = Outcome.UNCHECKED, self._unchecked
        else:
            outcome, problem = Outcome.INTACT, ""
        return Verification(
            outcome=outcome,
            problem=problem,
            row=self._problem_row,
            events=self.events,
            head=self._head,
            head_given=bool(self._expected_head),
            keyed=self._keyed,
            ended=self._ended,
        )

    def _begin(self, event: Event) -> None:
        self._keyed = bool(event.payload.get("keyed"))
        if self._keyed and self._key is None:
            self._unchecked = f"the log is keyed: set ${KEY_VARIABLE} to check it"
        elif self._key is not None and not self._keyed:
            # A process without the key could otherwise replace a keyed log by an unkeyed one.
            self.fail(
                event.seq,
                f"the log was written without a key, but ${KEY_VARIABLE} is set: "
                "unset it to check this log",
            )

    def _misplaced(self, event: Event) -> str:
        if self._ended:
            return "it comes after session_ended"
        if (event.seq == 1) != (event.type == "session_started"):
            return "a log has exactly one session_started, as its first row"
        if event.type == "session_ended":
            self._ended = True
            return self._wrong_account(event.payload)
        return ""

    def _wrong_account(self, ended: Payload) -> str:
        if ended.get("head") != self._head:
            return "the head in session_ended differs from the row before it"
        counts = ended.get("counts")
        if not isinstance(counts, dict):
            return "session_ended has no counts"
        # session_ended also counts other things, such as the processes that were killed.
        recorded = {
            name: count
            for name, count in counts.items()
            if name in EVENT_TYPES or name in self._counts
        }
        if recorded != self._counts:
            return "the counts in session_ended differ from the log"
        return ""

    def _check_head(self, running: bool) -> None:
        if not self._head_found_at:
            self.fail(0, "no row has the expected head: the log was truncated or rewritten")
        elif self._head_found_at != self.events and not running:
            self.fail(self._head_found_at + 1, "it comes after the row with the expected head")
