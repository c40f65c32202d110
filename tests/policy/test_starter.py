"""A first policy for a project: it loads, passes its own tests, and allows nothing new."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.network import Direction, endpoint_of
from sigwrap.policy.language.lint import lint
from sigwrap.policy.tools.cases import command_request, run_cases, weakenings
from sigwrap.policy.tools.starter import (
    Answers,
    Kind,
    Network,
    Project,
    Push,
    starter_policy,
    starter_tests,
)
from sigwrap.start.policy_files import SHIPPED
from tests.policy.test_suggest import base

PACKAGE = '{"scripts": {"deploy": "x", "test": "y", "release:prod": "z", "a b": "", "--x": ""}}'
MAKEFILE = "VERSION := 1\nall: build\nbuild:\n\tcc\npublish: all\n\tscp\n.PHONY: all\n"
FOUND = Project.of({"package.json": PACKAGE, "Makefile": MAKEFILE, "pyproject.toml": ""})
OTHER = Answers(Kind.OTHER)


def decide(text: str, line: str) -> str:
    return Engine(base(text)).decide_command(command_request(line.split())).action.value


def starter(project: Project, answers: Answers, extends: str = "agent-default") -> str:
    text = starter_policy("mine", extends, project, answers)
    return text + starter_tests(project, answers, Engine(base(text)))


def test_scripts_and_targets_that_deploy_are_found() -> None:
    assert Project(Kind.NODE, ("deploy", "release:prod"), ("publish",)) == FOUND


@pytest.mark.parametrize("text", ["", "[", "5", '{"scripts": 5}', '{"scripts": {}}', "[" * 9999])
def test_an_invalid_package_has_no_scripts(text: str) -> None:
    assert Project.of({"package.json": text}) == Project(Kind.NODE)


@pytest.mark.parametrize("extends", [each for each in SHIPPED if each != "agent-observe"])
@pytest.mark.parametrize("project", [Project(), FOUND])
@pytest.mark.parametrize("network", Network)
@pytest.mark.parametrize("push", Push)
def test_it_loads_without_warnings_and_passes_its_tests(
    extends: str, project: Project, network: Network, push: Push
) -> None:
    for kind in Kind:
        text = starter(project, Answers(kind, network, push), extends)
        policy = base(text)
        assert policy.warnings == () and lint(policy) == () and weakenings(policy) == ()
        results = list(run_cases(Engine(policy)))
        assert len(results) >= 3 + len(project.scripts) + len(project.targets)
        assert all(each.passed for each in results)


def test_each_answer_changes_its_decisions() -> None:
    closed = Answers(Kind.PYTHON, Network.LISTED, Push.DENY)
    engine = Engine(base(starter(Project(), closed)))
    for destination, action in (
        ("pypi.org:443", "allow"),
        ("github.com:22", "allow"),
        ("registry.npmjs.org:443", "deny"),
        ("192.0.2.1:53", "allow"),
        ("127.0.0.1:8000", "allow"),
    ):
        endpoint = endpoint_of(destination, Direction.CONNECT)
        assert engine.network.decide(endpoint).action.value == action, destination
    assert engine.decide_command(command_request(["git", "push"])).action.value == "deny"


def test_deploying_needs_approval() -> None:
    text = starter(FOUND, OTHER, "agent-observe")
    assert decide(text, "npm run deploy") == decide(text, "make publish") == "approve"
    assert decide(text, "npm test") == decide(text, "make build") == "audit"


@given(
    st.dictionaries(st.text(max_size=12) | st.just("deploy"), st.just("x"), max_size=5),
    st.text(max_size=60),
    st.text(alphabet="deploy:\n -#'\"{", max_size=60),
)
def test_no_name_in_a_projects_files_breaks_it(
    scripts: dict[str, str], anything: str, likely: str
) -> None:
    package = json.dumps({"scripts": scripts})
    makefile = f"{anything}\n{likely}\ndeploy-x.y: a\n"
    project = Project.of({"package.json": package, "Makefile": makefile})
    base(starter(project, OTHER, "agent-observe"))
