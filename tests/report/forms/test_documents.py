from __future__ import annotations

import json

from sigwrap.log.catalog import list_sessions
from sigwrap.report.check.decisions import Reproduction
from sigwrap.report.check.verify import verify_session
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.selection import Selection
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms import documents
from tests.report.conftest import Scenario, summarise


def test_the_report_holds_what_the_text_holds(made: Scenario) -> None:
    made.execute(10, 1, "git", "status\udcff")
    made.signal("SIGTERM", "git", "sh", "parent")
    made.exit(10, None, "SIGKILL")
    head = made.end(exit_status=137)
    fold = Summary()
    verification = verify_session(made.session, None, and_also=fold.add)
    text = documents.report_json(fold.end(Ending.NOT_CLEAN), verification)
    assert text.isascii()
    document = json.loads(text)
    assert document["schema"] == "sigwrap.report/2"
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
    assert document["died_of_signal"]["found"][0]["pid"] == 10
    assert document["outcomes"] == {
        "exec": {"audited": 1},
        "signal": {"audited": 1},
        "connection": {},
    }
    assert [
        (each["kind"], each["outcome"], each["what"], each["count"], each["first_seq"])
        for each in document["attention"]["groups"]
    ] == [
        ("exec", "audited", "git $'status\\xff'", 1, 2),
        ("signal", "audited", "SIGTERM to sh (11, parent)", 1, 3),
    ]
    assert document["processes"]["tree"] == [
        {
            "depth": 0,
            "argv": ["git", "status\udcff"],
            "exec_in_place": False,
            "refused": False,
            "forked": False,
            "first_pid": 10,
            "first_seq": 2,
            "count": 1,
            "processes": 1,
            "running": 0,
            "failed": 0,
            "not_started": 0,
            "killed": {"SIGKILL": 1},
            "outcomes": {"audited": 1},
        }
    ]


def test_numbers_say_what_they_count(made: Scenario) -> None:
    made.execute(10, 1, "sh")
    made.add("exec_denied", 11, path="/bin/rm", argv=["rm"], ppid=10, rule_name="r")
    for number in range(22):
        made.add("call_refused", 10, comm=f"sh{number}", syscall_number=1)
    made.end()
    part = summarise(made, Ending.ENDED, Selection(rule="builtin:record"))
    of_a_part = documents.report_document(part)["processes"]
    assert (of_a_part["count"], of_a_part["known"], of_a_part["in_tree"]) == (1, 2, 1)
    document = documents.report_document(summarise(made, Ending.ENDED))
    assert document["processes"]["in_tree"] == 2
    assert len(document["incidents"]["found"]) == 20
    assert document["incidents"]["more"] == 2
    assert document["incidents"]["more_by_kind"] == {"call_refused": 2}


def test_an_event_is_one_line_with_its_time_twice(made: Scenario) -> None:
    made.execute(10, 1, "a\nb")
    event = list(made.session.events())[1]
    line = documents.event_json(event)
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


def test_sessions_and_verifications_have_their_schemas(made: Scenario) -> None:
    head = made.end()
    sessions = json.loads(documents.sessions_json(list_sessions(made.store)))
    assert sessions["schema"] == "sigwrap.sessions/2"
    assert [(file["session_id"], file["exit_status"]) for file in sessions["sessions"]] == [
        ("s1", 0)
    ]
    verification = verify_session(made.session, b"key")
    decisions = Reproduction(
        decisions=3, reproduced=2, not_judged={"masked": 1}, not_judged_rows={"masked": (7,)}
    )
    document = json.loads(documents.verification_json("s1", made.log.path, verification, decisions))
    assert document["schema"] == "sigwrap.verify/2"
    assert document["decisions"] == {
        "count": 3,
        "reproduced": 2,
        "not_judged": {"masked": 1},
        "not_judged_rows": {"masked": [7]},
    }
    assert (document["outcome"], document["row"], document["ended"]) == ("broken", 1, False)
    verification = verify_session(made.session, None, head)
    intact = json.loads(documents.verification_json("s1", "p", verification, Reproduction()))
    assert (intact["outcome"], intact["row"], intact["head"]) == ("intact", None, head)
