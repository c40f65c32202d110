"""The report as Markdown, which the summary of a CI job shows too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.events import text as text_of
from sigwrap.events import texts
from sigwrap.outcomes import DENIED
from sigwrap.policy.tools.suggest import Suggestion
from sigwrap.report.check.verify import Outcome, Verification
from sigwrap.report.folds.attention import Group, audited_line, discard_line, learn_command, what
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.rules import Suggestions, policy_lines
from sigwrap.report.forms.style import PLAIN
from sigwrap.report.forms.text import GROUPS_SHOWN, Page, TextReport
from sigwrap.report.forms.verification import trust

_WARNINGS_SHOWN = 9  # GitHub shows ten of a step
_COMMAND_CHARACTERS = 200


def render_markdown(
    summary: Summary, verification: Verification | None = None, page: Page | None = None
) -> str:
    page = replace(page or Page(), style=PLAIN, columns=0, tree=True)
    return "\n".join(_lines(summary, verification, TextReport(summary, verification, page)))


def github_warnings(summary: Summary) -> str:
    """Return a workflow command of GitHub for each group of denied actions."""
    denied = [each for each in summary.attention.groups if each.outcome == DENIED]
    messages = []
    for group in denied[:_WARNINGS_SHOWN]:
        times = f", {group.count} times" if group.count > 1 else ""
        messages.append(f"{what(group.first)} ({group.rule_line}){times}")
    if (more := len(denied) - _WARNINGS_SHOWN) > 0:
        messages.append(f"{more} more, in the job's summary")
    escapes = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
    return "\n".join(
        f"::warning title=sigwrap denied::{each.translate(escapes)}" for each in messages
    )


def code(text: str) -> str:
    """Return a code span, in which nothing but its own fence means anything."""
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
    """Escape bars, which end a cell even in a code span, unless two backslashes come before."""
    return text.replace("\\|", "\\ |").replace("|", "\\|")


def _lines(summary: Summary, verification: Verification | None, text: TextReport) -> Iterator[str]:
    command = shell_words(texts(summary.started.get("command")) or ["?"])
    command = printable(text_of(summary.started.get("name"))) or command
    yield f"## sigwrap: {code(shortened(command, _COMMAND_CHARACTERS))}"
    said = [_plain(text.verdict())]
    if verification is not None and verification.outcome is not Outcome.INTACT:
        said.append(f"Log: {_plain(trust(verification, PLAIN))}")
    for line in (*said, *map(_plain, summary.handed.lines())):
        yield from ("", f"**{line}**")
    if lines := summary.counts.lines():
        yield from ("", ", ".join(lines))
    yield from _attention(summary)
    if sentences := summary.incidents.sentences():
        yield from _titled("Session events", _items(sentences))
    for title, lines in text.sections():
        if title == summary.steps.title:
            yield from _titled(title, block(lines))
        else:
            yield from _folded(title, block(lines))
    yield from _titled("This session", block(text.about()))


def _attention(summary: Summary) -> Iterator[str]:
    suggestions = Suggestions(summary)
    groups, audited = summary.attention.serious, summary.attention.audited
    shown, hidden = groups[:GROUPS_SHOWN], groups[GROUPS_SHOWN:]
    proposed = [suggestions.of(group) for group in shown]
    more = summary.attention.more + sum(group.count for group in hidden)
    said = [discard_line(each) for each in summary.discards.events[:_WARNINGS_SHOWN]]
    said += [each.judged_line for each in summary.steps.judged[:GROUPS_SHOWN]]
    said += [f"and {more} more"] if more else []
    said += [audited_line(audited)] if audited else []
    if shown:
        titles = ("outcome", "what", "rule", "times", "process, first event")
        yield from _titled("Needs attention", table(titles, map(_row, shown)))
        yield from ("", *_items(said))
    elif said:
        yield from _titled("Needs attention", _items(said))
    yield from _rules(proposed, text_of(summary.started.get("session_id")) or "SESSION")


def _row(group: Group) -> tuple[str, ...]:
    rule, reason = code(printable(group.rule)), group.reason
    return (
        group.label,
        _what(group),
        f"{rule}: {_plain(reason)}" if reason else rule,
        str(group.count),
        f"{code(group.by_line)}, event {group.first.seq}",
    )


def _what(group: Group) -> str:
    if not group.is_of_several:
        return code(what(group.first))
    lines = [f"{_times(count)} {code(line)}" for line, count in group.whats]
    others = [f"{_times(group.other_lines)} others"] if group.other_lines else []
    return "<br>".join((code(group.program), *lines, *others))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _rules(proposed: Sequence[Suggestion | None], session_id: str) -> Iterator[str]:
    if lines := list(policy_lines(proposed)):
        yield from _folded("To allow these, add to your policy", block(lines, "yaml"))
    if any(each and not each.for_all for each in proposed):
        yield from ("", f"To allow all of these, see {code(learn_command(session_id))}")


def _titled(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"### {title}", "", *lines)


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"<details><summary>{title}</summary>", "", *lines, "", "</details>")


def _items(lines: Iterable[str]) -> Iterator[str]:
    return (f"- {_plain(line)}" for line in lines)


def _plain(text: str) -> str:
    """Escape what means something to Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~<>&@:-])", r"\\\1", printable(text))
