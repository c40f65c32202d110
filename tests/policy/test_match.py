"""Nothing a person writes into a pattern, or a program into its arguments, may cost much time."""

from __future__ import annotations

import time

import pytest

from sigwrap.policy.judge.globs import MAX_PATTERN_CHARACTERS, BadPattern
from sigwrap.policy.judge.match import (
    MAX_MATCHED_ARGUMENTS,
    MAX_MATCHED_BYTES,
    Arguments,
    Regex,
    check_regex,
)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "a?" * 50 + "a" * 50 + "c",
        "[ab]*a[ab]{14}c",
        "(x{0,30}){0,30}y",
    ],
)
def test_a_hostile_pattern_answers_in_milliseconds(pattern: str) -> None:
    arguments = Arguments(["x", "a" * MAX_MATCHED_BYTES + "b"])
    regex = Regex([pattern])
    started = time.process_time()
    arguments.match(regex)
    assert time.process_time() - started < 0.25


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "x" * (MAX_PATTERN_CHARACTERS + 1),
        "(x{0,40}){0,40}(y{0,40}){0,40}",
        r"(a)\1",
        "\ud800",
    ],
)
def test_a_pattern_that_is_no_regex_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        check_regex(pattern)


def test_the_longest_pattern_is_accepted() -> None:
    check_regex("x" * MAX_PATTERN_CHARACTERS)


def test_each_argument_and_all_of_them_joined_are_searched() -> None:
    arguments = Arguments(["git", "push", "--force", "x y"])
    assert arguments.match(Regex(["^push --force x y$"]))
    assert arguments.match(Regex(["^--force$"]))
    assert arguments.match(Regex(["^x y$"]))
    assert not arguments.match(Regex(["git"]))
    assert Arguments(["git"]).match(Regex(["^$"]))


def test_text_beyond_ascii_and_bytes_that_are_no_text() -> None:
    assert Arguments(["x", "café"]).match(Regex(["^caf[éè]$"]))
    broken = Arguments(["x", "caf\udce9"])
    assert broken.match(Regex(["^caf.$"]))
    assert not broken.match(Regex(["é"]))
    assert Arguments(["git", "push", "\udcff", "--force"]).match(Regex(["^push .*--force$"]))
    assert Arguments(["git", "push", "\n", "--force"]).match(Regex(["^push .*--force$"]))


def test_several_patterns_do_not_mix() -> None:
    regex = Regex(["^a", "b|c$"])
    assert regex.found_in(b"ax") and regex.found_in(b"xc") and not regex.found_in(b"xcx")


def test_what_is_beyond_the_bounds_is_cut_and_said_so() -> None:
    assert not Arguments(["x", "a" * MAX_MATCHED_BYTES]).cut
    long = Arguments(["x", "a" * MAX_MATCHED_BYTES, "b"])
    assert long.cut and not long.match(Regex(["b"]))
    many = Arguments(["x"] * (MAX_MATCHED_ARGUMENTS + 100))
    assert many.cut and len(many.texts) == MAX_MATCHED_ARGUMENTS + 1
    assert not Arguments(["x"] * MAX_MATCHED_ARGUMENTS).cut
    assert sum(map(len, Arguments(["x", *["ab" * 9000] * 9]).texts)) <= 2 * MAX_MATCHED_BYTES


def test_no_text_is_searched_twice_and_none_that_is_not_there() -> None:
    assert Arguments(["x", "only"]).texts == [b"only"]
    filling = Arguments(["x", "a" * (MAX_MATCHED_BYTES - 1), "b"])
    assert not filling.match(Regex(["^$"]))
