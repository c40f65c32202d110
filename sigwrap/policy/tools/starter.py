"""A first policy for a project: a base, what its folder has that ought to be asked about, and
examples to begin with. It allows nothing that its base doesn't."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sigwrap.policy.tools.literal import yaml_list, yaml_word
from sigwrap.tuples import NamedTuple

PROJECT_FILES = ("package.json", "Makefile", "pyproject.toml")

_LEAVES_THE_MACHINE = re.compile(r"(deploy|publish|release|ship|rollout)([:_.-].*)?\Z")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:_.-]{0,39}")
_TARGET = re.compile(r"^([A-Za-z][A-Za-z0-9_.-]{0,39}) *:(?!=)", re.MULTILINE)
_MOST_NAMES = 10
_TRIED = ("git status", "git push --force", "npm install left-pad")


class Project(NamedTuple):
    """What its files have that looks as if it would leave the machine."""

    scripts: tuple[str, ...] = ()  # of package.json
    targets: tuple[str, ...] = ()  # of the Makefile
    is_python: bool = False

    @classmethod
    def of(cls, files: Mapping[str, str]) -> Project:
        """`files`: the texts of those of PROJECT_FILES that are there."""
        return cls(
            scripts=_leaving(_scripts(files.get("package.json", ""))),
            targets=_leaving(_TARGET.findall(files.get("Makefile", ""))),
            is_python="pyproject.toml" in files,
        )


def starter_policy(
    name: str, extends: str, project: Project, decide: Callable[[str, str], str]
) -> str:
    """`decide`: what a policy, by its text, decides about a command line."""
    text = "\n".join(_lines(name, extends, project)) + "\n"
    cases = [f"  - {{command: {line}, decision: {decide(text, line)}}}" for line in _tried(project)]
    return "\n".join([f"{text}\n# To run these: sigwrap policy test FILE", "tests:", *cases]) + "\n"


def _lines(name: str, extends: str, project: Project) -> Iterator[str]:
    yield "# Rules for this project. To use them: sigwrap -p FILE -- COMMAND"
    yield "# The first matching rule decides. The rules of this file come before those of the base."
    yield "version: 1"
    yield f"name: {name}"
    about = f"Rules of this project, before those of {extends}."
    yield f"description: {yaml_word(about)}"
    yield f"extends: {yaml_word(extends)}"
    rules = list(_rules(project))
    yield ""
    yield from ["command_rules:", *rules] if rules else ["# command_rules:"]
    yield "  # If no rule here matches a command, the base decides. Examples:"
    yield "  # - name: our-deploy"
    yield "  #   commands: [./deploy, kubectl]   # a path in this directory, or a name"
    yield "  #   decision: deny                  # allow, audit, approve, redirect or deny"
    yield "  #   message: deploying is done by the release job"
    if project.is_python:
        yield "  # - name: install-this-project"
        yield "  #   commands: [pip, pip3]"
        yield "  #   subcommands: [install]"
        yield r"  #   args_patterns: ['^install -e \.$']"
        yield "  #   decision: allow"
    yield ""
    yield "# signal_rules:"
    yield "  # - name: reload-our-server"
    yield "  #   signals: [SIGHUP]"
    yield '  #   target: {type: process, pattern: "devserver*"}'
    yield "  #   decision: allow"
    yield ""
    yield "# limits: {wall_time: 2h, max_processes: 2000}"


def _rules(project: Project) -> Iterator[str]:
    if project.scripts:
        yield "  - name: ask-before-scripts"
        yield "    description: Scripts of package.json that seem to publish or deploy."
        yield "    commands: [npm, npm-cli.js, pnpm, pnpm.cjs, yarn, yarn.js, bun]"
        words = [word for each in project.scripts for word in (f"run {each}", each)]
        yield f"    subcommands: {yaml_list(words)}"
        yield "    decision: approve"
    if project.targets:
        yield "  - name: ask-before-targets"
        yield "    description: Targets of the Makefile that seem to publish or deploy."
        yield "    commands: [make, gmake]"
        yield f"    args_patterns: {yaml_list(f'^{re.escape(each)}$' for each in project.targets)}"
        yield "    decision: approve"


def _tried(project: Project) -> list[str]:
    scripts = [f"npm run {each}" for each in project.scripts]
    return [*_TRIED, *scripts, *(f"make {each}" for each in project.targets)]


def _scripts(text: str) -> list[str]:
    try:
        package: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    scripts = package.get("scripts") if isinstance(package, dict) else None
    return [each for each in scripts if _NAME.fullmatch(each)] if isinstance(scripts, dict) else []


def _leaving(names: Sequence[str]) -> tuple[str, ...]:
    found = dict.fromkeys(name for name in names if _LEAVES_THE_MACHINE.match(name))
    return tuple(found)[:_MOST_NAMES]
