from __future__ import annotations

import pytest

from sigwrap.policy.judge.subcommand import subcommand


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
