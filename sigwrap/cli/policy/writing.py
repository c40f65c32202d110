"""sigwrap policy init, pin, learn."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from typer._types import TyperChoice

from sigwrap.cli.group import App
from sigwrap.cli.options import StoreOption, store_folder
from sigwrap.cli.output import note, out
from sigwrap.cli.policy.shared import policy_then, selector_from, started_of, variables, write_new
from sigwrap.cli.several import SessionsArgument
from sigwrap.cli.tool_files import pinned
from sigwrap.cli.verify import note_broken_chains
from sigwrap.cli.whole_file import there_already
from sigwrap.errors import PolicyError, SessionError, UsageError
from sigwrap.events import counted, text
from sigwrap.log.catalog import open_session
from sigwrap.log.reader import Session
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.fill import BUILT_IN
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.language.shapes import PATTERNS, Form
from sigwrap.policy.tools.cases import run_cases
from sigwrap.policy.tools.generate import generate_policy
from sigwrap.policy.tools.learn import Head, Learned, Only, learned_policy
from sigwrap.policy.tools.pin import pinning_policy
from sigwrap.policy.tools.show import policy_text
from sigwrap.policy.tools.starter import (
    PROJECT_FILES,
    Answers,
    Kind,
    Network,
    Project,
    Push,
    starter_policy,
    starter_tests,
)
from sigwrap.report.check.decisions import NoPolicy, recorded_sources, recorded_variables
from sigwrap.session.settings import DEFAULT_POLICY
from sigwrap.start.policy_files import SHIPPED, find_base, load_policy
from sigwrap.text import shell_words

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
        ),
    ] = "",
    extends: Annotated[
        str, typer.Option("--extends", metavar="NAME|FILE", help="Base of the new policy")
    ] = "",
    kind: Annotated[Kind | None, typer.Option("--kind", help="Kind of project")] = None,
    network: Annotated[
        Network | None,
        typer.Option("--network", help="Hosts that it may reach [default: any]"),
    ] = None,
    push: Annotated[
        Push | None,
        typer.Option("--push", help="Whether it may git push [default: ask]"),
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
        answers = Answers(kind or project.kind, network or Network.ANY, push or Push.ASK)

    def engine_of(text: str) -> Engine:
        source = Source(name=file, text=text)
        return Engine(parse_policy(source, variables=variables(None), find_base=find_base))

    text = starter_policy(called, base, project, answers)
    text += starter_tests(project, answers, engine_of(text))
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
        words = TyperChoice([each.value for each in type(default)])
        return str(typer.prompt(question, default=default.value, type=words, err=True))

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
    """Print a policy that denies changed tools.

    It denies a tool after its file has changed. To pin tools in your own policy, copy the rules.
    """
    out(pinning_policy(DEFAULT_POLICY, map(pinned, tools)))


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


@app.command()
def learn(
    sessions: SessionsArgument = None,
    new: Annotated[
        bool,
        typer.Option("--new", help="Print a new policy that allows only what the sessions did"),
    ] = False,
    only: Annotated[
        list[Only] | None,
        typer.Option(
            "--only",
            help="Outcome of the actions; rules for audited actions deny "
            "[default: denied and asked]",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this new file"),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Name of the policy")
    ] = "learned",
    extends: Annotated[
        str | None,
        typer.Option(
            "--extends",
            metavar="NAME|FILE",
            help="Base of the policy [default: the policy of the session]",
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Print rules for denied actions of a session.

    It also covers actions that needed approval. The output is a policy that extends the policy of
    the session, with a rule for each action and its exact arguments. If that policy has changed
    since, the output contains it as the log has it. Read the rules before you use them: a program
    may have tried something it should not do.

    With --new, the output allows the programs and subcommands that ran, with any arguments, the
    signals to any target of the same type, and the connections. A program or subcommand of which
    something was denied keeps its exact arguments. The output denies other commands and signals. It
    restricts the network if the sessions recorded connections, and writing if they audited files.
    """
    if not re.fullmatch(PATTERNS[Form.NAME], name):
        raise UsageError(f"--name {shell_words([name])}: not a valid policy name")
    if new and (only or extends):
        raise UsageError("--new can't be combined with --only or --extends")
    folder = store_folder(store)
    opened = [open_session(folder, each) for each in sessions or [""]]
    note_broken_chains(opened)
    if new:
        events = chain.from_iterable(each.events() for each in opened)
        learned = Learned(generate_policy(events, name=name), 0)
    elif len(opened) > 1:
        raise UsageError("rules are for one session", "give one, or --new")
    else:
        kinds = frozenset(only or (Only.DENIED, Only.ASKED))
        if Only.AUDITED in kinds and len(kinds) > 1:
            raise UsageError("--only audited can't be combined with another --only")
        learned = _learned(opened[0], kinds, name, extends, output or "learned.yaml")
    if not learned.text:
        return
    if output is None:
        out(learned.text.rstrip())
        return
    write_new(output, learned.text)
    rules = f" with {counted(learned.rules, 'rule')}" if learned.rules else ""
    out(f"wrote {shell_words([output])}{rules}. Read it, then run:")
    out(f"  sigwrap policy check {shell_words([output])}")


def _learned(
    session: Session, only: frozenset[Only], name: str, extends: str | None, file: str
) -> Learned:
    recorded = recorded_variables(started_of(session))
    # With the variables of the run, a path in its policy means the same as then.
    here = {each: recorded.get(each) or variables(None).get(each, "") for each in BUILT_IN}
    selector = extends or _selector(session)
    base = load_policy(selector, variables=here) if extends else _unchanged(selector, session, here)
    head = Head(name, selector_from(selector, file), session.id)
    if base is None:
        note(f"{shell_words([selector])} has changed since; using its text from the log")
        base = policy_then(session, here)
        head = head._replace(base=base, extends=selector)
    learned = learned_policy(session.events(), Engine(base), only, head)
    if not learned.text:
        became = " or ".join(each.past for each in Only if each in only)
        note(f"nothing to learn: nothing was {became} in {session.id}")
    return learned


def _selector(session: Session) -> str:
    """Return the name of a shipped policy, or the path of a file, which may no longer exist."""
    started = started_of(session)
    try:
        source = recorded_sources(started)[0]
    except NoPolicy as why:
        raise SessionError(f"{session.id}: {why}", "name the base with --extends") from why
    shipped = source.name.removesuffix(".yaml")
    if source.shipped:
        return shipped
    path = os.path.normpath(os.path.join(text(started.get("cwd")) or "/", source.name))
    # The shipped policy of another version has another text.
    return shipped if shipped in SHIPPED and not os.path.isfile(path) else path


def _unchanged(selector: str, session: Session, here: Mapping[str, str]) -> Policy | None:
    """Return the policy if it still is that of the session, or is shipped.

    No error names what is in another file: a log can name any file of this machine.
    """
    try:
        now = load_policy(selector, variables=here)
    except PolicyError:
        return None
    same = selector in SHIPPED or policy_text(now) == policy_text(policy_then(session, here))
    return now if same else None
