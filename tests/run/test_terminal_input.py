"""What is an answer to a question on the terminal, and what isn't."""

from __future__ import annotations

import re

from sigwrap.approve.requests import Verdict
from sigwrap.approve.wording import TypedAnswers


def codes(answers: TypedAnswers) -> tuple[str, str]:
    shown = re.fullmatch(
        r'Allow\? Type "y ([a-z]{4})" \(once\), "a ([a-z]{4})" \(this session\) or "n": ',
        answers.shown,
    )
    assert shown is not None
    return shown[1], shown[2]


def test_an_answer_is_the_whole_line() -> None:
    for line, verdict in [
        ("y {once}\n", Verdict.ONCE),
        (" Y{once} \n", Verdict.ONCE),
        ('"y {once}"\n', Verdict.ONCE),
        ("yes {once}\n", Verdict.ONCE),
        ("a {always}\n", Verdict.ALWAYS),
        ("always {always}\n", Verdict.ALWAYS),
        ("n\n", Verdict.NO),
        ("No\n", Verdict.NO),
        ("y\n", None),
        ("a\n", None),
        ("{once}\n", None),
        ("a {once}\n", None),
        ("y {always}\n", None),
        ("y {once}", None),  # pushed by a Ctrl+D
        ("\x1b[0ny {once}\n", None),
        ("y {once}\x9b\n", None),
        ("y {once}\r\n", None),
        ("y {once}\0\n", None),
        ("y {once}\ny {once}\n", None),
        ("\n", None),
        ("", None),
    ]:
        answers = TypedAnswers(or_always=True)
        once, always = codes(answers)
        said = line.format(once=once, always=always)
        assert answers.verdict(said.encode("latin-1")) is verdict, line


def test_each_question_has_codes_of_its_own() -> None:
    shown = [codes(TypedAnswers(or_always=True)) for _ in range(50)]
    assert all(once != always for once, always in shown)
    assert len({code for both in shown for code in both}) > 80


def test_always_is_offered_only_where_it_is_kept() -> None:
    answers = TypedAnswers(or_always=False)
    shown = re.fullmatch(r'Allow\? Type "y ([a-z]{4})" \(once\) or "n": ', answers.shown)
    assert shown is not None
    assert answers.verdict(f"y{shown[1]}\n".encode()) is Verdict.ONCE
    assert answers.verdict(f"a{shown[1]}\n".encode()) is None
