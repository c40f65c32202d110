"""What counts as the same."""

from __future__ import annotations

from tests.programs.compare import Difference, difference

NATIVE = {"status": ("0",), "stdout": ("pid 1", "done")}


def test_the_same_is_no_difference() -> None:
    assert difference([NATIVE], dict(NATIVE)) is None


def test_the_first_line_that_differs_is_named() -> None:
    found = difference([NATIVE], {**NATIVE, "stdout": ("pid 2", "done")})
    assert found == Difference("stdout", "pid 1", "pid 2")


def test_a_line_too_few_and_a_line_too_many() -> None:
    assert difference([NATIVE], {**NATIVE, "stdout": ("pid 1",)}) == Difference(
        "stdout", "done", "(nothing more)"
    )
    assert difference([NATIVE], {**NATIVE, "stdout": ("pid 1", "done", "!")}) == Difference(
        "stdout", "(nothing more)", "!"
    )


def test_what_only_the_wrapped_run_has_is_a_difference() -> None:
    assert difference([NATIVE], {**NATIVE, "late": ("did not end",)}) == Difference(
        "late", "(nothing more)", "did not end"
    )


def test_what_differs_natively_is_left_out() -> None:
    natives = [NATIVE, {**NATIVE, "stdout": ("pid 2", "done")}]
    assert difference(natives, {**NATIVE, "stdout": ("pid 3", "done")}) is None
    assert difference(natives, {**NATIVE, "stdout": ("pid 3",)}) == Difference(
        "stdout", "done", "(not there)"
    )
