"""A list of commands, each with what the shipped policies decide about it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.policy.judge.globs import check_glob
from sigwrap.policy.judge.match import check_regex, check_regexes
from sigwrap.policy.judge.request import Action
from sigwrap.policy.tools.cases import command_request
from sigwrap.start.policy_files import SHIPPED
from tests.policy.test_shipped import engine_of, load

LIST = Path(__file__).with_name("decisions.txt")
# Rules by which agent-default needs approval, for what ci allows.
ALLOWED_BY_CI = frozenset({"pkg-install", "pkg-run", "pkg-run-unknown"})


def _lines() -> Iterator[tuple[int, str, str, str, str]]:
    for number, line in enumerate(LIST.read_text().splitlines(), start=1):
        if line and not line.startswith("#"):
            before, _, decision = line.rpartition(" -> ")
            policies, folder, command = before.split(" | ", 2)
            for policy in policies.split():
                yield number, policy, folder, command, decision


def test_each_command_is_decided_as_the_list_says() -> None:
    wrong = []
    for number, policy, folder, command, decision in _lines():
        decided = engine_of(policy).decide_command(
            command_request(shlex.split(command), folder=folder)
        )
        if decided.action.value != decision:
            wrong.append(
                f"{LIST.name}:{number}: {policy}: {command}: {decision} was expected, "
                f"and it is {decided.action.value} by {decided.rule}"
            )
    assert not wrong, "\n".join(wrong)


# ci denies these, although it allows others by the same rule. In the first four, the word behind an
# unknown option may be its value, or the subcommand.
DENIED_BY_CI = """
npm --fund x install y
npm --save-dev true install left-pad
npm --yes true exec left-pad
pip --unheard-of p install x
apk fix x
brew bundle
brew tap x/y
bun create vite
bun x cowsay
cpan -T JSON::XS
gem exec x
helm plugin install x
mise use node@22
nix-shell -p x
npm create vite@latest app
pnpm --silent dlx cowsay
pnpm create vite
pnpm dlx cowsay
snap refresh
yarn dlx cowsay
yay -S x
""".strip().splitlines()


def test_what_a_denial_says_that_ci_allows_ci_allows() -> None:
    wrong, found = set(), set()
    for _, policy, folder, command, _ in _lines():
        request = command_request(shlex.split(command), folder=folder)
        asked = engine_of("agent-default").decide_command(request)
        if policy == "agent-default" and asked.action is Action.APPROVE:
            by_ci = engine_of("ci").decide_command(request).action
            if asked.rule in ALLOWED_BY_CI and by_ci not in (Action.ALLOW, Action.AUDIT):
                wrong.add(command)
            found.add(asked.rule)
    assert sorted(wrong) == sorted(DENIED_BY_CI)
    assert found >= ALLOWED_BY_CI


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_pattern_compiles(name: str) -> None:
    """Loading them doesn't compile them, for that takes time at each start."""
    for rule in load(name).command_rules:
        for pattern in rule.args_patterns:
            check_regex(pattern)
        if rule.args_patterns:
            check_regexes(rule.args_patterns)
        for glob in (*rule.commands, *rule.paths, *rule.sources):
            check_glob(glob)
