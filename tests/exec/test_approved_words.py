"""A question has what decides: the words that a script's first line adds, the variables that load
code. A yes is one to those."""

from __future__ import annotations

from pathlib import Path

from tests.exec.test_approved import Start, start
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy

__all__ = ["start"]

ASK_WHAT_IS_LOADED = """
  - {name: loads, commands: [ok], loads_code: true, decision: approve}
"""


def test_a_variable_that_came_since_the_question_meets_its_rule(
    start: Start, as_user: Sigwrap, programs: Path
) -> None:
    rules = """
  - {name: no-libraries, commands: [ok], loads_code: true, decision: deny}
  - {name: ask, commands: [ok], decision: approve}
"""
    policy(as_user.folder, rules)
    run = start(*PYTHON, str(programs / "changes_its_mind.py"), "variable")
    run.approve_once_changed(run.question())
    assert run.out.line() == b"9"
    assert run.end() == 0
    (event,) = as_user.sealed_events("exec_denied")
    assert event.payload["rule_name"] == "no-libraries"


def test_always_is_not_for_what_variables_load(start: Start, as_user: Sigwrap) -> None:
    """The library of that name is another by the second time."""
    policy(as_user.folder, ASK_WHAT_IS_LOADED)
    (as_user.folder / "new.so").write_text("another")
    line = "export LD_PRELOAD=./lib.so; ./ok 1; LD_PRELOAD= mv new.so lib.so; ./ok 1; :"
    run = start("sh", "-c", line)
    first = run.question()
    listed = run.answer("approvals").stdout
    assert b"loads LD_PRELOAD=./lib.so\n" in listed
    assert b"what its variables load may be another next time: no `always` covers it" in listed
    assert run.answer("approve", first, "--always").returncode == 0
    run.out.until(rb"ok 1\n")
    assert run.answer("deny", run.question()).returncode == 0
    assert run.end() == 0
    assert run.out.rest() == b""
    asked = as_user.sealed_events("approval_requested")
    assert [event.payload["loads"] for event in asked] == ["LD_PRELOAD=./lib.so"] * 2


def test_a_value_that_changed_since_the_question_is_not_run(
    start: Start, as_user: Sigwrap, programs: Path
) -> None:
    """The variable has come since the first question, its value since the second."""
    rules = f"{ASK_WHAT_IS_LOADED}  - {{name: ask, commands: [ok], decision: approve}}\n"
    policy(as_user.folder, rules)
    run = start(*PYTHON, str(programs / "changes_its_mind.py"), "variable", "value")
    for loads in (b"", b"loads LD_PRELOAD=/no/library\n"):
        approval_id = run.question()
        assert loads in run.answer("approvals").stdout
        run.approve_once_changed(approval_id)
    assert run.out.line() == b"9"
    assert run.end() == 0
    (event,) = as_user.sealed_events("exec_denied")
    assert event.payload["reason"] == "not approved: it changed again while it was asked about"
