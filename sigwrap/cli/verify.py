"""sigwrap verify: check that a log was not changed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Annotated

import typer

import sigwrap
from sigwrap.cli.group import App
from sigwrap.cli.options import (
    Format,
    FormatOption,
    LakeOption,
    PagerOption,
    SessionArgument,
    StoreOption,
    opened_lake,
    store_folder,
)
from sigwrap.cli.output import note, out
from sigwrap.cli.showing import Progress, pager, style
from sigwrap.errors import UsageError
from sigwrap.events import Event, counted
from sigwrap.log.catalog import open_session
from sigwrap.log.codec import key_from_environment
from sigwrap.log.reader import Session
from sigwrap.report.check.decisions import BUILT_IN, ReproductionFold
from sigwrap.report.check.in_child import verify_long_session
from sigwrap.report.check.verify import Outcome, Verification, verify_session, with_reproduction
from sigwrap.report.folds.ending import ending_of
from sigwrap.report.forms.verification import problem_of, render_verification
from sigwrap.text import printable

app = App()


@app.command()
def verify(
    session: SessionArgument = "",
    store: StoreOption = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="HASH",
            help="Head from sigwrap --verbose, to detect a truncated log",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Fail also if the policy's decision can't be reproduced or a row has JSON that "
            "sigwrap does not write (for CI); of a lake, also if a session has no end, or has "
            "columns that differ from its payloads",
        ),
    ] = False,
    lake: LakeOption = None,
    form: FormatOption = Format.TEXT,
    no_pager: PagerOption = False,
) -> None:
    """Check that a log was not changed.

    Checks the hash chain, and makes each decision again under the recorded policy. Reports the
    first row that was changed.
    """
    if head is not None and not re.fullmatch("[0-9a-f]{64}", head):
        raise UsageError(f"--head {head!r}: not a head", "a head has 64 hexadecimal digits")
    if lake is not None:
        if session or store is not None:
            raise UsageError("--lake can't be combined with SESSION or --store")
        _verify_lake(lake, [head] if head else [], strict=strict, form=form)
        return
    opened = open_session(store_folder(store), session)
    ending = ending_of(opened)
    decisions = ReproductionFold(sigwrap.__version__)
    checked = verified(opened, decisions.add, head or "", exact_json=strict)
    reproduction = decisions.result()
    verification = with_reproduction(checked, reproduction)
    with pager(wanted=not no_pager) as show:
        if form is Format.JSON:
            from sigwrap.report.forms.documents import verification_json

            show(verification_json(opened.id, opened.path, verification, reproduction))
        else:
            show(render_verification(opened.id, verification, ending, style(), reproduction))
    not_judged = {why: count for why, count in reproduction.not_judged.items() if why != BUILT_IN}
    unproven = sum(not_judged.values()) if strict else 0
    if verification.outcome is Outcome.INTACT and unproven:
        note(f"--strict: {counted(unproven, 'decision')} can't be reproduced")
    if verification.outcome is not Outcome.INTACT or unproven:
        raise typer.Exit(1)


def _verify_lake(url: str, heads: list[str], *, strict: bool, form: Format) -> None:
    from sigwrap.fleet.audit import audited

    progress = Progress()
    try:
        found = audited(
            opened_lake(url, raw=True),
            _key(),
            heads,
            lambda events: progress.say(f"{events:,} events read"),
            strict=strict,
        )
    finally:
        progress.done()
    if form is Format.JSON:
        from sigwrap.report.forms.documents import lake_json

        out(lake_json(found._asdict() | {"problems": [each._asdict() for each in found.problems]}))
    else:
        for line in found.lines():
            out(line)
    wrong = found.problems or found.missing_heads or found.unchecked or not found.sessions
    if wrong or (strict and found.without_end):
        raise typer.Exit(1)


def verified(
    session: Session,
    and_also: Callable[[Event], object],
    expected_head: str = "",
    *,
    exact_json: bool = False,
) -> Verification:
    """Check a log, and show the progress. `and_also` gets each event."""
    progress = Progress()
    try:
        return verify_long_session(
            session,
            _key(),
            expected_head,
            and_also,
            meanwhile=lambda events: progress.say(f"{events} events read"),
            exact_json=exact_json,
        )
    finally:
        progress.done()


def _key() -> bytes | None:
    return key_from_environment(os.environb)


def note_broken_chains(sessions: Iterable[Session]) -> None:
    for session in sessions:
        note_where_broken(session, verify_session(session, _key()))


def note_where_broken(session: Session, found: Verification) -> None:
    """Warn about a broken hash chain; the reading command reports an unreadable log itself."""
    if found.outcome is Outcome.BROKEN and found.events:
        note(f"{printable(session.id)}: NOT INTACT: {problem_of(found)}")
