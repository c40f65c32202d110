"""A first policy for a project, of about 20 lines: a base, and rules that make it stricter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from sigwrap.bare import NamedTuple
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.tools.cases import command_request
from sigwrap.policy.tools.literal import yaml_list, yaml_word


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
    push: Push = Push.ASK


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
_SCRIPT_RUNNERS = "[npm, npm-cli.js, pnpm, pnpm.cjs, yarn, yarn.js, bun]"
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


def starter_policy(name: str, extends: str, project: Project, answers: Answers) -> str:
    """Write a policy without tests."""
    return "\n".join(_lines(name, extends, project, answers)) + "\n"


def starter_tests(project: Project, answers: Answers, engine: Engine) -> str:
    """Write the tests of a policy: its decisions on usual commands, by its engine."""
    lines = [*_TESTS[answers.kind], "git push", "git push --force"]
    lines += [f"npm run {each}" for each in project.scripts]
    lines += [f"make {each}" for each in project.targets]
    cases = ["", "tests:"]
    for line in lines:
        decision = engine.decide_command(command_request(line.split())).action.value
        cases.append(f"  - {{command: {line}, decision: {decision}}}")
    if answers.network is not Network.ANY:
        cases.append('  - {connect: "example.com:443", decision: deny}')
    return "\n".join(cases) + "\n"


def _lines(name: str, extends: str, project: Project, answers: Answers) -> Iterator[str]:
    yield "# Rules of this project, before those of the base. They only make it stricter."
    yield from ("version: 1", f"name: {name}", f"extends: {yaml_word(extends)}")
    if answers.network is not Network.ANY:
        yield ""
        yield "# Also allowed: looking up names, and servers on this machine."
        yield "network: {default: deny}"
    if answers.network is Network.LISTED:
        hosts = yaml_list((*_REGISTRIES[answers.kind], *_HOSTS))
        yield "network_rules:"
        yield from ("  - name: listed-hosts", f"    destinations: {hosts}")
        yield from ("    ports: [22, 443]", "    decision: allow")
    push = {Push.ASK: "approve", Push.DENY: "deny"}.get(answers.push, "")
    scripts = [word for each in project.scripts for word in (f"run {each}", each)]
    rules = [
        ("pushes", "[git]", ["push"] if push else [], push),
        ("scripts-that-publish", _SCRIPT_RUNNERS, scripts, "approve"),
        ("targets-that-publish", "[make, gmake]", project.targets, "approve"),
    ]
    if any(words for _, _, words, _ in rules):
        yield ""
        yield "# `overrides: []`: where the base is stricter, it decides."
        yield "command_rules:"
    for rule, commands, words, decision in rules:
        if words:
            yield from (f"  - name: {rule}", f"    commands: {commands}")
            yield from (f"    subcommands: {yaml_list(words)}", f"    decision: {decision}")
            yield "    overrides: []"


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
