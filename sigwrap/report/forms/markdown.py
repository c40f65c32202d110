"""The report as Markdown, which the summary of a CI job shows too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from sigwrap.events import DENIED, texts
from sigwrap.events import text as text_of
from sigwrap.report.check.verify import Outcome, Verification
from sigwrap.report.folds.attention import what
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.layout import PLAIN
from sigwrap.report.forms.rules import Suggestions, policy_lines
from sigwrap.report.forms.text import GROUPS_SHOWN, OPEN_SECTIONS, Page, TextReport
from sigwrap.report.forms.verification import trust
from sigwrap.text import printable, shell_words, shortened

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


def _lines(summary: Summary, verification: Verification | None, text: TextReport) -> Iterator[str]:
    command = shell_words(texts(summary.started.get("command")) or ["?"])
    command = printable(text_of(summary.started.get("name"))) or command
    yield f"## sigwrap: {code(shortened(command, _COMMAND_CHARACTERS))}"
    said = [text.verdict(), *summary.handed.lines()]
    if verification is not None and verification.outcome is not Outcome.INTACT:
        said.insert(1, f"Log: {trust(verification, PLAIN)}")
    for line in said:
        yield from ("", f"**{plain(line)}**")
    for title, lines in text.sections():
        is_open = title in OPEN_SECTIONS or title == summary.steps.title
        yield from _titled(title, block(lines)) if is_open else _folded(title, block(lines))
    proposed = map(Suggestions(summary).of, summary.attention.serious[:GROUPS_SHOWN])
    if rules := list(policy_lines(proposed)):
        yield from _folded("To allow these, add to your policy", block(rules, "yaml"))
    yield from _titled("This session", block(text.about()))


def _titled(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"### {title}", "", *lines)


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"<details><summary>{title}</summary>", "", *lines, "", "</details>")


def plain(text: str) -> str:
    """Escape what means something to Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~<>&@:-])", r"\\\1", printable(text))
