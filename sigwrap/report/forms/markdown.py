"""The report as Markdown, which the summary of a CI job shows too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.events import text as text_of
from sigwrap.events import texts
from sigwrap.outcomes import AUDITED, DENIED
from sigwrap.report.check.verify import Outcome, Verification
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.findings import (
    Finding,
    Findings,
    audited_line,
    by_line,
    rule_line,
    suggest_command,
)
from sigwrap.report.forms.handed import handed_lines
from sigwrap.report.forms.incidents import others, sentence
from sigwrap.report.forms.rules import policy_lines
from sigwrap.report.forms.steps import discard_line, judged_line, steps_title
from sigwrap.report.forms.style import PLAIN
from sigwrap.report.forms.text import Page, TextReport
from sigwrap.report.forms.verification import trust

_GROUPS_SHOWN = 40
_WARNINGS_SHOWN = 9  # GitHub shows ten of a step
_COMMAND_CHARACTERS = 200


def render_markdown(
    summary: Summary, verification: Verification | None = None, page: Page | None = None
) -> str:
    page = replace(page or Page(), style=PLAIN, columns=0, tree=True)
    return "\n".join(_lines(summary, verification, TextReport(summary, verification, page)))


def github_warnings(summary: Summary) -> str:
    """Return a workflow command of GitHub for each group of denied actions."""
    of_report = Findings(summary.started)
    denied = [each for each in summary.attention.groups if each.outcome == DENIED]
    lines = []
    for found in (of_report.of(each, with_rule=False) for each in denied[:_WARNINGS_SHOWN]):
        times = f", {found.count} times" if found.count > 1 else ""
        message = f"{found.what} ({rule_line(found)}){times}"
        for mark, escaped in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
            message = message.replace(mark, escaped)
        lines.append(f"::warning title=sigwrap denied::{message}")
    if (more := len(denied) - _WARNINGS_SHOWN) > 0:
        lines.append(f"::warning title=sigwrap denied::{more} more, in the job's summary")
    return "\n".join(lines)


def code(text: str) -> str:
    """In a code span, where nothing but its own fence means anything."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{room}{text}{room}{fence}"


def block(lines: Iterable[str], language: str = "") -> Iterator[str]:
    text = list(lines)
    longest = max((len(run) for line in text for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence + language
    yield from text
    yield fence


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    titles = list(titles)
    yield f"| {' | '.join(titles)} |"
    yield f"|{' --- |' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    """A bar ends one, in a code span as well, and also where the backslash before it is itself
    behind one."""
    return text.replace("\\|", "\\ |").replace("|", "\\|")


def _lines(summary: Summary, verification: Verification | None, text: TextReport) -> Iterator[str]:
    command = shell_words(texts(summary.started.get("command")) or ["?"])
    command = printable(text_of(summary.started.get("name"))) or command
    yield f"## sigwrap: {code(shortened(command, _COMMAND_CHARACTERS))}"
    yield ""
    yield f"**{_plain(text.verdict())}**"
    if verification is not None and verification.outcome is not Outcome.INTACT:
        yield ""
        yield f"**Log: {_plain(trust(verification, PLAIN))}**"
    for line in handed_lines(summary):
        yield ""
        yield f"**{_plain(line)}**"
    if lines := summary.counts.lines():
        yield ""
        yield ", ".join(lines)
    yield from _attention(summary)
    if summary.incidents:
        rest = others(summary.incidents_more)
        said = [*map(sentence, summary.incidents), *([rest] if rest else [])]
        yield from _titled("Session events", _items(said))
    for title, lines in text.sections():
        if title == steps_title(summary.steps):
            yield from _titled(title, block(lines))
            continue
        yield ""
        yield f"<details><summary>{title}</summary>"
        yield ""
        yield from block(lines)
        yield ""
        yield "</details>"
    yield from _titled("This session", block(text.about()))


def _attention(summary: Summary) -> Iterator[str]:
    of_report = Findings(summary.started)
    session_id = text_of(summary.started.get("session_id")) or "SESSION"
    groups = [each for each in summary.attention.groups if each.outcome != AUDITED]
    audited = [each for each in summary.attention.groups if each.outcome == AUDITED]
    findings = [of_report.of(group) for group in groups[:_GROUPS_SHOWN]]
    rows = (
        (
            found.label,
            _what(found),
            _rule(found),
            str(found.count),
            f"{code(by_line(found))}, event {found.first_seq}",
        )
        for found in findings
    )
    titles = ("outcome", "what", "rule", "times", "process, first event")
    hidden = summary.attention.more + sum(group.count for group in groups[_GROUPS_SHOWN:])
    said = [discard_line(each) for each in summary.discards.events[:_WARNINGS_SHOWN]]
    said += [judged_line(each) for each in summary.steps.judged[:_GROUPS_SHOWN]]
    said += [f"and {hidden} more"] if hidden else []
    said += [audited_line(audited)] if audited else []
    if findings:
        yield from _titled("Needs attention", table(titles, rows))
        yield ""
        yield from _items(said)
    elif said:
        yield from _titled("Needs attention", _items(said))
    yield from _rules("To allow these, add to your policy", findings)
    if any(each.suggestion and not each.suggestion.for_all for each in findings):
        yield ""
        yield f"To allow all of these, see {code(suggest_command(session_id))}"


def _what(found: Finding) -> str:
    if not found.is_of_several:
        return code(found.what)
    lines = [f"{_times(count)} {code(line)}" for line, count in found.lines]
    others = [f"{_times(found.other_lines)} others"] if found.other_lines else []
    return "<br>".join((code(found.command), *lines, *others))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _rules(title: str, findings: list[Finding]) -> Iterator[str]:
    lines = list(policy_lines(found.suggestion for found in findings))
    if lines:
        yield ""
        yield f"<details><summary>{title}</summary>"
        yield ""
        yield from block(lines, "yaml")
        yield ""
        yield "</details>"


def _rule(found: Finding) -> str:
    return f"{code(found.rule)}: {_plain(found.reason)}" if found.reason else code(found.rule)


def _titled(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield ""
    yield f"### {title}"
    yield ""
    yield from lines


def _items(lines: Iterable[str]) -> Iterator[str]:
    return (f"- {_plain(line)}" for line in lines)


def _plain(text: str) -> str:
    """What means something to Markdown or HTML, made to mean nothing."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~<>&@:-])", r"\\\1", printable(text))
