"""A first policy for a project: it loads, passes its own tests, and allows nothing new."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.language.lint import lint
from sigwrap.policy.tools.cases import command_request, run_cases
from sigwrap.policy.tools.starter import Project, starter_policy
from sigwrap.start.policy_files import SHIPPED
from tests.policy.test_suggest import base

PACKAGE = '{"scripts": {"deploy": "x", "test": "y", "release:prod": "z", "a b": "", "--x": ""}}'
MAKEFILE = "VERSION := 1\nall: build\nbuild:\n\tcc\npublish: all\n\tscp\n.PHONY: all\n"
FOUND = Project.of({"package.json": PACKAGE, "Makefile": MAKEFILE, "pyproject.toml": ""})


def decide(text: str, line: str) -> str:
    return Engine(base(text)).decide_command(command_request(line.split())).action.value


def test_what_deploys_is_found_in_the_projects_files() -> None:
    assert Project(("deploy", "release:prod"), ("publish",), is_python=True) == FOUND


@pytest.mark.parametrize("text", ["", "[", "5", '{"scripts": 5}', '{"scripts": {}}', "[" * 9999])
def test_a_package_that_is_none_has_no_scripts(text: str) -> None:
    assert Project.of({"package.json": text}) == Project()


@pytest.mark.parametrize("extends", SHIPPED)
@pytest.mark.parametrize("project", [Project(), FOUND])
def test_it_loads_without_a_doubt_and_passes_its_tests(extends: str, project: Project) -> None:
    policy = base(starter_policy("mine", extends, project, decide))
    assert policy.warnings == () and lint(policy) == ()
    results = list(run_cases(Engine(policy)))
    assert len(results) == 3 + len(project.scripts) + len(project.targets)
    assert all(each.passed for each in results)


def test_what_deploys_is_asked_about() -> None:
    text = starter_policy("mine", "agent-observe", FOUND, decide)
    assert decide(text, "npm run deploy") == decide(text, "make publish") == "approve"
    assert decide(text, "npm test") == decide(text, "make build") == "audit"


def test_every_example_is_good_when_its_marks_are_taken_away() -> None:
    text = starter_policy("mine", "agent-observe", FOUND, decide)
    bare = re.sub(r"^( *)# (?=- |  |signal_rules|limits)", r"\1", text, flags=re.MULTILINE)
    policy = base(bare)
    assert {"our-deploy", "install-this-project"} <= {rule.name for rule in policy.command_rules}
    assert "reload-our-server" in {rule.name for rule in policy.signal_rules}
    assert policy.limits.wall_time_s == 7200


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
    base(starter_policy("mine", "agent-observe", project, decide))
