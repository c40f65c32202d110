"""sigwrap policy learn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from sigwrap.cli.chain_note import note_broken_chains
from sigwrap.cli.examples import examples
from sigwrap.cli.options import StoreOption, store_folder, words_of
from sigwrap.cli.output import note, out
from sigwrap.cli.policy.recorded import policy_then, selector_of, variables_of, what_it_is_now
from sigwrap.cli.policy.shared import selector_from, variables, write_new
from sigwrap.cli.several import SessionsArgument
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words
from sigwrap.events import Event
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import Action
from sigwrap.policy.language.schema import PATTERNS, Form
from sigwrap.policy.tools.generate import generate_policy
from sigwrap.policy.tools.learn import Head, Learned, Only, Wanted, learned_policy
from sigwrap.start.policy_files import load_policy
from sigwrap.store.catalog import open_session
from sigwrap.store.reader import Session

if TYPE_CHECKING:
    _Decision = Action
else:
    _Decision = words_of(Action)

_SESSIONS_NAMED = 3


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("policy learn"))(learn)


def learn(
    sessions: SessionsArgument = None,
    new: Annotated[
        bool,
        typer.Option("--new", help="Print a new policy that allows only what the sessions did"),
    ] = False,
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
            "--output", "-o", metavar="FILE", help="Write to this new file", show_default=False
        ),
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
            show_default=False,
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
    signals to any target of the same type, and the connections. It denies everything else. If the
    sessions audited files, it allows writing only in the directories in which they wrote.
    """
    if not re.fullmatch(PATTERNS[Form.NAME], name):
        raise UsageError(f"--name {shell_words([name])}: not a valid policy name")
    if new and (only or decision or extends):
        raise UsageError("--new can't be combined with --only, --decision or --extends")
    folder = store_folder(store)
    found = [open_session(folder, each) for each in sessions or [""]]
    opened = list({each.path: each for each in found}.values())
    note_broken_chains(opened)
    if new:
        learned = Learned(generate_policy(_events(opened), name=name), 0)
    else:
        kinds = frozenset(only or (Only.DENIED, Only.ASKED))
        wanted = Wanted(kinds, _decision(kinds, decision and Action(decision.value)))
        learned = _learned(opened, wanted, name, extends, output or "learned.yaml")
    if not learned.text:
        return
    if output is None:
        out(learned.text.rstrip())
        return
    write_new(output, learned.text)
    rules = f" with {learned.rules} rule{'s' * (learned.rules != 1)}" if learned.rules else ""
    out(f"wrote {shell_words([output])}{rules}. Read it, then run:")
    out(f"  sigwrap policy check {shell_words([output])}")


def _learned(
    opened: list[Session], wanted: Wanted, name: str, extends: str | None, file: str
) -> Learned:
    selectors = {extends or selector_of(each) for each in opened}
    if len(selectors) > 1:
        shown = " and ".join(sorted(shell_words([each]) for each in selectors))
        raise UsageError(
            f"these sessions ran under {shown}", "give sessions that ran under the same policy"
        )
    [selector] = selectors
    here, *others = (variables_of(each, variables(None)) for each in opened)
    if any(each != here for each in others):
        raise UsageError(
            "these sessions ran in different directories, or as different users",
            "give one session at a time, so that ${PROJECT_ROOT} and ${HOME} have one value",
        )
    is_now = "" if extends else _what_it_is_now(selector, opened, here)
    if is_now:
        note(f"{shell_words([selector])} {is_now}; using its text from the log")
        base = policy_then(opened[0], here)
    else:
        base = load_policy(selector, variables=here)
    about = _named(opened)
    head = Head(
        name=name,
        extends=selector if is_now else selector_from(selector, file),
        about=about,
        base=base if is_now else None,
        is_now=is_now,
    )
    learned = learned_policy(_events(opened), Engine(base), wanted, head)
    if not learned.text:
        became = " or ".join(each.past for each in Only if each in wanted.only)
        note(f"nothing to learn: nothing was {became} in {about}")
    return learned


def _events(opened: list[Session]) -> Iterator[Event]:
    return chain.from_iterable(each.events() for each in opened)


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


def _what_it_is_now(selector: str, opened: list[Session], here: dict[str, str]) -> str:
    """Return how the policy has changed since any of the sessions, or ""."""
    found = next(filter(None, (what_it_is_now(selector, each, here) for each in opened)), "")
    if found and len({repr(policy_then(each, here)) for each in opened}) > 1:
        raise UsageError(
            f"{shell_words([selector])} {found}, and was different in each session",
            "give one session at a time",
        )
    return found


def _named(opened: list[Session]) -> str:
    shown = ", ".join(each.id for each in opened[:_SESSIONS_NAMED])
    more = len(opened) - _SESSIONS_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
