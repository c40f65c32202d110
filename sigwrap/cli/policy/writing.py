"""sigwrap policy init, suggest, generate, pin: each writes YAML for a person to read."""

from __future__ import annotations

import os
import re
import sys
from enum import Enum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sigwrap.cli.chain_note import note_broken_chains
from sigwrap.cli.examples import examples
from sigwrap.cli.options import StoreOption, store_folder, words_of
from sigwrap.cli.output import note, out
from sigwrap.cli.policy.recorded import (
    selector_of,
    started_of,
    text_then,
    variables_of,
    what_it_is_now,
)
from sigwrap.cli.policy.shared import variables, write_new
from sigwrap.cli.several import SessionsArgument
from sigwrap.cli.tool_files import pinned
from sigwrap.cli.whole_file import there_already
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words
from sigwrap.events import Payload
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import Action
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.language.shapes import PATTERNS, Form
from sigwrap.policy.tools.cases import command_request, run_cases
from sigwrap.policy.tools.generate import generate_policy
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
from sigwrap.policy.tools.suggested import Head, Only, Wanted, suggested_policy
from sigwrap.run.settings import DEFAULT_POLICY
from sigwrap.start.policy_files import SHIPPED, find_base, load_policy
from sigwrap.store.catalog import open_session
from sigwrap.store.reader import Session

if TYPE_CHECKING:
    _Decision = Action
else:
    _Decision = words_of(Action)

_SUFFIXES = (".yaml", ".yml")
_MOST_READ = 1 << 20
_SESSIONS_NAMED = 3


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("policy init"))(init)
    app.command(epilog=examples("policy suggest"))(suggest)
    app.command(epilog=examples("policy generate"))(generate)
    app.command(epilog=examples("policy pin"))(pin)


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
    base = _from(selector, file)
    load_policy(selector, variables=variables(None))  # says what is wrong with it, if anything
    project = Project.of(_project_files())
    given = [extends, kind, network, push]
    if not any(given) and sys.stdin.isatty() and sys.stderr.isatty():
        answers = _asked(project)
    else:
        answers = Answers(kind or project.kind, network or Network.ANY, push or Push.ALLOW)
    load = partial(_load_text, file, variables(None))

    def decide(text: str, line: str) -> str:
        return Engine(load(text)).decide_command(command_request(line.split())).action.value

    text = starter_policy(called, base, project, answers, decide)
    _complain(load(text), selector)
    write_new(file, text)
    word = shell_words([file])
    out(f"wrote {word}, which extends {shell_words([selector])}. Read it, then run:")
    out(f"  sigwrap policy test {word}")
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


def _complain(policy: Policy, base: str) -> None:
    """Raise UsageError if the base makes the policy mean something else than was asked for."""
    failed = [each for each in run_cases(Engine(policy)) if not each.passed]
    if failed:
        raise UsageError(
            f"the rules of {shell_words([base])} allow every host", "leave out --network"
        )


def suggest(
    sessions: SessionsArgument = None,
    only: Annotated[
        list[Only] | None,
        typer.Option(
            "--only", help="Outcome of the actions [default: denied and asked]", show_default=False
        ),
    ] = None,
    decision: Annotated[
        _Decision | None,
        typer.Option(
            "--decision",
            help="Decision of the rules [default: allow; deny for audited actions]",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to this new file",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Name of the policy")
    ] = "suggested",
    extends: Annotated[
        str | None,
        typer.Option(
            "--extends",
            metavar="NAME|FILE",
            help="Base of the new policy [default: the policy of the session]",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Print rules for actions that a session denied.

    It also covers actions that needed approval. The output is a policy that extends the policy of
    the session, with one rule for each action. If that policy file is gone or has changed, the
    output contains its text from the log. Read the rules before you use them: a program may have
    tried something it should not do.
    """
    if not re.fullmatch(PATTERNS[Form.NAME], name):
        raise UsageError(f"--name {shell_words([name])}: not a valid policy name")
    kinds = frozenset(only or (Only.DENIED, Only.ASKED))
    wanted = Wanted(only=kinds, decision=_decision(kinds, decision and Action(decision.value)))
    folder = store_folder(store)
    found = [open_session(folder, each) for each in sessions or [""]]
    opened = list({os.path.realpath(each.path): each for each in found}.values())
    note_broken_chains(opened)
    started = [started_of(each) for each in opened]
    selectors = [
        extends or selector_of(each, session.id)
        for each, session in zip(started, opened, strict=True)
    ]
    if len(set(selectors)) > 1:
        shown = " and ".join(sorted({shell_words([each]) for each in selectors}))
        raise UsageError(
            f"these sessions ran under {shown}", "give sessions that ran under the same policy"
        )
    here, *others = (variables_of(each, variables(None)) for each in started)
    if any(each != here for each in others):
        raise UsageError(
            "these sessions ran in different directories, or as different users",
            "give one session at a time, so that ${PROJECT_ROOT} and ${HOME} have one value",
        )
    file = output or "suggested.yaml"
    load = partial(_load_text, file, here)
    selector, begins_with = selectors[0], ""
    is_now = "" if extends else _what_it_is_now(selector, started, opened, here)
    if is_now:
        if any(each.get("policy_sources") != started[0].get("policy_sources") for each in started):
            raise UsageError(
                f"{shell_words([selector])} {is_now}, and was different in each session",
                "give one session at a time",
            )
        begins_with = text_then(opened[0], here, load)
        note(f"{shell_words([selector])} {is_now}; using its text from the log")
    base = load(begins_with) if begins_with else load_policy(selector, variables=here)
    head = Head(
        name=name,
        extends=selector if begins_with else _from(selector, file),
        about=_sessions_named([each.id for each in opened]),
        became=" or ".join(each.past for each in Only if each in kinds),
        decision=wanted.decision,
        policy=base.name,
        is_now=is_now,
        begins_with=begins_with,
    )
    suggested = suggested_policy(
        lambda: chain.from_iterable(each.events() for each in opened),
        Engine(base),
        load,
        wanted,
        head,
    )
    if not suggested.text:
        note(f"nothing to suggest: nothing was {head.became} in {head.about}")
        return
    if output is None:
        out(suggested.text.rstrip())
        return
    write_new(output, suggested.text)
    rules = "1 rule" if suggested.rules == 1 else f"{suggested.rules} rules"
    out(f"wrote {shell_words([output])} with {rules}. Read it, then run:")
    out(f"  sigwrap policy check {shell_words([output])}")


def generate(
    sessions: SessionsArgument = None,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Name of the policy")
    ] = "generated",
    store: StoreOption = None,
) -> None:
    """Print a policy from the actions of sessions.

    It allows the programs and subcommands that ran, with any arguments, and the signals that were
    sent, to any target of the same type. It denies everything else. If the sessions audited files,
    it allows writing only in the directories in which they wrote.
    """
    if not name or not name.isprintable():
        raise UsageError(f"--name {shell_words([name])}: not a valid policy name")
    folder = store_folder(store)
    opened = [open_session(folder, each) for each in sessions or [""]]
    note_broken_chains(opened)
    events = chain.from_iterable(each.events() for each in opened)
    out(generate_policy(events, name=name).rstrip())


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
    """Return the name of the policy. A folder's name may need other characters."""
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


def _decision(kinds: frozenset[Only], decision: Action | None) -> str:
    if decision is None:
        if Only.AUDITED in kinds and len(kinds) > 1:
            raise UsageError(
                "--only audited makes rules that deny, and the others rules that allow",
                "give one of them, or --decision",
            )
        return "deny" if Only.AUDITED in kinds else "allow"
    if decision not in (Action.ALLOW, Action.AUDIT, Action.DENY):
        raise UsageError(f"--decision {decision.value}: must be allow, audit or deny")
    return str(decision.value)


def _from(selector: str, file: str) -> str:
    """As a policy in `file` names it: a file beside it, by its way from there."""
    if selector in SHIPPED:
        return selector
    if not selector.isprintable():
        raise UsageError(f"{shell_words([selector])}: a policy can't extend a file with this name")
    found = os.path.relpath(selector, os.path.dirname(file) or ".")
    return f"./{found}" if found in SHIPPED else found


def _what_it_is_now(
    selector: str, started: list[Payload], opened: list[Session], here: dict[str, str]
) -> str:
    """Of the policy of these sessions, where it isn't what each of them was recorded under."""
    each = zip(started, opened, strict=True)
    found = (what_it_is_now(selector, start, session.id, here) for start, session in each)
    return next(filter(None, found), "")


def _load_text(file: str, known: dict[str, str], text: str) -> Policy:
    """As if it were in that file already."""
    return parse_policy(Source(name=file, text=text), variables=known, find_base=find_base)


def _sessions_named(ids: list[str]) -> str:
    shown = ", ".join(ids[:_SESSIONS_NAMED])
    more = len(ids) - _SESSIONS_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _project_files() -> dict[str, str]:
    found = {}
    for name in PROJECT_FILES:
        path = Path(name)
        try:
            if path.is_file() and path.stat().st_size <= _MOST_READ:
                found[name] = path.read_text("utf-8", errors="replace")
        except OSError:
            continue  # it is as if it weren't there
    return found
