from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sigwrap.report.documents import (
    event_json,
    report_json,
    sessions_json,
    verification_json,
)
from sigwrap.report.summary import Ending, SummaryFold
from sigwrap.report.verify import verify_session
from sigwrap.store.catalog import list_sessions

Scenarios = Callable[..., Any]


def test_the_report_holds_what_the_text_holds(scenario: Scenarios) -> None:
    made = scenario()
    made.execute(10, 1, "git", "status\udcff")
    made.signal("SIGTERM", "git", "sh", "parent")
    made.exit(10, None, "SIGKILL")
    head = made.end(exit_status=137)
    fold = SummaryFold()
    verification = verify_session(made.session, None, and_also=fold.add)
    text = report_json(fold.result(Ending.NOT_CLEAN), verification)
    assert text.isascii()
    document = json.loads(text)
    assert document["schema"] == "sigwrap.report/1"
    assert (document["ending"], document["exit_status"]) == ("ended", 137)
    assert document["started_at"] == "2025-11-21T06:03:20.000000000Z"
    assert document["head"] == head
    assert document["verification"]["outcome"] == "intact"
    assert document["session"]["command"] == ["npm", "start"]
    assert document["by_type"]["exec_audited"] == 1
    assert document["programs"] == {
        "top": [{"path": "/usr/bin/git", "count": 1}],
        "rest": 0,
        "exact": True,
    }
    assert document["signals"]["top"][0]["signal_name"] == "SIGTERM"
    assert document["died_of_signal"]["events"][0]["pid"] == 10
    assert document["processes"]["tree"] == [
        {
            "depth": 0,
            "argv": ["git", "status\udcff"],
            "exec_in_place": False,
            "first_pid": 10,
            "count": 1,
            "running": 0,
            "failed": 0,
            "killed": {"SIGKILL": 1},
        }
    ]


def test_an_event_is_one_line_with_its_time_twice(scenario: Scenarios) -> None:
    made = scenario()
    made.execute(10, 1, "a\nb")
    event = list(made.session.events())[1]
    made.log.close()
    line = event_json(event)
    assert "\n" not in line
    assert json.loads(line) == {
        "seq": 2,
        "time": "2025-11-21T06:03:21.000000000Z",
        "time_ns": event.time_ns,
        "type": "exec_audited",
        "pid": 10,
        "payload": event.payload,
        "hash": event.hash,
    }


def test_sessions_and_verifications_have_their_schemas(scenario: Scenarios) -> None:
    made = scenario()
    head = made.end()
    sessions = json.loads(sessions_json(list_sessions(made.store)))
    assert sessions["schema"] == "sigwrap.sessions/1"
    assert [(file["session_id"], file["exit_status"]) for file in sessions["sessions"]] == [
        ("s1", 0)
    ]
    verification = verify_session(made.session, b"key")
    document = json.loads(verification_json("s1", made.log.path, verification))
    assert document["schema"] == "sigwrap.verify/1"
    assert (document["outcome"], document["row"], document["ended"]) == ("broken", 1, False)
    intact = json.loads(verification_json("s1", "p", verify_session(made.session, None, head)))
    assert (intact["outcome"], intact["row"], intact["head"]) == ("intact", None, head)
