"""sigwrap policy init, suggest, generate, pin: each writes YAML for a person to read."""

from __future__ import annotations

import os
import re
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
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words
from sigwrap.events import Payload
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import Action
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.language.schema import PATTERNS, Form
from sigwrap.policy.tools.cases import command_request
from sigwrap.policy.tools.generate import generate_policy
from sigwrap.policy.tools.pin import pin_rules
from sigwrap.policy.tools.starter import PROJECT_FILES, Project, starter_policy
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
            help="my-project writes my-project.yaml; left out: policy.yaml, named after this "
            "folder.",
            show_default=False,
        ),
    ] = "",
    extends: Annotated[
        str, typer.Option("--extends", metavar="NAME|FILE", help="The policy to begin with.")
    ] = DEFAULT_POLICY,
) -> None:
    """Write a first policy for this project.

    No file is overwritten. Scripts of package.json and targets of the Makefile that deploy or
    publish are asked about.
    """
    file = name if name.endswith(_SUFFIXES) else f"{name or 'policy'}.yaml"
    called = _called(name, file)
    base = _from(extends, file)
    load = partial(_load_text, file, variables(None))

    def decide(text: str, line: str) -> str:
        return Engine(load(text)).decide_command(command_request(line.split())).action.value

    load_policy(extends, variables=variables(None))  # says what is wrong with it, if anything
    text = starter_policy(called, base, Project.of(_project_files()), decide)
    load(text)
    write_new(file, text)
    word = shell_words([file])
    out(f"{word} is written: it extends {shell_words([extends])}. Read it, then:")
    out(f"  sigwrap policy check {word}")
    out(f"  sigwrap policy test {word}")
    out(f"  sigwrap -p {word} -- COMMAND")


def suggest(
    sessions: SessionsArgument = None,
    only: Annotated[
        list[Only] | None,
        typer.Option("--only", help="denied and asked, if left out.", show_default=False),
    ] = None,
    decision: Annotated[
        _Decision | None,
        typer.Option(
            "--decision",
            help="What the rules say: allow if left out, and deny of what was audited.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write it there; no file is overwritten.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="The policy's name.")
    ] = "suggested",
    extends: Annotated[
        str | None,
        typer.Option(
            "--extends",
            metavar="NAME|FILE",
            help="Instead of the policy that the session ran under.",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Print rules for what a session was denied.

    Also for what it was asked about: a policy with one rule for each such thing, which extends the
    session's; where that file is gone or another one now, the rules are put into its text as the
    log has it. What else they would change of what was recorded is counted in the head. Read it
    before you use it: a program may have asked for what it ought not to get.
    """
    if not re.fullmatch(PATTERNS[Form.NAME], name):
        raise UsageError(f"--name {shell_words([name])}: a policy can't be called that")
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
        raise UsageError(f"these sessions ran under {shown}", "give those of one policy at a time")
    here, *others = (variables_of(each, variables(None)) for each in started)
    if any(each != here for each in others):
        raise UsageError(
            "these sessions ran in different folders, or as different users",
            "what ${PROJECT_ROOT} and ${HOME} stand for is one thing only: give one at a time",
        )
    file = output or "suggested.yaml"
    load = partial(_load_text, file, here)
    selector, begins_with = selectors[0], ""
    is_now = "" if extends else _what_it_is_now(selector, started, opened, here)
    if is_now:
        if any(each.get("policy_sources") != started[0].get("policy_sources") for each in started):
            raise UsageError(
                f"{shell_words([selector])} {is_now}, and was another in each session",
                "give one at a time",
            )
        begins_with = text_then(opened[0], here, load)
        note(f"{shell_words([selector])} {is_now}: begun with its text in the log")
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
        note(f"nothing was {head.became} in {head.about}: there is nothing to suggest")
        return
    if output is None:
        out(suggested.text.rstrip())
        return
    write_new(output, suggested.text)
    rules = "1 rule" if suggested.rules == 1 else f"{suggested.rules} rules"
    out(f"{shell_words([output])} is written, with {rules}. Read it, then:")
    out(f"  sigwrap policy check {shell_words([output])}")


def generate(
    sessions: SessionsArgument = None,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="The policy's name.")
    ] = "generated",
    store: StoreOption = None,
) -> None:
    """Print a policy of what sessions did.

    It allows the programs and subcommands that ran, with any arguments, and the signals that were
    sent, to any process of the same kind; everything else is denied. Where files were audited, it
    allows writing in the folders that were written in, and nowhere else.
    """
    if not name or not name.isprintable():
        raise UsageError(f"--name {shell_words([name])}: a policy can't be called that")
    folder = store_folder(store)
    opened = [open_session(folder, each) for each in sessions or [""]]
    note_broken_chains(opened)
    events = chain.from_iterable(each.events() for each in opened)
    out(generate_policy(events, name=name).rstrip())


def pin(
    tools: Annotated[
        list[str],
        typer.Argument(
            metavar="TOOL...", help="A name, found along PATH as a run would, or a path."
        ),
    ],
) -> None:
    """Print rules that deny changed tools.

    Once the file of such a tool is another than now, it is denied.
    """
    out(pin_rules(list(map(pinned, tools))))


def _called(name: str, file: str) -> str:
    """The policy's name: nobody cares much for it, so a folder's is made to fit."""
    if name in SHIPPED:
        raise UsageError(f"{name} is a shipped policy", "call yours otherwise; it may extend that")
    stem = os.path.splitext(os.path.basename(file))[0]
    if name:
        if not re.fullmatch(PATTERNS[Form.NAME], stem):
            what = "a name has letters, digits, ., _ and -"
            raise UsageError(f"{shell_words([name])}: no policy can be called that", what)
        return stem
    folder = os.path.basename(os.path.abspath("."))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder).strip("-._") or "project"


def _decision(kinds: frozenset[Only], decision: Action | None) -> str:
    if decision is None:
        if Only.AUDITED in kinds and len(kinds) > 1:
            raise UsageError(
                "--only audited asks for rules that deny, and the others for rules that allow",
                "give one of them, or --decision",
            )
        return "deny" if Only.AUDITED in kinds else "allow"
    if decision not in (Action.ALLOW, Action.AUDIT, Action.DENY):
        raise UsageError(f"--decision {decision.value}: allow, audit or deny can be suggested")
    return str(decision.value)


def _from(selector: str, file: str) -> str:
    """As a policy in `file` names it: a file beside it, by its way from there."""
    if selector in SHIPPED:
        return selector
    if not selector.isprintable():
        raise UsageError(f"{shell_words([selector])}: a policy can't extend a file of that name")
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
