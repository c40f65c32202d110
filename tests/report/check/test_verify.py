from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from sigwrap.log.codec import (
    canonical_row,
    chain_key,
    genesis,
    hasher,
    journal_line,
    next_hash,
)
from sigwrap.log.reader import Session
from sigwrap.report.check.verify import Outcome, Verification, verify_session
from tests.report.conftest import Scenarios, tamper
from tests.store.conftest import journal_of


@pytest.fixture
def ended(scenario: Scenarios) -> Any:
    """Return a log of eight rows: started, three execs, three exits, ended."""
    made = scenario()
    for pid in (10, 11, 12):
        made.execute(pid, 1, "make")
        made.exit(pid)
    made.end()
    return made


def check(session: Session, key: bytes | None = None, head: str = "") -> Verification:
    return verify_session(session, key, head)


def assert_broken(verification: Verification, row: int, problem: str) -> None:
    assert (verification.outcome, verification.row) == (Outcome.BROKEN, row)
    assert problem in verification.problem


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("UPDATE events SET payload = replace(payload, 'make', 'true') WHERE seq = 4", 4),
        ("UPDATE events SET payload = payload || ' ' WHERE seq = 4", 4),
        ("UPDATE events SET payload = CAST(payload AS BLOB) WHERE seq = 4", 4),
        ("UPDATE events SET time_ns = time_ns + 1 WHERE seq = 5", 5),
        ("UPDATE events SET pid = 99 WHERE seq = 6", 6),
        ("UPDATE events SET pid = 'x' WHERE seq = 6", 6),
        ("UPDATE events SET type = 'signal_sent' WHERE seq = 6", 6),
        ("UPDATE events SET hash = upper(hash) WHERE seq = 7", 7),
        ("UPDATE events SET payload = '{}' WHERE seq = 1", 1),
        ("UPDATE events SET seq = 9 WHERE seq = 8", 9),
        ("DELETE FROM events WHERE seq = 4", 5),
        ("DELETE FROM events WHERE seq = 1", 2),
        ("DELETE FROM events WHERE seq < 4", 4),
        ("DELETE FROM events", 1),
        (
            "UPDATE events SET seq = 100 WHERE seq = 3; UPDATE events SET seq = 3 WHERE seq = 4;"
            "UPDATE events SET seq = 4 WHERE seq = 100",
            3,
        ),
        ("INSERT INTO events SELECT seq + 8, time_ns, type, pid, payload, hash FROM events", 9),
    ],
)
def test_the_first_row_that_breaks_is_named(ended: Any, statement: str, row: int) -> None:
    tamper(ended.log.path, statement)
    verification = check(ended.session)
    assert (verification.outcome, verification.row) == (Outcome.BROKEN, row)


def told(session: Session) -> tuple[Verification, list[int]]:
    """Return the verification, and the rows that a report gets in the same pass."""
    seen: list[int] = []
    return verify_session(session, None, and_also=lambda event: seen.append(event.seq)), seen


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE events SET payload = CAST(x'7B22FF' AS TEXT) WHERE seq = 4", "can't be read"),
        ("UPDATE events SET type = CAST(x'FF' AS TEXT) WHERE seq = 4", "its hash does not match"),
        ("UPDATE events SET payload = replace(payload, '\"v\":1', '\"v\":99') WHERE seq = 4", "99"),
    ],
)
def test_a_row_that_cant_be_read_is_one_row_and_no_more(
    ended: Any, statement: str, problem: str
) -> None:
    tamper(ended.log.path, statement)
    verification, seen = told(ended.session)
    assert_broken(verification, 4, problem)
    assert not verification.problem.startswith("row 4")
    assert {1, 2, 3, 5, 6, 7, 8} <= set(seen)


def test_a_report_gets_its_events_from_the_same_pass(ended: Any) -> None:
    tamper(
        ended.log.path,
        "UPDATE events SET pid = 99 WHERE seq = 4",
        "UPDATE events SET payload = 'unreadable' WHERE seq = 5",
    )
    verification, seen = told(ended.session)
    assert seen == [1, 2, 3, 4, 6, 7, 8]
    assert (verification.events, verification.row) == (8, 4)


def test_each_event_is_passed_on_once_and_in_order_however_many_are_checked_at_once(
    scenario: Scenarios,
) -> None:
    made = scenario()
    for pid in range(10, 60):
        made.execute(pid, 1, "make", "x" * 1000)
        made.exit(pid)
    made.end()
    seen, so_far = list[int](), list[int]()
    found = verify_session(
        made.session,
        None,
        and_also=lambda event: seen.append(event.seq),
        meanwhile=lambda events: so_far.append(events),
    )
    assert seen == list(range(1, 103))
    assert found.outcome is Outcome.INTACT
    assert len(so_far) >= 2
    assert so_far == sorted(so_far)


def test_a_report_gets_what_comes_before_a_row_that_ends_the_reading(ended: Any) -> None:
    rows = list(ended.session.rows())[:5]
    with open(journal_of(ended.log), "wb") as journal:
        journal.write(b"".join(journal_line(canonical_row(*row[:5]), row[5]) for row in rows))
        journal.write(b"not a row\n")
    os.unlink(ended.log.path)
    verification, seen = told(ended.session)
    assert_broken(verification, 6, "can't be read")
    assert seen == [1, 2, 3, 4, 5]


def test_a_cut_tail_shows_only_against_the_head(ended: Any) -> None:
    head = ended.log.head
    verification = check(ended.session, head=head)
    assert (verification.outcome, verification.problem) == (Outcome.INTACT, "")
    assert (verification.events, verification.head, verification.ended) == (8, head, True)
    assert check(ended.session, head=f" {head.upper()}\n").outcome is Outcome.INTACT
    earlier = [row.hash for row in ended.session.rows()][4]
    assert_broken(check(ended.session, head=earlier), 6, "after the row with the expected head")
    tamper(ended.log.path, "DELETE FROM events WHERE seq > 5")
    without_head = check(ended.session)
    assert (without_head.outcome, without_head.ended) == (Outcome.INTACT, False)
    assert_broken(check(ended.session, head=head), 0, "no row has the expected head")


def test_a_log_rewritten_as_a_whole_is_consistent_but_has_another_head(ended: Any) -> None:
    head = ended.log.head
    rewrite(ended.log.path, "s1", b"")
    assert check(ended.session).outcome is Outcome.INTACT
    assert_broken(check(ended.session, head=head), 0, "truncated or rewritten")


def test_the_head_of_a_running_session_may_have_moved_on(scenario: Scenarios) -> None:
    running = scenario()
    head = running.log.head
    running.execute(10, 1, "make")
    assert check(running.session, head=head).outcome is Outcome.INTACT
    assert check(running.session, head="0" * 64).outcome is Outcome.BROKEN
    running.end()


@pytest.fixture
def keyed(scenario: Scenarios) -> Any:
    made = scenario(session_id="s2", key=b"secret")
    made.execute(10, 1, "make")
    made.end()
    return made


def test_with_a_key_a_log_can_t_be_rewritten(keyed: Any) -> None:
    intact = check(keyed.session, b"secret")
    assert (intact.outcome, intact.keyed) == (Outcome.INTACT, True)
    unchecked = check(keyed.session, None)
    assert (unchecked.outcome, unchecked.row) == (Outcome.UNCHECKED, 0)
    assert "$SIGWRAP_KEY" in unchecked.problem
    assert_broken(check(keyed.session, b"wrong"), 1, "is $SIGWRAP_KEY the right one?")
    rewrite(keyed.log.path, "s2", b"guess")
    assert_broken(check(keyed.session, b"secret"), 1, "hash")


def test_the_key_is_doubted_only_where_the_first_row_of_a_keyed_log_breaks(
    ended: Any, keyed: Any
) -> None:
    assert_broken(check(ended.session, b"secret"), 1, "the log was written without a key")
    tamper(ended.log.path, "UPDATE events SET pid = 99 WHERE seq = 1")
    tamper(keyed.log.path, "UPDATE events SET pid = 99 WHERE seq = 2")
    for verification in (check(ended.session), check(keyed.session, b"secret")):
        assert verification.problem == "its hash does not match its content and the rows before it"


def test_without_the_key_the_order_is_still_checked(scenario: Scenarios) -> None:
    made = scenario(key=b"secret")
    made.end(head="0" * 64)
    assert_broken(check(made.session), 2, "head in session_ended differs")


def test_another_session_s_log_under_this_name_is_found(ended: Any, scenario: Scenarios) -> None:
    other = scenario(session_id="s2")
    other.end()
    os.replace(other.log.path, ended.log.path)
    assert_broken(check(ended.session), 1, "hash")


@pytest.mark.parametrize(
    ("account", "problem"),
    [
        ({"head": "0" * 64}, "head in session_ended differs"),
        ({"counts": {}}, "counts in session_ended differ"),
        ({"counts": [1]}, "no counts"),
        ({"counts": {"session_started": 1, "exec_audited": 2}}, "counts in session_ended differ"),
        (
            {"counts": {"session_started": 1, "exec_audited": 1, "abi_refused": 1}},
            "counts in session",
        ),
    ],
)
def test_session_ended_must_agree_with_the_rows(
    scenario: Scenarios, account: dict[str, Any], problem: str
) -> None:
    made = scenario()
    made.execute(10, 1, "make")
    made.end(**account)
    assert_broken(check(made.session), 3, problem)
    more = scenario(session_id="s2")
    more.end(counts={"session_started": 1, "killed": 3})  # not an event
    assert check(more.session).outcome is Outcome.INTACT


def test_nothing_may_follow_the_end_or_begin_anew(scenario: Scenarios) -> None:
    made = scenario()
    made.add("session_started", 1, session_id="s1", keyed=False)
    assert_broken(check(made.session), 2, "has exactly one session_started")
    late = scenario(session_id="s2")
    late.add("session_ended", 1, counts=dict(late.counts), head=late.log.head)
    late.execute(10, 1, "make")
    assert_broken(check(late.session), 3, "after session_ended")


# The journal


@pytest.fixture
def crashed(scenario: Scenarios) -> Any:
    made = scenario()
    for pid in (10, 11, 12, 13):
        made.execute(pid, 1, "make")
    made.is_killed()
    return made


JOURNALS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int]] = {
    "a byte": (lambda lines: [*lines[:2], lines[2].replace(b"make", b"mace"), *lines[3:]], 3),
    "a row dropped": (lambda lines: [*lines[:2], *lines[3:]], 4),
    "two rows swapped": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 3),
    "the first row dropped": (lambda lines: lines[1:], 2),
    "a row twice": (lambda lines: [*lines[:3], lines[2], *lines[3:]], 3),
}


def test_in_the_journal_of_a_crash_too_the_first_row_that_breaks_is_named(crashed: Any) -> None:
    whole = journal_of(crashed.log).read_bytes().splitlines(keepends=True)
    for what, (change, row) in JOURNALS.items():
        journal_of(crashed.log).write_bytes(b"".join(change(whole)))
        found = check(crashed.session)
        assert (found.outcome, found.row) == (Outcome.BROKEN, row), what
    journal_of(crashed.log).write_bytes(
        b"".join(whole).replace(b"\texec_audited\t", b" exec_audited ", 1)
    )
    assert_broken(check(crashed.session), 2, "line 2 of the journal")


def test_of_a_crash_a_tail_that_was_cut_shows_only_against_the_head(crashed: Any) -> None:
    head = [row.hash for row in crashed.session.rows()][-1]
    lines = journal_of(crashed.log).read_bytes().splitlines(keepends=True)
    journal_of(crashed.log).write_bytes(b"".join(lines[:3]))
    assert check(crashed.session).outcome is Outcome.INTACT
    assert_broken(check(crashed.session, head=head), 0, "no row has the expected head")


def test_a_session_killed_before_its_first_event_is_no_proof_of_anything(
    scenario: Scenarios,
) -> None:
    made = scenario()
    journal_of(made.log).write_bytes(b"")
    assert check(made.session).outcome is Outcome.INTACT  # it runs: its first event may come
    made.is_killed()
    assert_broken(check(made.session), 1, "nothing was recorded")


def rewrite(path: str, session_id: str, key: bytes) -> None:
    """Compute the whole chain again, as an attacker can who knows the source."""
    database = sqlite3.connect(path)
    rows = database.execute("SELECT seq, time_ns, type, pid, payload FROM events").fetchall()
    database.close()
    head = genesis(session_id, chain_key(key))
    statements = []
    for seq, time_ns, type_name, pid, payload in rows:
        changed = payload.replace("make", "true")
        if type_name == "session_ended":
            start = changed.index('"head":"') + len('"head":"')
            changed = changed[:start] + head.hex() + changed[start + 64 :]
        head = next_hash(head, canonical_row(seq, time_ns, type_name, pid, changed), hasher(key))
        statements.append(
            f"UPDATE events SET payload = '{changed}', hash = '{head.hex()}' WHERE seq = {seq}"
        )
    tamper(path, *statements)


@pytest.mark.parametrize(
    "payload",
    ['{"v":1, "comm":"x"}', '{"v":1,"comm":"make","comm":"x"}', '{"v":1,"comm":"\\u0078"}'],
)
def test_exact_json_other_json_of_the_same_meaning_is_found(
    scenario: Scenarios, payload: str
) -> None:
    made = scenario()
    made.execute(10, 1, "make")
    made.exit(10)
    made.end()
    path, session = made.log.path, made.session
    tamper(path, f"UPDATE events SET payload = '{payload}' WHERE type = 'process_exited'")
    rewrite(path, session.id, b"")
    assert check(session).outcome is Outcome.INTACT
    (row,) = (each.seq for each in session.events() if each.type == "process_exited")
    assert_broken(verify_session(session, None, exact_json=True), row, "is not in the form")


def test_exact_json_a_number_that_no_json_can_have_is_found(ended: Any) -> None:
    payload = '{"v":1,"ppid":1e999}'
    tamper(ended.log.path, f"UPDATE events SET payload = '{payload}' WHERE seq = 4")
    found = verify_session(ended.session, None, exact_json=True)
    assert_broken(found, 4, "its hash does not match")
