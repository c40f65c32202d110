from __future__ import annotations

from typing import Any

from sigwrap.events import Event
from sigwrap.report.forms import page


def rows_of(*events: Event) -> page.EventRows:
    found = page.EventRows(1_001)
    for event in events:
        found.add(event)
    return found


def event(seq: int, type_name: str, **payload: Any) -> Event:
    return Event(seq, 1_000 + seq, type_name, 7, payload, "")


def test_a_row_says_what_became_of_what_and_by_which_rule() -> None:
    rows = rows_of(
        event(1, "session_started"),
        event(2, "exec_denied", path="/bin/rm", argv=["/bin/rm", "x y"], rule_name="no-rm"),
        event(3, "signal_sent", signal_name="SIGTERM", source_cmd="sh", target_cmd="node"),
        event(4, "process_exited", comm="node", exit_code=3),
    ).rows()
    assert rows == [
        (1, 0, "session_started", 7, "", "'?'  in ?  under ?", "", "", 0),
        (2, 1, "exec_denied", 7, "denied", "/bin/rm 'x y'", "no-rm", "rm", 0),
        (3, 2, "signal_sent", 7, "allowed", "SIGTERM to node", "", "sh", 0),
        (4, 3, "process_exited", 7, "", "node  exit 3", "", "node", 0),
    ]


def test_a_row_marks_approval_requests_and_retries() -> None:
    found = page.EventRows(1_001)
    refused: dict[str, Any] = {"path": "/bin/npm", "argv": ["npm"]}
    found.add(event(1, "approval_requested"))
    found.add(event(2, "approval_denied"))
    found.add(event(3, "exec_denied", **refused))
    found.add(event(4, "exec_denied", **refused, retry=True))
    found.add(event(5, "signal_blocked", signal_name="SIGHUP", target_cmd="sh", count=20))
    rows = found.rows()
    assert [row[8] for row in rows] == [
        page.ASKED_ABOUT,
        page.ASKED_ABOUT,
        page.ASKED_ABOUT,
        page.ANOTHER_TRY,
        0,
    ]
    assert rows[4][5] == "20 times  SIGHUP to sh"


def test_of_a_long_session_what_needs_attention_is_kept_and_a_sample_of_the_rest() -> None:
    found = page.EventRows(1_001)
    for seq in range(1, 100_001):
        found.add(event(seq, "exec_denied" if seq % 100 == 0 else "exec_allowed", argv=["x"]))
    rows = found.rows()
    assert [row[0] for row in rows] == sorted({row[0] for row in rows})
    assert sum(row[4] == "denied" for row in rows) == 1_000
    sample = [row[0] for row in rows if row[4] == "allowed"]
    assert page.SAMPLE_KEPT / 2 <= len(sample) <= page.SAMPLE_KEPT
    assert sample[0] == 1
    assert sample[-1] > 99_900, "the end is there as well as the beginning"


def test_where_all_needs_attention_the_later_ones_are_a_sample() -> None:
    found = page.EventRows(1_001)
    for seq in range(1, 3 * page.IMPORTANT_KEPT):
        found.add(event(seq, "exec_denied", argv=["x"], retry=True))
    assert all(row[8] == page.ANOTHER_TRY for row in found.rows())
    rows = found.rows()
    assert [row[0] for row in rows[: page.IMPORTANT_KEPT]] == list(
        range(1, page.IMPORTANT_KEPT + 1)
    )
    assert page.IMPORTANT_KEPT < len(rows) <= page.IMPORTANT_KEPT + page.SAMPLE_KEPT
