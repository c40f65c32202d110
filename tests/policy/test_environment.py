"""Which variables a policy takes from COMMAND, by their names alone."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.environment import JudgedNames, Kept, Removed, judge_names
from sigwrap.policy.judge.rules import EnvPolicy
from tests.policy.conftest import Parse


def judged(remove: tuple[str, ...], keep: tuple[str, ...], *names: str) -> JudgedNames:
    return judge_names(EnvPolicy(remove, keep), names)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (
            "API_KEY",
            ["API_KEY"],
            ["OPENAI_API_KEY", "API_KEYS", "api_key", "API_KEY ", "API_KEY\n"],
        ),
        ("*_KEY", ["A_KEY", "_KEY", "a/b_KEY", "x\ny_KEY", "\udcff_KEY"], ["KEY", "A_KEY_ID"]),
        ("A?C", ["ABC", "AéC", "A/C"], ["AC", "ABBC"]),
        ("[!A]X", ["BX"], ["AX", "X"]),
        ("*", ["A", "a b"], []),
        ("A.C", ["A.C"], ["ABC"]),
        ("BASH_FUNC_f%%", ["BASH_FUNC_f%%"], ["BASH_FUNC_f"]),
        ("[", ["["], ["A"]),
    ],
)
def test_a_pattern_is_about_whole_names(
    pattern: str, matching: list[str], others: list[str]
) -> None:
    found = judged((pattern,), (), *matching, *others)
    assert found.removed == tuple(Removed(name, pattern) for name in sorted(matching))


def test_the_first_pattern_is_named_and_keep_comes_before_it() -> None:
    found = judged(("*_KEY", "API_*"), ("MY_*", "*"), "API_KEY", "MY_KEY", "HOME")
    kept = (Kept("API_KEY", "*_KEY", "*"), Kept("MY_KEY", "*_KEY", "MY_*"))
    assert found == JudgedNames(removed=(), kept=kept)


def test_what_nothing_removes_is_not_kept_either() -> None:
    assert judged((), ("*",), "HOME") == JudgedNames((), ())


def test_the_key_of_the_log_is_always_removed() -> None:
    for remove in ((), ("SIGWRAP_*",)):
        found = judged(remove, ("SIGWRAP_KEY",), "SIGWRAP_KEY", "XSIGWRAP_KEY")
        assert found.removed == (Removed("SIGWRAP_KEY", ""),)


def test_a_list_of_ones_own_replaces_that_of_the_base(parse: Parse) -> None:
    base = "version: 1\nname: base\nenv_policy: {remove: [A], keep: [B]}\n"
    own = "version: 1\nname: x\nextends: base\n"
    for section, remove, keep in (
        ("", ("A",), ("B",)),
        ("env_policy: {remove: [C]}\n", ("C",), ("B",)),
        ("env_policy: {remove: []}\n", (), ("B",)),
    ):
        found = parse(own + section, {"base": base}).env_policy
        assert (found.remove, found.keep) == (remove, keep)
