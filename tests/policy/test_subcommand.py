from __future__ import annotations

import pytest

from sigwrap.policy.judge.subcommand import names_of, readings, subcommand


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("git push --force", "push"),
        ("git -C push status", "status"),
        ("git -c a=b --git-dir x push", "push"),
        ("git --version", ""),
        ("git", ""),
        ("pip3 --proxy p install", "install"),
        ("tofu -chdir=x apply", "apply"),
        ("anything -x one two", "one"),
    ],
)
def test_the_first_argument_that_is_no_option(command: str, word: str) -> None:
    argv = command.split()
    assert subcommand(argv[0], argv) == word


def test_no_arguments_at_all() -> None:
    assert subcommand("git", ()) == ""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("gh --odd text pr merge 12", "pr merge"),
        ("npm sta", "sta"),
        ("apt-get -yo A=b install x", "install"),
        ("apt-get -oA=b install x", "install"),
        ("docker -- push x", "push"),
        ("pnpm upgr", "upgr"),
        ("yarn --json", ""),
    ],
)
def test_what_a_rule_may_call_it(line: str, words: str) -> None:
    argv = line.split()
    assert any(words in names_of(argv[0], each) for each in readings(argv[0], argv))


def test_an_option_that_is_known_leaves_one_reading() -> None:
    assert readings("git", ["git", "-C", "x", "--no-pager", "push"]) == (("push",),)
    assert len(readings("git", ["git", "--odd", "x", "push"])) == 2
    assert readings("git", ["git", "push", "--odd"]) == (("push",),)


def test_a_tool_that_is_not_known_has_two_as_well() -> None:
    assert readings("unknown", ["unknown", "--odd", "x"]) == (("x",), ())
    assert readings("unknown", ["unknown", "-e", "x", "up"]) == (("x", "up"), ("up",))
    assert readings("unknown", ["unknown", "--odd=x", "up"]) == (("up",),)
    assert readings("unknown", ["unknown", "--verbose", "run", "up"]) == (("run", "up"),)


@pytest.mark.parametrize("flags", ["--dry-run false", "-y true", "--no-color always", "-gf null"])
def test_a_flag_may_take_a_truth_value(flags: str) -> None:
    argv = ["npm", *flags.split(), "publish"]
    assert ("publish",) in readings("npm", argv)
    assert len(readings("npm", argv)) == 2
