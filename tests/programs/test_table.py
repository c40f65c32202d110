"""What the table of programs says is what was run."""

from __future__ import annotations

from tests.programs import table
from tests.programs.checking import Result, Verdict
from tests.programs.program import POLICIES, Program, User
from tests.programs.selected import FORMS

PROGRAM = Program(name="a")


def row(results: list[Result], program: Program = PROGRAM, page: str = "") -> str:
    kept = {(result.program, result.user, result.form, result.policy): result for result in results}
    return table.rows(table.markdown([program], kept, table.rows(page))).get("a", "")


def result(user: User, form: str, policy: str, verdict: Verdict = Verdict.SAME) -> Result:
    return Result("a", user.value, form, policy, verdict)


def test_one_word_says_that_everything_was_run() -> None:
    everything = [result(u, f, p) for u in User for f in FORMS for p in POLICIES]
    assert row(everything) == "| a | same | same | same |"
    assert row(everything[1:]) == (
        "| a | same (package: an ordinary user; binary: both users) | same | same |"
    )


def test_the_package_does_not_speak_for_the_binary() -> None:
    found = [result(user, "package", "ci") for user in User]
    assert row(found) == "| a |  |  | same (package: both users) |"


def test_users_who_have_all_forms_are_named_once() -> None:
    found = [result(User.ORDINARY, form, "ci") for form in FORMS]
    assert row(found) == "| a |  |  | same (an ordinary user) |"


def test_each_verdict_names_its_runs() -> None:
    found = [
        result(User.US, "package", "ci"),
        result(User.ORDINARY, "package", "ci", Verdict.DIFFERS),
        result(User.US, "binary", "ci", Verdict.SKIPPED),
    ]
    assert row(found) == "| a |  |  | same (package: root); differs (package: an ordinary user) |"


def test_what_was_not_run_has_no_row() -> None:
    assert row([result(User.US, "package", "ci", Verdict.SKIPPED)]) == ""


def test_what_was_run_elsewhere_alone_keeps_its_row() -> None:
    before = "| a | same | same | differs |"
    skipped = result(User.US, "package", "ci", Verdict.SKIPPED)
    assert row([skipped], page=f"| program | …\n{before}\n") == before
    ours = [result(User.US, "package", "ci")]
    assert row(ours, page=before) == "| a |  |  | same (package: root) |"


def test_what_knows_no_policy_counts_for_all() -> None:
    program = Program(name="a", forwarded=True)
    found = [result(user, form, POLICIES[0]) for user in User for form in FORMS]
    assert row(found, program) == "| a | same | same | same |"
