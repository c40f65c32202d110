"""The report for a reader with one minute: how the session ended, what needs attention, and then
what led to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sigwrap.escape import printable, shell_words
from sigwrap.events import EVENT_TYPES, Event, number, texts
from sigwrap.report.check.verify import Verification
from sigwrap.report.folds.attention import Attention
from sigwrap.report.folds.cause import sent_to_sigwrap
from sigwrap.report.folds.decisions import AUDITED, DENIED, OUTCOMES
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.summary import Listed, SignalEdge, Summary, Talk
from sigwrap.report.folds.tally import Top
from sigwrap.report.folds.tree import words
from sigwrap.report.folds.written import UNSEEN, Written
from sigwrap.report.forms.counts import counted
from sigwrap.report.forms.detail import detail
from sigwrap.report.forms.findings import (
    Finding,
    Findings,
    by_line,
    rule_line,
    suggest_command,
)
from sigwrap.report.forms.handed import handed_lines
from sigwrap.report.forms.incidents import others, sentence
from sigwrap.report.forms.layout import cut, fits, wrapped, yaml_wrapped
from sigwrap.report.forms.sizes import byte_size
from sigwrap.report.forms.style import PLAIN, Style
from sigwrap.report.forms.times import ago, local_time
from sigwrap.report.forms.tree import tree_lines, tree_title
from sigwrap.report.forms.verdict import News, verdict
from sigwrap.report.forms.verification import trust

_PROGRAMS_SHOWN = 10
_SIGNALS_SHOWN = 15
_FAILURES_SHOWN = 10
_GROUPS_SHOWN = 40
_FILE_WALL = "file_wall"
_FILES_HELD = "file rules are enforced by the kernel; refusals are inferred from failed commands"
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
        yield from self.about()
        yield from self._section("Approval requests", self._waiting())
        yield from self._section("Needs attention", self._attention())
        yield from self._section("Session events", self._incidents())
        for title, lines in self.sections():
            yield from self._section(title, iter(lines))
        yield from self.footer()

    def footer(self) -> list[str]:
        head = self.verification.head if self.verification is not None else ""
        return ["", f"log head {head}"] if head else []

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """What led to it; those with something in them."""
        summary = self.summary
        for title, lines in (
            ("Interrupts", self._listed(summary.interrupts, _interrupt)),
            ("Killed by a signal", self._listed(summary.deaths, self._death)),
            ("Failed commands", self._failures()),
            ("Signals", _edges(summary.edges)),
            ("Network", _talks(summary.talks)),
            ("Files changed", self._written()),
            ("Commands that shadow system commands", _shadowing(summary.shadowing)),
            (_RECORDED, self._listed(summary.recordings, _recording)),
            ("Most used programs", _programs(summary.programs)),
            (tree_title(summary), tree_lines(summary, self.page.style, self._columns)),
        ):
            if found := list(lines):
                yield title, found

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
        said_already = f": {printable(str(summary.ended.get('reason')))}"
        is_over = summary.ending in (Ending.ENDED, Ending.NOT_CLEAN)
        if (
            is_over
            and summary.explained.command
            and not summary.explained.command.endswith((": it ended by itself", said_already))
        ):
            yield from wrapped(f"why      {summary.explained.command}", columns, " " * 9)
        command = shell_words(texts(started.get("command")) or ["?"])
        yield cut(f"command  {command}", columns)
        uid = f"uid {started.get('uid', '?')}"
        user = f"{started['user']} ({uid})" if started.get("user") else uid
        by = printable(f"{user} on {started.get('host', '?')}")
        folder = started.get("cwd")
        yield cut(f"by       {by}{f', in {printable(str(folder))}' if folder else ''}", columns)
        age = ago(self._now_ns - summary.started_ns)
        yield f"started  {local_time(summary.started_ns, utc=self.page.utc)}{age and f', {age}'}"
        name = f" ({printable(str(started['name']))})" if started.get("name") else ""
        version = printable(str(started.get("sigwrap", "?")))
        yield f"session  {printable(str(started.get('session_id', '?')))}{name}, sigwrap {version}"
        missing = texts(started.get("missing"))
        if started.get("policy"):
            yield from wrapped(f"policy   {_policy(summary)}", columns, " " * 9)
        if _FILE_WALL in texts(started.get("capabilities")):
            yield from wrapped(f"files    {_FILES_HELD}", columns, " " * 9)
        yield from wrapped(f"log      {self._log()}", columns, " " * 9)
        if daemons := texts(started.get("daemons_outside")):
            yield from wrapped(f"outside  {printable(', '.join(daemons))}", columns, " " * 9)
        if removed := texts(started.get("environment_removed")):
            yield from wrapped(f"unset    {printable(', '.join(removed))}", columns, " " * 9)
        if missing:
            yield from wrapped(f"without  {printable(', '.join(missing))}", columns, " " * 9)
        if unrecorded := number(summary.ended.get("unrecorded")):
            lost = counted(unrecorded, "event")
            yield f"LOST     {lost} could not be recorded and are not counted below"
        yield from self.counts()
        unknown = [name for name in summary.by_type if name not in EVENT_TYPES]
        if unknown:
            found = ", ".join(f"{summary.by_type[each]} {printable(each)}" for each in unknown[:9])
            shown = f"unknown  {found}: events of another version of sigwrap"
            yield from wrapped(shown, columns, " " * 9)

    def _log(self) -> str:
        said = counted(self.summary.events, "event")
        if self.page.size:
            said += f", {byte_size(self.page.size)}"
        if self.verification is not None:
            said += f", {trust(self.verification, self.page.style)}"
        return said

    def counts(self) -> Iterator[str]:
        for title, counts in (
            ("commands", self.summary.execs),
            ("signals", self.summary.signals),
            ("network", self.summary.connections),
        ):
            total = sum(counts.values())
            if total:
                parts = (self._counted(name, counts[name]) for name in OUTCOMES if counts.get(name))
                yield f"{title:<8} {total}: {', '.join(parts)}"
        if joined := self.summary.by_type.get("command_joined"):
            yield f"joined   {counted(joined, 'command')}"
        if changes := self.summary.changes:
            parts = (f"{changes[each]} {CHANGED[each]}" for each in CHANGED if each in changes)
            yield f"{'changes':<8} {sum(changes.values())}: {', '.join(parts)}"
        if self.summary.selection is not None:
            taken = counted(self.summary.selection.taken, "event")
            yield f"shown    {taken} of {self.summary.events}, selected by options"

    def _counted(self, name: str, count: int) -> str:
        text = f"{count} {name}"
        return self.page.style.bad(text) if name == DENIED else text

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
        for group in attention.groups[:_GROUPS_SHOWN]:
            found = findings.of(group, with_rule=group.outcome != AUDITED)
            yield from self._finding(found)
        hidden = attention.more + sum(group.count for group in attention.groups[_GROUPS_SHOWN:])
        if hidden:
            yield f"and {hidden} more: sigwrap query, or sigwrap report --format html"
        if any(group.outcome == DENIED for group in attention.groups):
            command = suggest_command(self.summary.started)
            yield f"rules for all of these: {command}"

    def _finding(self, found: Finding) -> Iterator[str]:
        style, columns = self.page.style, self._columns
        label = style.bad(found.label) if found.outcome == DENIED else style.heading(found.label)
        times = f"{found.count} times  " if found.count > 1 else ""
        brief = f"  ({rule_line(found)})" if found.outcome == AUDITED else ""
        what = found.command if found.is_of_several else found.what
        if found.is_of_several and found.outcome == AUDITED:
            what += f", such as {found.what}"
        first, *rest = wrapped(f"{found.label}  {times}{what}{brief}", columns, "    ")
        yield label + first[len(found.label) :]
        yield from rest
        if found.outcome == AUDITED:
            return
        if found.is_of_several:
            for line, count in found.lines:
                yield cut(f"    {count:>5}  {line}", columns)
            if found.other_lines:
                yield f"    {found.other_lines:>5}  others"
        for line in (rule_line(found), self._by(found)):
            yield from wrapped(f"    {line}", columns, "      ")
        if (suggestion := found.suggestion) is not None:
            all_of_it = "these" if len(found.lines) > 1 else "this"
            how = all_of_it if suggestion.for_all else "some of these"
            if not suggestion.line:
                way = f"no rule can allow this: {suggestion.why_not}"
                yield from wrapped(f"    {way}", columns, "      ")
                return
            way = f"    to allow {how}, add to your policy:"
            if fits(whole := f"{way} {suggestion.line}", columns):
                yield whole
            else:
                yield from wrapped(way, columns, "      ")
                yield from yaml_wrapped(f"    {suggestion.line}", columns)

    def _by(self, found: Finding) -> str:
        offset = f"{(found.first_ns - self.summary.started_ns) / 1e9:+.3f} s"
        first = "first at " if found.count > 1 else "at "
        return f"{by_line(found)}, {first}{offset}, event {found.first_seq}"

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


def _programs(programs: Top[str]) -> Iterator[str]:
    for path, count in programs.counts[:_PROGRAMS_SHOWN]:
        yield f"{count:>7}  {printable(path)}"
    yield from _rest(programs, _PROGRAMS_SHOWN)


def _shadowing(programs: Top[tuple[str, str]]) -> Iterator[str]:
    for (path, shadows), count in programs.counts[:_PROGRAMS_SHOWN]:
        # A wrapper such as env has another name than what it finds along PATH.
        is_itself = path.rpartition("/")[2] == shadows.rpartition("/")[2]
        what = printable(path) if is_itself else f"what {printable(path)} runs"
        yield f"{count:>7}  {what}  shadows {printable(shadows)}"
    yield from _rest(programs, _PROGRAMS_SHOWN)


def _edges(edges: Top[SignalEdge]) -> Iterator[str]:
    for edge, count in edges.counts[:_SIGNALS_SHOWN]:
        target = printable(edge.target or "?")
        kind = f" ({printable(edge.target_type)})" if edge.target_type else ""
        name, source = printable(edge.signal_name), printable(edge.source or "?")
        yield f"{count:>7}  {name}  {source} -> {target}{kind}  {edge.outcome}"
    yield from _rest(edges, _SIGNALS_SHOWN)


def _talks(talks: Top[Talk]) -> Iterator[str]:
    for talk, count in talks.counts[:_SIGNALS_SHOWN]:
        where = "listened at " if talk.direction == "bind" else ""
        has_none = talk.protocol in ("", "unix")  # its own name says it, or no rule is about it
        protocol = "" if has_none else f" ({printable(talk.protocol)})"
        yield f"{count:>7}  {where}{printable(talk.destination)}{protocol}  {talk.outcome}"
    yield from _rest(talks, _SIGNALS_SHOWN)


def _rest(top: Top[Any], shown: int) -> Iterator[str]:
    rest = top.rest + sum(count for _, count in top.counts[shown:])
    if rest:
        yield f"{rest:>7}  others" + ("" if top.exact else " (counts above are lower bounds)")


def _recording(event: Event) -> str:
    payload = event.payload
    sizes = (f"{name} {payload.get(name, '?')} B" for name in ("stdin", "stdout", "stderr"))
    return printable(f"pid {event.pid}  {', '.join(sizes)}  {payload.get('reason') or ''}".rstrip())


def _interrupt(event: Event) -> str:
    payload = event.payload
    what = event.type.removeprefix("interrupt_")
    signal = str(payload.get("signal_name") or "")
    match what:
        case "received":
            left = ", left to the command" if payload.get("taken_by") == "command" else ""
            text = f"received {sent_to_sigwrap(payload)}{left}"
        case "escalated":
            processes = counted(number(payload.get("processes")), "process", "processes")
            text = f"killed the tree ({processes}): "
            text += str(payload.get("reason"))
        case "withdrawn":
            text = "ignored: the command returned to its prompt"
        case _:
            text = f"{what} {signal}"
    return printable(text)
