"""A first policy for a project, of about 20 lines: a base, and rules that make it stricter."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from sigwrap.policy.tools.literal import yaml_list, yaml_word
from sigwrap.tuples import NamedTuple


class Kind(Enum):
    """Kinds of projects."""

    NODE = "node"
    PYTHON = "python"
    GO = "go"
    RUST = "rust"
    OTHER = "other"


class Network(Enum):
    """Hosts that commands may reach."""

    ANY = "any"
    LISTED = "listed"
    LOCAL = "local"


class Push(Enum):
    """Decisions about `git push`."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Answers(NamedTuple):
    kind: Kind
    network: Network = Network.ANY
    push: Push = Push.ALLOW


_KIND_BY_FILE = {
    "package.json": Kind.NODE,
    "pyproject.toml": Kind.PYTHON,
    "requirements.txt": Kind.PYTHON,
    "setup.py": Kind.PYTHON,
    "go.mod": Kind.GO,
    "Cargo.toml": Kind.RUST,
}
PROJECT_FILES = ("Makefile", *_KIND_BY_FILE)
_REGISTRIES = {
    Kind.NODE: ("registry.npmjs.org",),
    Kind.PYTHON: ("pypi.org", "files.pythonhosted.org"),
    Kind.GO: ("proxy.golang.org", "sum.golang.org"),
    Kind.RUST: ("index.crates.io", "static.crates.io"),
    Kind.OTHER: (),
}
_HOSTS = ("github.com", "api.anthropic.com", "api.openai.com")
_TESTS = {
    Kind.NODE: ("npm test", "npm install left-pad"),
    Kind.PYTHON: ("pytest", "pip install requests"),
    Kind.GO: ("go test", "go install x@latest"),
    Kind.RUST: ("cargo test", "cargo install ripgrep"),
    Kind.OTHER: ("make test",),
}
_PUSHES = ("git push", "git push --force")

_LEAVES_THE_MACHINE = re.compile(r"(deploy|publish|release|ship|rollout)([:_.-].*)?\Z")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:_.-]{0,39}")
_TARGET = re.compile(r"^([A-Za-z][A-Za-z0-9_.-]{0,39}) *:(?!=)", re.MULTILINE)
_MOST_NAMES = 10


class Project(NamedTuple):
    """A project as its files describe it."""

    kind: Kind = Kind.OTHER
    scripts: tuple[str, ...] = ()  # of package.json, by their names for publishing or deploying
    targets: tuple[str, ...] = ()  # of the Makefile, the same

    @classmethod
    def of(cls, files: Mapping[str, str]) -> Project:
        """Read a project from the texts of the PROJECT_FILES that exist."""
        return cls(
            kind=next((_KIND_BY_FILE[each] for each in _KIND_BY_FILE if each in files), Kind.OTHER),
            scripts=_leaving(_scripts(files.get("package.json", ""))),
            targets=_leaving(_TARGET.findall(files.get("Makefile", ""))),
        )


def starter_policy(
    name: str,
    extends: str,
    project: Project,
    answers: Answers,
    decide: Callable[[str, str], str],
) -> str:
    """Write a policy. `decide` returns the decision of a policy's text about a command line."""
    text = "\n".join(_lines(name, extends, project, answers)) + "\n"
    lines = _tried(project, answers.kind)
    cases = [f"  - {{command: {line}, decision: {decide(text, line)}}}" for line in lines]
    if answers.network is not Network.ANY:
        cases.append('  - {connect: "example.com:443", decision: deny}')
    return "\n".join([f"{text}\ntests:", *cases]) + "\n"


def _lines(name: str, extends: str, project: Project, answers: Answers) -> Iterator[str]:
    yield "# Rules of this project, before those of the base. They only make it stricter."
    yield "version: 1"
    yield f"name: {name}"
    yield f"extends: {yaml_word(extends)}"
    if answers.network is not Network.ANY:
        yield ""
        yield "# Also allowed: looking up names, and servers on this machine."
        yield "network: {default: deny}"
    if answers.network is Network.LISTED:
        yield "network_rules:"
        yield "  - name: listed-hosts"
        yield f"    destinations: {yaml_list((*_REGISTRIES[answers.kind], *_HOSTS))}"
        yield "    ports: [22, 443]"
        yield "    decision: allow"
    rules = list(_rules(project, answers.push))
    if rules:
        yield ""
        yield "# `overrides: []`: where the base is stricter, it decides."
        yield from rules


def _rules(project: Project, push: Push) -> Iterator[str]:
    found = []
    if push is not Push.ALLOW:
        decision = "approve" if push is Push.ASK else "deny"
        found.append(("pushes", "[git]", ["push"], decision))
    if project.scripts:
        words = [word for each in project.scripts for word in (f"run {each}", each)]
        tools = "[npm, npm-cli.js, pnpm, pnpm.cjs, yarn, yarn.js, bun]"
        found.append(("scripts-that-publish", tools, words, "approve"))
    if project.targets:
        found.append(("targets-that-publish", "[make, gmake]", [*project.targets], "approve"))
    if found:
        yield "command_rules:"
    for name, commands, subcommands, decision in found:
        yield f"  - name: {name}"
        yield f"    commands: {commands}"
        yield f"    subcommands: {yaml_list(subcommands)}"
        yield f"    decision: {decision}"
        yield "    overrides: []"


def _tried(project: Project, kind: Kind) -> list[str]:
    scripts = [f"npm run {each}" for each in project.scripts]
    return [*_TESTS[kind], *_PUSHES, *scripts, *(f"make {each}" for each in project.targets)]


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
