"""sigwrap policy init, pin."""

from __future__ import annotations

import os
import re
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.cli.group import App
from sigwrap.cli.output import note, out
from sigwrap.cli.policy.shared import selector_from, variables, write_new
from sigwrap.cli.tool_files import pinned
from sigwrap.cli.whole_file import there_already
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.language.shapes import PATTERNS, Form
from sigwrap.policy.tools.cases import command_request, run_cases
from sigwrap.policy.tools.pin import pin_rules
from sigwrap.policy.tools.starter import (
    PROJECT_FILES,
    Answers,
    Kind,
    Network,
    Project,
    Push,
    starter_policy,
)
from sigwrap.run.settings import DEFAULT_POLICY
from sigwrap.start.policy_files import SHIPPED, find_base, load_policy

_SUFFIXES = (".yaml", ".yml")
_MOST_READ = 1 << 20


app = App()


@app.command()
def init(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME|FILE]",
            help="Name or file of the policy [default: policy.yaml, named after the directory]",
            show_default=False,
        ),
    ] = "",
    extends: Annotated[
        str, typer.Option("--extends", metavar="NAME|FILE", help="Base of the new policy")
    ] = "",
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="Kind of project", show_default=False)
    ] = None,
    network: Annotated[
        Network | None,
        typer.Option(
            "--network", help="Hosts that it may reach [default: any]", show_default=False
        ),
    ] = None,
    push: Annotated[
        Push | None,
        typer.Option("--push", help="Whether it may git push [default: allow]", show_default=False),
    ] = None,
) -> None:
    """Write a first policy for this project.

    On a terminal, without options, it asks three questions: the kind of project, which hosts it may
    reach, and whether it may git push. It finds scripts of package.json and targets of the Makefile
    that publish or deploy: these need approval. It overwrites no file.
    """
    file = name if name.endswith(_SUFFIXES) else f"{name or 'policy'}.yaml"
    called = _called(name, file)
    if os.path.lexists(file):
        raise there_already(file)
    selector = extends or DEFAULT_POLICY
    base = selector_from(selector, file)
    load_policy(selector, variables=variables(None))  # so that an error names the base
    project = Project.of(_project_files())
    given = [extends, kind, network, push]
    if not any(given) and sys.stdin.isatty() and sys.stderr.isatty():
        answers = _asked(project)
    else:
        answers = Answers(kind or project.kind, network or Network.ANY, push or Push.ALLOW)

    def engine_of(text: str) -> Engine:
        source = Source(name=file, text=text)
        return Engine(parse_policy(source, variables=variables(None), find_base=find_base))

    def decide(text: str, line: str) -> str:
        return engine_of(text).decide_command(command_request(line.split())).action.value

    text = starter_policy(called, base, project, answers, decide)
    if not all(each.passed for each in run_cases(engine_of(text))):
        why = f"the rules of {shell_words([selector])} allow every host"
        raise UsageError(why, "leave out --network")
    write_new(file, text)
    word = shell_words([file])
    out(f"wrote {word}, which extends {shell_words([selector])}. Read it, then run:")
    out(f"  sigwrap policy check {word}")
    out(f"  sigwrap -p {word} -- COMMAND")


def _asked(project: Project) -> Answers:
    def ask(question: str, default: Enum) -> str:
        words = [each.value for each in type(default)]
        while True:
            said: str = typer.prompt(
                f"{question} ({', '.join(words)})", default=default.value, type=str, err=True
            )
            if said.strip() in words:
                return said.strip()
            note(f"type one of {', '.join(words)}")

    return Answers(
        Kind(ask("What kind of project?", project.kind)),
        Network(ask("Which hosts may its commands reach?", Network.ANY)),
        Push(ask("May they git push?", Push.ASK)),
    )


@app.command()
def pin(
    tools: Annotated[
        list[str],
        typer.Argument(metavar="TOOL...", help="Name of a tool in PATH, or its path"),
    ],
) -> None:
    """Print rules that deny changed tools.

    The rules deny a tool after its file has changed.
    """
    out(pin_rules(list(map(pinned, tools))))


def _called(name: str, file: str) -> str:
    """Return the name of the policy, which has fewer characters than that of a directory."""
    if name in SHIPPED:
        raise UsageError(f"{name} is a shipped policy", "choose another name; yours can extend it")
    stem = os.path.splitext(os.path.basename(file))[0]
    if name:
        if not re.fullmatch(PATTERNS[Form.NAME], stem):
            what = 'use letters, digits, ".", "_" and "-"'
            raise UsageError(f"{shell_words([name])} is not a valid policy name", what)
        return stem
    folder = os.path.basename(os.path.abspath("."))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder).strip("-._") or "project"


def _project_files() -> dict[str, str]:
    found = {}
    for name in PROJECT_FILES:
        path = Path(name)
        try:
            if path.is_file() and path.stat().st_size <= _MOST_READ:
                found[name] = path.read_text("utf-8", errors="replace")
        except OSError:
            continue  # the same as if the file did not exist
    return found
