"""The report for a reader with one minute: how the session ended, what needs attention, and then
what led to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sigwrap.escape import printable, shell_words
from sigwrap.events import EVENT_TYPES, Event, number, text, texts
from sigwrap.outcomes import AUDITED, DENIED, counted
from sigwrap.report.check.verify import Verification
from sigwrap.report.folds.attention import Attention
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.summary import Listed, SignalEdge, Summary
from sigwrap.report.folds.tally import Top
from sigwrap.report.folds.tree import words
from sigwrap.report.folds.written import UNSEEN, Written
from sigwrap.report.forms.detail import detail, interrupt_line
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
from sigwrap.report.forms.layout import cut, wrapped
from sigwrap.report.forms.sizes import byte_size
from sigwrap.report.forms.steps import (
    MAY_HAVE_DISCARDED,
    discard_line,
    judged_line,
    steps_lines,
    steps_title,
)
from sigwrap.report.forms.style import PLAIN, Style
from sigwrap.report.forms.times import ago, local_time
from sigwrap.report.forms.tree import tree_lines, tree_title
from sigwrap.report.forms.verdict import News, verdict
from sigwrap.report.forms.verification import trust

_SIGNALS_SHOWN = 15
_FAILURES_SHOWN = 10
_TALKS_SHOWN = 5
_DISCARDS_SHOWN = 5
_GROUPS_SHOWN = 40
_FILE_WALL = "file_wall"
_LOWER_BOUNDS = " (counts above are lower bounds)"
_RECORDED = "Recorded (sigwrap replay --recorded stdout)"


CHANGED = {
    "create": "made",
    "write": "written",
    "rename": "renamed",
    "delete": "deleted",
    UNSEEN: "unseen",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """How it is shown: `columns` is 0 where lines may be of any length."""

    style: Style = PLAIN
    columns: int = 0
    utc: bool = False
    now_ns: int = 0  # 0: the clock's
    size: int = 0  # of the log, in bytes
    tree: bool = False  # all of it, with the process tree


def render_text(
    summary: Summary, verification: Verification | None = None, page: Page | None = None
) -> str:
    """Without a `verification`, nothing is said about the chain."""
    return "\n".join(TextReport(summary, verification, page or Page()).lines())


@dataclass(frozen=True, slots=True)
class TextReport:
    summary: Summary
    verification: Verification | None
    page: Page

    def lines(self) -> Iterator[str]:
        yield self.verdict()
        for line in handed_lines(self.summary):
            yield from map(self.page.style.bad, wrapped(line, self.page.columns, "    "))
        yield ""
        yield from self.about()
        yield from self._section("Approval requests", self._waiting())
        yield from self._section("Needs attention", self._attention())
        yield from self._section("Session events", self._incidents())
        for title, lines in self.sections():
            yield from self._section(title, iter(lines))
        if not self.page.tree and self.summary.tree:
            yield ""
            count = counted(self.summary.processes, "process", "processes")
            yield f"all of it: sigwrap report {self._id} --tree ({count}), or --format html"

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """What led to it, those with something in them: first what was done, last the kernel's."""
        summary = self.summary
        found: list[tuple[str, Iterator[str]]] = [
            ("Interrupts", self._listed(summary.interrupts, interrupt_line)),
            ("Killed by a signal", self._listed(summary.deaths, self._death)),
            (steps_title(summary.steps), self._steps()),
            ("Network", self._talks()),
            ("Files changed", self._written()),
            (_RECORDED, self._listed(summary.recordings, _recording)),
        ]
        if self.page.tree or not summary.steps.found:
            found.insert(2, ("Failed commands", self._failures()))
        if self.page.tree:
            found += [
                ("Signals", _edges(summary.edges)),
                ("Commands that shadow system commands", _shadowing(summary.shadowing)),
                (tree_title(summary), tree_lines(summary, self.page.style, self._columns)),
            ]
        for title, lines in found:
            if said := list(lines):
                yield title, said

    # The head

    def verdict(self) -> str:
        sentence, news = verdict(self.summary, now_ns=self._now_ns, utc=self.page.utc)
        style = self.page.style
        match news:
            case News.GOOD:
                return style.good(sentence)
            case News.BAD:
                return style.bad(sentence)
            case News.OPEN:
                return style.heading(sentence)

    def about(self) -> Iterator[str]:
        summary, started = self.summary, self.summary.started
        columns = self.page.columns
        reason = str(summary.ended.get("reason"))
        said_already = f": {printable(reason)}"
        is_over = summary.ending in (Ending.ENDED, Ending.NOT_CLEAN)
        if (
            is_over
            and summary.explained.command
            and not summary.explained.command.endswith(
                (
                    ": it ended by itself",
                    ": interrupted by SIGINT from the terminal (Ctrl+C)",
                    said_already,
                )
            )
        ):
            yield from wrapped(f"why      {summary.explained.command}", columns, " " * 9)
        indent = " " * 9
        command = shell_words(texts(started.get("command")) or ["?"])
        yield cut(f"command  {command}", columns)
        uid = f"uid {started.get('uid', '?')}"
        user = f"{started['user']} ({uid})" if started.get("user") else uid
        by = printable(f"by {user} on {started.get('host', '?')}")
        folder = started.get("cwd")
        age = ago(self._now_ns - summary.started_ns)
        when = f"{local_time(summary.started_ns, utc=self.page.utc)}{age and f', {age}'}"
        where = f", in {printable(str(folder))}" if folder else ""
        yield from wrapped(f"started  {when}, {by}{where}", columns, indent)
        name = f" ({printable(str(started['name']))})" if started.get("name") else ""
        version = printable(str(started.get("sigwrap", "?")))
        yield f"session  {printable(str(started.get('session_id', '?')))}{name}, sigwrap {version}"
        if started.get("policy"):
            enforced = ", file rules enforced by the kernel" if self._has_file_rules else ""
            yield from wrapped(f"policy   {_policy(summary)}{enforced}", columns, indent)
        for title, found in (
            ("outside", started.get("daemons_outside")),
            ("unset", started.get("environment_removed")),
            ("without", started.get("missing")),
        ):
            if listed := texts(found):
                yield from wrapped(f"{title:<8} {printable(', '.join(listed))}", columns, indent)
        if unrecorded := number(summary.ended.get("unrecorded")):
            lost = counted(unrecorded, "event")
            yield f"LOST     {lost} could not be recorded and are not counted below"
        yield from self.counts()
        yield from wrapped(f"log      {self._log()}", columns, indent)
        unknown = [name for name in summary.by_type if name not in EVENT_TYPES]
        if unknown:
            kinds = ", ".join(f"{summary.by_type[each]} {printable(each)}" for each in unknown[:9])
            shown = f"unknown  {kinds}: events of another version of sigwrap"
            yield from wrapped(shown, columns, indent)

    @property
    def _has_file_rules(self) -> bool:
        return _FILE_WALL in texts(self.summary.started.get("capabilities"))

    @property
    def _id(self) -> str:
        found = printable(text(self.summary.started.get("session_id")) or "SESSION")
        return found.rpartition("-")[2]

    def _log(self) -> str:
        said = counted(self.summary.events, "event")
        if self.page.size:
            said += f", {byte_size(self.page.size)}"
        if self.verification is not None:
            said += f", {trust(self.verification, self.page.style)}"
            if self.verification.head:
                said += f", head {self.verification.head}"
        return said

    def counts(self) -> Iterator[str]:
        columns, indent = self.page.columns, " " * 9
        if lines := self.summary.counts.lines():
            yield from wrapped(f"counts   {', '.join(lines)}", columns, indent)
        if answers := self.summary.counts.answers:
            said = ", ".join(f"{count} {name}" for name, count in answers.items())
            yield f"answers  {said} (to approval requests)"
        if joined := self.summary.by_type.get("command_joined"):
            yield f"joined   {counted(joined, 'command')}"
        if changes := self.summary.changes:
            parts = (f"{changes[each]} {CHANGED[each]}" for each in CHANGED if each in changes)
            yield f"{'changes':<8} {sum(changes.values())}: {', '.join(parts)}"
        if self.summary.selection is not None:
            taken = counted(self.summary.selection.taken, "event")
            yield f"shown    {taken} of {self.summary.events}, selected by options"

    @property
    def _now_ns(self) -> int:
        return self.page.now_ns or time.time_ns()

    @property
    def _columns(self) -> int:
        """Within a section."""
        return max(self.page.columns - 2, 0)

    # What needs attention

    def _attention(self) -> Iterator[str]:
        attention: Attention = self.summary.attention
        findings = Findings(self.summary.started)
        groups = [each for each in attention.groups if each.outcome != AUDITED]
        for group in groups[:_GROUPS_SHOWN]:
            yield from self._finding(findings.of(group, with_rule=False))
        for event in self.summary.discards.events[:_DISCARDS_SHOWN]:
            yield from wrapped(discard_line(event), self._columns, "    ")
        if (more := self.summary.discards.count - _DISCARDS_SHOWN) > 0:
            yield f"look  {more} more that {MAY_HAVE_DISCARDED}"
        for step in self.summary.steps.judged:
            yield cut(judged_line(step), self._columns)
        hidden = attention.more + sum(group.count for group in groups[_GROUPS_SHOWN:])
        if hidden:
            yield f"and {hidden} more: sigwrap query, or sigwrap report --format html"
        audited = [each for each in attention.groups if each.outcome == AUDITED]
        if audited:
            yield from wrapped(audited_line(audited), self._columns, "    ")
        if any(group.outcome == DENIED for group in groups):
            yield f"proposed rules: {suggest_command(self._id)}"

    def _finding(self, found: Finding) -> Iterator[str]:
        style, columns = self.page.style, self._columns
        label = style.bad(found.label) if found.outcome == DENIED else style.heading(found.label)
        times = f"{found.count} times  " if found.count > 1 else ""
        what = found.command if found.is_of_several else found.what
        line = f"{found.label}  {times}{what}  ({rule_line(found)}), event {found.first_seq}"
        first, *rest = wrapped(line, columns, "    ")
        yield label + first[len(found.label) :]
        yield from rest
        if found.is_of_several:
            for line, count in found.lines:
                yield cut(f"    {count:>5}  {line}", columns)
            if found.other_lines:
                yield f"    {found.other_lines:>5}  others"
        if not found.is_asked_by_its_shell:
            yield from wrapped(f"    {by_line(found)}", columns, "      ")

    def _steps(self) -> Iterator[str]:
        for line in steps_lines(self.summary.steps, self.summary.started_ns, self.page.tree):
            yield cut(line, self._columns)

    def _waiting(self) -> Iterator[str]:
        if self.summary.ending not in (Ending.RUNNING, Ending.MOMENT):
            return
        for event in self.summary.waiting:
            approval_id = printable(str(event.payload.get("approval_id")))
            line = f"{self._offset(event)}  {detail(event)}: sigwrap approve {approval_id}"
            yield from wrapped(line, self._columns, "    ")

    def _incidents(self) -> Iterator[str]:
        for each in self.summary.incidents:
            line = f"{self._offset(each.first)}  {sentence(each)}"
            yield from wrapped(line, self._columns, "    ")
        if rest := others(self.summary.incidents_more):
            yield from wrapped(rest, self._columns, "    ")

    # What led to it

    def _section(self, title: str, lines: Iterator[str]) -> Iterator[str]:
        first = next(lines, None)
        if first is None:
            return
        yield ""
        yield self.page.style.heading(title)
        yield f"  {first}"
        for line in lines:
            yield f"  {line}"

    def _listed(self, listed: Listed, render: Callable[[Event], str]) -> Iterator[str]:
        for event in listed.events:
            line = f"{self._offset(event)}  {render(event)}"
            yield from wrapped(line, self._columns, "    ")
        if listed.more:
            yield f"and {listed.more} more"

    def _talks(self) -> Iterator[str]:
        """Yield destinations; without the tree, no denied ones, which needed attention above."""
        talks, is_whole = self.summary.talks, self.page.tree
        found = [each for each in talks.counts if is_whole or each[0].outcome != DENIED]
        limit = _SIGNALS_SHOWN if is_whole else _TALKS_SHOWN
        for talk, count in found[:limit]:
            where = "listened at " if talk.direction == "bind" else ""
            has_none = talk.protocol in ("", "unix")  # its own name says it, or no rule is about it
            protocol = "" if has_none else f" ({printable(talk.protocol)})"
            yield f"{count:>7}  {where}{printable(talk.destination)}{protocol}  {talk.outcome}"
        if rest := talks.rest + sum(count for _, count in found[limit:]):
            yield f"{rest:>7}  others" + ("" if talks.exact else _LOWER_BOUNDS)

    def _written(self) -> Iterator[str]:
        for each in self.summary.written:
            yield cut(f"{each.total:>7}  {written_line(each)}", self._columns)
        if unseen := self.summary.changes.get(UNSEEN):
            yield f"{unseen:>7}  changes in places that could not be watched"

    def _offset(self, event: Event) -> str:
        return f"{(event.time_ns - self.summary.started_ns) / 1e9:>+10.3f} s"

    def _death(self, event: Event) -> str:
        comm = event.payload.get("comm") or "?"
        why = self.summary.explained.killed.get(event.seq) or event.payload.get("signal_name")
        return f"pid {event.pid} {printable(str(comm))}  {printable(str(why))}"

    def _failures(self) -> Iterator[str]:
        failures = self.summary.failures
        for (command, code), count in failures.counts[:_FAILURES_SHOWN]:
            line = f"{count:>7}  exit {code}  {shell_words(words(command))}"
            yield cut(line, self._columns)
        yield from _rest(failures, _FAILURES_SHOWN)


def written_line(written: Written) -> str:
    beneath = f"{written.folder.rstrip('/')}/**" if written.is_beneath else written.folder
    said = ", ".join(f"{count} {CHANGED[name]}" for name, count in written.counts.items())
    return f"{printable(beneath)}  {said}"


def _policy(summary: Summary) -> str:
    """The recorded text may be a whole file: its first line is enough to recognise it."""
    first_line = str(summary.started["policy"]).strip().partition("\n")[0][:80]
    digest = str(summary.started.get("policy_digest") or "")[:16]
    return printable(f"{first_line} {digest}".rstrip())


def _shadowing(programs: Top[tuple[str, str]]) -> Iterator[str]:
    for (path, shadows), count in programs.counts[:_SIGNALS_SHOWN]:
        # A wrapper such as env has another name than what it finds along PATH.
        is_itself = path.rpartition("/")[2] == shadows.rpartition("/")[2]
        what = printable(path) if is_itself else f"what {printable(path)} runs"
        yield f"{count:>7}  {what}  shadows {printable(shadows)}"
    yield from _rest(programs, _SIGNALS_SHOWN)


def _edges(edges: Top[SignalEdge]) -> Iterator[str]:
    for edge, count in edges.counts[:_SIGNALS_SHOWN]:
        target = printable(edge.target or "?")
        kind = f" ({printable(edge.target_type)})" if edge.target_type else ""
        name, source = printable(edge.signal_name), printable(edge.source or "?")
        yield f"{count:>7}  {name}  {source} -> {target}{kind}  {edge.outcome}"
    yield from _rest(edges, _SIGNALS_SHOWN)


def _rest(top: Top[Any], shown: int) -> Iterator[str]:
    rest = top.rest + sum(count for _, count in top.counts[shown:])
    if rest:
        yield f"{rest:>7}  others" + ("" if top.exact else _LOWER_BOUNDS)


def _recording(event: Event) -> str:
    payload = event.payload
    sizes = (f"{name} {payload.get(name, '?')} B" for name in ("stdin", "stdout", "stderr"))
    return printable(f"pid {event.pid}  {', '.join(sizes)}  {payload.get('reason') or ''}".rstrip())
