from __future__ import annotations

from sigwrap.report.check.decisions import Reproduction
from sigwrap.report.check.verify import verify_session
from sigwrap.report.folds.ending import Ending
from sigwrap.report.forms.verification import render_verification
from tests.report.conftest import Scenario, Scenarios


def test_a_verification_tells_what_it_could_not_see(made: Scenario) -> None:
    verification = verify_session(made.session, None)
    assert render_verification("s1", verification, Ending.RUNNING).splitlines() == [
        "s1: 1 event, hash chain intact (no key)",
        "the session is running",
        f"head {made.log.head}",
        "To detect a truncated log, pass the head printed by the run with --head",
    ]
    head = made.end()
    text = render_verification("s1", verify_session(made.session, None, head), Ending.NOT_CLEAN)
    assert text.splitlines() == ["s1: 2 events, hash chain intact (no key)", f"head {head}"]


def test_a_verification_that_failed_is_one_line(scenario: Scenarios) -> None:
    made = scenario(key=b"secret")
    made.end()
    for key, said in (
        (b"wrong", "NOT INTACT: row 1: its hash does not match"),
        (None, "not checked: the log is keyed: set $SIGWRAP_KEY to check it"),
    ):
        text = render_verification("s1\n", verify_session(made.session, key), Ending.NOT_CLEAN)
        assert text.startswith(f"s1\\n: {said}")
        assert text.isprintable()


def test_it_names_the_rows_that_cannot_be_reproduced(made: Scenario) -> None:
    made.end()
    left = Reproduction(
        decisions=9,
        reproduced=1,
        not_judged={"cut": 1, "masked": 7},
        not_judged_rows={"cut": (4,), "masked": (2, 3)},
    )
    verification = verify_session(made.session, None)
    text = render_verification("s1", verification, Ending.NOT_CLEAN, reproduction=left)
    assert text.splitlines()[1:4] == [
        "1 of 9 decisions reproduced under the recorded policy",
        "1 decision cannot be reproduced: cut (row 4)",
        "7 decisions cannot be reproduced: masked (rows 2, 3 and 5 more)",
    ]
