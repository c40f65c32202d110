from __future__ import annotations

import pytest

from sigwrap.policy.judge.subcommand import names_of, readings, subcommand


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("git push --force", "push"),
        ("git -C push status", "status"),
        ("git -c a=b --git-dir x push", "push"),
        ("git --git-dir=x push", "push"),
        ("git --version", ""),
        ("git", ""),
        ("npm --prefix web install", "install"),
        ("docker -H tcp://x run", "run"),
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
        ("gh pr merge 12", "pr merge"),
        ("gh -R o/p pr -R x/y merge 12", "pr merge"),
        ("gh -b text pr merge 12", "pr merge"),
        ("gh --odd text pr merge 12", "pr merge"),
        ("npm i", "install"),
        ("npm inst", "install"),
        ("npm x", "exec"),
        ("npm publ", "publish"),
        ("npm stag publish", "stage publish"),
        ("npm crea vite", "init vite"),
        ("npm inni vite", "init vite"),
        ("npm upgr", "update"),
        ("npm distTag add", "dist-tag add"),
        ("npm distTags add", "dist-tag add"),
        ("npm cleanInstall", "ci"),
        ("npm installTest x", "install-test x"),
        ("npm sta", "sta"),
        ("cargo +nightly install x", "install"),
        ("pip3.11 install x", "install"),
        ("pip-3.11 --odd x install y", "install"),
        ("apt-get -yo A=b install x", "install"),
        ("apt-get -oA=b install x", "install"),
        ("docker compose -f x push", "compose push"),
        ("docker -- push x", "push"),
        ("gem i x", "i"),
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
