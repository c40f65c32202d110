"""sigwrap report: what happened in a session."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, tzinfo
from datetime import time as clock_time
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.cli.group import App
from sigwrap.cli.options import (
    PagerOption,
    SessionArgument,
    StoreOption,
    UtcOption,
    store_folder,
)
from sigwrap.cli.output import note, out
from sigwrap.cli.showing import columns, pager, style
from sigwrap.cli.verify import note_where_broken, verified
from sigwrap.cli.whole_file import write_lines
from sigwrap.errors import UsageError
from sigwrap.events import OUTCOMES, Event
from sigwrap.log.catalog import open_session
from sigwrap.log.reader import Session
from sigwrap.report.check.verify import Verification
from sigwrap.report.folds.ending import Ending, ending_of
from sigwrap.report.folds.selection import ASKED, ONLY, Selection
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.detail import live_line
from sigwrap.report.forms.layout import cut
from sigwrap.report.forms.page import EventRows, html_page
from sigwrap.report.forms.text import Page, TextReport, render_text
from sigwrap.report.forms.verdict import verdict
from sigwrap.text import did_you_mean, shell_words, span_s

_GITHUB_SUMMARY = "GITHUB_STEP_SUMMARY"
_LOOK_AGAIN_S = 0.2
_NS_PER_S = 1_000_000_000
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")
EXAMPLES = "+90s, 1h30m, 14:03 or 2026-11-23T14:03"
_RULES_SHOWN = 10


class Format(Enum):
    TEXT = "text"
    MD = "md"
    JSON = "json"
    HTML = "html"
    GITHUB = "github"  # a ::warning for each denial


app = App()


@app.command()
def report(
    session: SessionArgument = "",
    store: StoreOption = None,
    form: Annotated[Format, typer.Option("--format", help="Output format")] = Format.TEXT,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output file"),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help=f"Only events after WHEN: {EXAMPLES}"),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Only events before WHEN"),
    ] = None,
    rule: Annotated[str, typer.Option(metavar="RULE", help="Only decisions of this rule")] = "",
    process: Annotated[
        str,
        typer.Option(
            metavar="PID|NAME",
            help="Only this process, or processes of this program, and all that they started",
        ),
    ] = "",
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OUTCOME",
            help=f"Only actions with this outcome: {', '.join(OUTCOMES)}; {ASKED}: approval "
            "requests",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Print new events of a running session until it ends"),
    ] = False,
    github: Annotated[
        bool,
        typer.Option("--github", help=f"Append the report as Markdown to ${_GITHUB_SUMMARY}"),
    ] = False,
    tree: Annotated[
        bool,
        typer.Option("--tree", help="Also the process tree, signals and failed commands"),
    ] = False,
    utc: UtcOption = False,
    no_pager: PagerOption = False,
) -> None:
    """Show what happened in a session.

    A verdict, what needs attention, and what the agent did.
    """
    if github and not os.environ.get(_GITHUB_SUMMARY):
        raise UsageError(
            f"--github: ${_GITHUB_SUMMARY} is not set",
            "GitHub Actions sets it; elsewhere: --format md -o FILE",
        )
    if follow and (form is not Format.TEXT or output is not None or github):
        raise UsageError("--follow prints text only, without --output or --github")
    opened = open_session(store_folder(store), session)

    def selected() -> Selection | None:
        return _selection(opened, since, until, rule, process, only or [], utc)

    selection = selected()
    ending = ending_of(opened)
    first = opened.first()
    rows = EventRows(first.time_ns) if form is Format.HTML and first is not None else None
    summary = Summary(selection)

    def take(event: Event) -> None:
        is_selected = summary.add(event)
        if rows is not None and (is_selected or selection is None):
            rows.add(event)

    verification = verified(opened, summary.add if rows is None else take)
    if selection is not None and not follow:
        _refuse_unknown_rule(selection)
    summary.end(ending)
    page = Page(
        style=style(to_file=output is not None),
        columns=columns(to_file=output is not None),
        utc=utc,
        size=opened.size,
        now_ns=time.time_ns(),
        tree=tree,
    )
    text = _rendered(form, summary, verification, page, rows)
    if github:
        markdown = _rendered(Format.MD, summary, verification, page, None)
        _append(os.environ[_GITHUB_SUMMARY], markdown)
    if output is not None:
        write_lines(str(output), [text], reads=opened.files)
    else:
        follows = follow and ending is Ending.RUNNING
        with pager(wanted=not no_pager and not follows) as show:
            show(text)
            if follows:
                _follow(opened, summary, page, selected())
    note_where_broken(opened, verification)
    if selection is not None and not selection.taken:
        note("no events match the options")


def _follow(session: Session, so_far: Summary, page: Page, selection: Selection | None) -> None:
    """Read from the beginning: a later event may need an earlier one to be explained."""
    whole = Summary(selection)
    out("")
    for event in session.followed(lambda: time.sleep(_LOOK_AGAIN_S)):
        if whole.add(event) and event.seq > so_far.events:
            line = live_line(event, so_far.started_ns)
            if line:
                out(cut(line, page.columns))
    end = TextReport(whole.end(Ending.NOT_CLEAN), None, page)
    out("\n".join(["", end.verdict(), *end.counts()]))


def _rendered(
    form: Format,
    summary: Summary,
    verification: Verification,
    page: Page,
    rows: EventRows | None,
) -> str:
    """Return the report; it imports only what this format needs."""
    if form is Format.TEXT:
        return render_text(summary, verification, page)
    if form in (Format.MD, Format.GITHUB):
        from sigwrap.report.forms import markdown

        if form is Format.GITHUB:
            return markdown.github_warnings(summary)
        return markdown.render_markdown(summary, verification, page)
    from sigwrap.report.forms import documents

    if form is Format.JSON:
        return documents.report_json(summary, verification, size=page.size)
    document = documents.report_document(summary, verification, size=page.size)
    ended = verdict(summary, now_ns=page.now_ns, utc=page.utc)
    return "".join(html_page(document, ended, rows.rows() if rows is not None else []))


def _append(path: str, text: str) -> None:
    try:
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text + "\n")
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from error


def _selection(
    session: Session,
    since: str | None,
    until: str | None,
    rule: str,
    process: str,
    only: list[str],
    utc: bool,
) -> Selection | None:
    if since is until is None and not (rule or process or only):
        return None
    for each in only:
        if each not in ONLY:
            meant = f"{did_you_mean(each, ONLY)}outcomes: {', '.join(ONLY)}"
            raise UsageError(f"--only {shell_words([each])}: unknown outcome", meant)
    first, last = session.first(), session.last()
    started_ns, ended_ns = (0 if each is None else each.time_ns for each in (first, last))
    if session.running:
        ended_ns = time.time_ns()

    def moment(option: str, words: str | None) -> int | None:
        if words is None:
            return None
        try:
            return moment_ns(words, started_ns=started_ns, ended_ns=ended_ns, utc=utc)
        except (ValueError, OverflowError) as error:
            problem = f"{option} {shell_words([words])}: not a time"
            raise UsageError(problem, f"such as {EXAMPLES}") from error

    return Selection(
        since_ns=moment("--since", since),
        until_ns=moment("--until", until),
        rule=rule,
        process=process,
        only=frozenset(only),
    )


def _refuse_unknown_rule(selection: Selection) -> None:
    rule, seen = selection.rule, selection.rules_seen
    if rule and rule not in seen:
        shown = ", ".join(list(seen)[:_RULES_SHOWN]) or "none"
        meant = f"{did_you_mean(rule, seen)}rules with decisions: {shown}"
        raise UsageError(f"--rule {shell_words([rule])}: no event has this rule", meant)


def moment_ns(words: str, *, started_ns: int, ended_ns: int, utc: bool) -> int:
    """Return a moment of a session; ValueError if `words` is none.

    `+90s` is after its start; `10m` before its end, or before now if it runs; `14:03`, `14:03:20`
    and `2026-11-23 14:03` are clock times.
    """
    if words.startswith("+"):
        return started_ns + round(span_s(words[1:]) * _NS_PER_S)
    try:
        return ended_ns - round(span_s(words.removeprefix("-")) * _NS_PER_S)
    except ValueError:
        pass
    zone = UTC if utc else None
    if _CLOCK.fullmatch(words):
        clock = clock_time.fromisoformat(words.zfill(8 if words.count(":") == 2 else 5))
        return _at_clock(clock, started_ns, zone)
    found = datetime.fromisoformat(words)
    return _ns(found if found.tzinfo else found.replace(tzinfo=zone))


def _at_clock(clock: clock_time, started_ns: int, zone: tzinfo | None) -> int:
    """Return the first such time in the run, which can last past midnight."""
    started = datetime.fromtimestamp(started_ns // _NS_PER_S, UTC).astimezone(zone)
    found = _ns(datetime.combine(started.date(), clock, zone))
    day_ns = 86_400 * _NS_PER_S
    return found + day_ns if found < started_ns - day_ns // 2 else found


def _ns(moment: datetime) -> int:
    return round(moment.timestamp() * _NS_PER_S)
