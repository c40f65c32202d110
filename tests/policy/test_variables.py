from __future__ import annotations

from itertools import pairwise

import pytest

from sigwrap.policy.language.document import Source
from sigwrap.policy.language.fill import Room, TooLong, UnknownVariable, substitute
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.problems import InvalidPolicy

DOUBLED = ("a", *(f"b{n}" for n in range(40)), "zz")
VALUES = {"HOME": "/home/a+b", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "substituted"),
    [
        ("$HOME {HOME}", "$HOME {HOME}"),
        ("${HOME}", "/home/a+b"),
        ("a${HOME}b${HOME}", "a/home/a+bb/home/a+b"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY:-}", ""),
        ("${UNSET:-a b}", "a b"),
        ("${HOME:-x}", "/home/a+b"),
    ],
)
def test_what_a_text_becomes(text: str, substituted: str) -> None:
    assert substitute(text, VALUES, Room()) == substituted


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("${UNSET}", "UNSET"),
        ("${", ""),
        ("${}", ""),
        ("${1A}", "1A"),
        ("${HOME", "HOME"),
        ("${SIGWRAP_HOST:TOKEN}", "SIGWRAP_HOST"),
    ],
)
def test_what_has_no_value_is_named(reference: str, name: str) -> None:
    with pytest.raises(UnknownVariable) as caught:
        substitute(f"x {reference}", VALUES, Room())
    assert (caught.value.reference, caught.value.name) == (reference, name)


def test_a_value_is_escaped_and_a_default_is_not() -> None:
    text = substitute("${HOME} ${UNSET:-a+b}", VALUES, Room(), escape=lambda value: f"<{value}>")
    assert text == "</home/a+b> a+b"


def test_the_hosts_values_stay_names_where_they_are_allowed() -> None:
    text = substitute("${HOME} ${SIGWRAP_HOST:TOKEN}", VALUES, Room(), host_allowed=True)
    assert text == "/home/a+b ${SIGWRAP_HOST:TOKEN}"
    with pytest.raises(UnknownVariable):
        substitute("${SIGWRAP_HOST:}", VALUES, Room(), host_allowed=True)


def test_variables_that_double_one_another_are_one_problem_and_take_no_memory() -> None:
    lines = ["  a: xxxxxxxxxxxxxxxx", *(f"  {b}: ${{{a}}}${{{a}}}" for a, b in pairwise(DOUBLED))]
    rules = [f"  - {{name: r{n}, commands: [x], args_patterns: ['${{zz}}']}}" for n in range(99)]
    text = "\n".join(["version: 1", "name: x", "vars:", *lines, "command_rules:", *rules])
    with pytest.raises(InvalidPolicy) as found:
        parse_policy(Source("x.yaml", text), variables={}, find_base=lambda _name, _source: None)
    too_long = [each for each in found.value.problems if "1048576 characters" in each.message]
    assert len(too_long) == 2
    assert too_long[0].place.line > 3


def test_one_text_of_many_references_is_bounded_as_well() -> None:
    with pytest.raises(TooLong):
        substitute("${A}" * 3_000, {"A": "x" * 1_000}, Room())
