"""The report for a reader with one minute: how the session ended, what needs attention, and what
the agent did."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sigwrap.events import DENIED, EVENT_TYPES, Event, counted, number, text, texts
from sigwrap.report.check.verify import Verification
from sigwrap.report.folds.attention import (
    MAY_HAVE_DISCARDED,
    Group,
    audited_line,
    discard_line,
    learn_command,
    what,
)
from sigwrap.report.folds.bounded import Listed, Tally
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.incidents import with_new_keys
from sigwrap.report.folds.summary import Failure, SignalEdge, Summary, Talk
from sigwrap.report.folds.tree import words
from sigwrap.report.folds.written import UNSEEN, Written
from sigwrap.report.forms.detail import detail, interrupt_line
from sigwrap.report.forms.layout import PLAIN, Style, cut, wrapped
from sigwrap.report.forms.times import ago, byte_size, local_time
from sigwrap.report.forms.tree import tree_lines, tree_title
from sigwrap.report.forms.verdict import News, has_file_wall, verdict
from sigwrap.report.forms.verification import trust
from sigwrap.text import id_end, printable, shell_words

_SIGNALS_SHOWN = 15
_FAILURES_SHOWN = 10
_TALKS_SHOWN = 5
_DISCARDS_SHOWN = 5
GROUPS_SHOWN = 40
_WAITING, _ATTENTION, _EVENTS = "Approval requests", "Needs attention", "Session events"
OPEN_SECTIONS = (_WAITING, _ATTENTION, _EVENTS)  # in Markdown, which folds others
_LOWER_BOUNDS = " (counts above are lower bounds)"
_RECORDED = "Recorded (sigwrap replay --recorded stdout)"
# Sentences about the command's end that the verdict has said already.
_PLAIN_ENDS = (": it ended by itself", ": interrupted by SIGINT from the terminal (Ctrl+C)")

CHANGED = {
    "create": "made",
    "write": "written",
    "rename": "renamed",
    "delete": "deleted",
    UNSEEN: "unseen",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """How a report is shown. With 0 columns, lines may have any length."""

    style: Style = PLAIN
    columns: int = 0
    utc: bool = False
    now_ns: int = 0  # 0: the clock's
    size: int = 0  # of the log, in bytes
    tree: bool = False  # everything, with the process tree


def render_text(
    summary: Summary, verification: Verification | None = None, page: Page | None = None
) -> str:
    return "\n".join(TextReport(summary, verification, page or Page()).lines())


@dataclass(frozen=True, slots=True)
class TextReport:
    """Without a `verification`, it says nothing about the hash chain."""

    summary: Summary
    verification: Verification | None
    page: Page

    def lines(self) -> Iterator[str]:
        yield self.verdict()
        for line in self.summary.handed.lines():
            yield from map(self.page.style.bad, wrapped(line, self.page.columns, "    "))
        yield ""
        yield from self.about()
        for title, lines in self.sections():
            yield ""
            yield self.page.style.heading(title)
            yield from (f"  {line}" for line in lines)
        if not self.page.tree and self.summary.tree:
            yield ""
            count = counted(self.summary.processes.processes, "process", "processes")
            yield f"all of it: sigwrap report {self._id} --tree ({count}), or --format html"

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """Yield titles and lines: attention, what the agent did, and last the kernel's events."""
        summary = self.summary
        whole = {
            "Signals": _ranked(summary.edges, _SIGNALS_SHOWN, _edge),
            "Commands that shadow system commands": _ranked(
                summary.shadowing, _SIGNALS_SHOWN, _shadowing
            ),
            tree_title(summary): tree_lines(summary, self.page.style, self._columns),
        }
        sections = {
            _WAITING: self._waiting(),
            _ATTENTION: self._attention(),
            _EVENTS: self._incidents(),
            "Interrupts": self._listed(summary.interrupts, interrupt_line),
            "Killed by a signal": self._listed(summary.deaths, self._death),
            "Failed commands": self._failures(),
            summary.steps.title: self._steps(),
            "Network": self._talks(),
            "Files changed": self._written(),
            _RECORDED: self._listed(summary.recordings, _recording),
            **(whole if self.page.tree else {}),
        }
        for title, lines in sections.items():
            if said := list(lines):
                yield title, said

    # The head

    def verdict(self) -> str:
        sentence, news = verdict(self.summary, now_ns=self._now_ns, utc=self.page.utc)
        style = self.page.style
        paint = {News.GOOD: style.good, News.BAD: style.bad, News.OPEN: style.heading}
        return paint[news](sentence)

    def about(self) -> Iterator[str]:
        return self._facts(
            *self._why(),
            *self._command(),
            *self._counts(),
            ("log", self._log()),
            *self._unknown(),
        )

    def counts(self) -> Iterator[str]:
        return self._facts(*self._counts())

    def _facts(self, *facts: tuple[str, str]) -> Iterator[str]:
        for name, said in facts:
            line = f"{name:<8} {said}"
            if name == "command":
                yield cut(line, self.page.columns)
            else:
                yield from wrapped(line, self.page.columns, " " * 9)

    def _why(self) -> Iterator[tuple[str, str]]:
        summary, why = self.summary, self.summary.explained.command
        reason = with_new_keys(printable(str(summary.ended.get("reason"))))
        said = (*_PLAIN_ENDS, f": {reason}")
        if summary.is_over and why and not why.endswith(said):
            yield "why", why

    def _command(self) -> Iterator[tuple[str, str]]:
        summary, started = self.summary, self.summary.started
        yield "command", shell_words(texts(started.get("command")) or ["?"])
        uid = f"uid {started.get('uid', '?')}"
        user = f"{started['user']} ({uid})" if started.get("user") else uid
        by = printable(f"by {user} on {started.get('host', '?')}")
        folder, age = started.get("cwd"), ago(self._now_ns - summary.started_ns)
        when = f"{local_time(summary.started_ns, utc=self.page.utc)}{age and f', {age}'}"
        where = f", in {printable(str(folder))}" if folder else ""
        yield "started", f"{when}, {by}{where}"
        name = f" ({printable(str(started['name']))})" if started.get("name") else ""
        version = printable(str(started.get("sigwrap", "?")))
        session_id = printable(str(started.get("session_id", "?")))
        yield "session", f"{session_id}{name}, sigwrap {version}"
        if started.get("policy"):
            enforced = ", file rules enforced by the kernel" if has_file_wall(summary) else ""
            yield "policy", f"{_policy(summary)}{enforced}"
        for title, field in (
            ("outside", "daemons_outside"),
            ("unset", "environment_removed"),
            ("without", "missing"),
        ):
            if listed := texts(started.get(field)):
                yield title, printable(", ".join(listed))
        if unrecorded := number(summary.ended.get("unrecorded")):
            lost = counted(unrecorded, "event")
            yield "LOST", f"{lost} could not be recorded and are not counted below"

    def _counts(self) -> Iterator[tuple[str, str]]:
        summary = self.summary
        if lines := summary.counts.lines():
            yield "counts", ", ".join(lines)
        if answers := summary.counts.answers:
            said = ", ".join(f"{count} {name}" for name, count in answers.items())
            yield "answers", f"{said} (to approval requests)"
        if joined := summary.by_type.get("command_joined"):
            yield "joined", counted(joined, "command")
        if changes := summary.files.changes:
            parts = (f"{changes[each]} {CHANGED[each]}" for each in CHANGED if each in changes)
            yield "changes", f"{sum(changes.values())}: {', '.join(parts)}"
        if summary.selection is not None:
            taken = counted(summary.selection.taken, "event")
            yield "shown", f"{taken} of {summary.events}, selected by options"

    def _log(self) -> str:
        said = counted(self.summary.events, "event")
        if self.page.size:
            said += f", {byte_size(self.page.size)}"
        if self.verification is not None:
            said += f", {trust(self.verification, self.page.style)}"
            if self.verification.head:
                said += f", head {self.verification.head}"
        return said

    def _unknown(self) -> Iterator[tuple[str, str]]:
        by_type = self.summary.by_type
        unknown = [name for name in by_type if name not in EVENT_TYPES]
        if unknown:
            kinds = ", ".join(f"{by_type[each]} {printable(each)}" for each in unknown[:9])
            yield "unknown", f"{kinds}: events of another version of sigwrap"

    @property
    def _id(self) -> str:
        found = printable(text(self.summary.started.get("session_id")))
        return id_end(found) or "SESSION"

    @property
    def _now_ns(self) -> int:
        return self.page.now_ns or time.time_ns()

    @property
    def _columns(self) -> int:
        """The width of a section."""
        return max(self.page.columns - 2, 0)

    def _wrapped(self, line: str) -> Iterator[str]:
        return wrapped(line, self._columns, "    ")

    # What needs attention

    def _attention(self) -> Iterator[str]:
        summary = self.summary
        groups, audited = summary.attention.serious, summary.attention.audited
        for group in groups[:GROUPS_SHOWN]:
            yield from self._group(group)
        for event in summary.discards.events[:_DISCARDS_SHOWN]:
            yield from self._wrapped(discard_line(event))
        if (more := summary.discards.count - _DISCARDS_SHOWN) > 0:
            yield f"look  {more} more that {MAY_HAVE_DISCARDED}"
        for step in summary.steps.judged:
            yield cut(step.judged_line, self._columns)
        if hidden := summary.attention.more + sum(each.count for each in groups[GROUPS_SHOWN:]):
            yield f"and {hidden} more: sigwrap query, or sigwrap report --format html"
        if audited:
            yield from self._wrapped(audited_line(audited))
        if any(group.outcome == DENIED for group in groups):
            yield f"proposed rules: {learn_command(self._id)}"

    def _group(self, group: Group) -> Iterator[str]:
        style = self.page.style
        times = f"{group.count} times  " if group.count > 1 else ""
        label = group.label
        said = group.program if group.is_of_several else what(group.first)
        line = f"{label}  {times}{said}  ({group.rule_line}), event {group.first.seq}"
        first, *rest = self._wrapped(line)
        paint = style.bad if group.outcome == DENIED else style.heading
        yield paint(label) + first[len(label) :]
        yield from rest
        if group.is_of_several:
            for said, count in group.whats:
                yield cut(f"    {count:>5}  {said}", self._columns)
            if group.other_lines:
                yield f"    {group.other_lines:>5}  others"
        if not group.is_asked_by_its_shell:
            yield from wrapped(f"    {group.by_line}", self._columns, "      ")

    def _waiting(self) -> Iterator[str]:
        if self.summary.ending not in (Ending.RUNNING, Ending.MOMENT):
            return
        for event in self.summary.waiting:
            approval_id = printable(str(event.payload.get("approval_id")))
            line = f"{self._offset(event)}  {detail(event)}: sigwrap approve {approval_id}"
            yield from self._wrapped(line)

    def _incidents(self) -> Iterator[str]:
        found = self.summary.incidents.found
        for at, said in enumerate(self.summary.incidents.sentences()):
            offset = f"{self._offset(found[at].first)}  " if at < len(found) else ""
            yield from self._wrapped(f"{offset}{said}")

    # What led to it

    def _steps(self) -> Iterator[str]:
        for line in self.summary.steps.lines(self.summary.started_ns, self.page.tree):
            yield cut(line, self._columns)

    def _listed(self, listed: Listed, render: Callable[[Event], str]) -> Iterator[str]:
        for event in listed.events:
            yield from self._wrapped(f"{self._offset(event)}  {render(event)}")
        if listed.more:
            yield f"and {listed.more} more"

    def _talks(self) -> Iterator[str]:
        """Yield destinations; without the tree, no denied ones, which needed attention above."""
        if self.page.tree:
            return _ranked(self.summary.talks, _SIGNALS_SHOWN, _talk)
        found = [each for each in self.summary.talks.counts if each[0].outcome != DENIED]
        return _ranked(self.summary.talks, _TALKS_SHOWN, _talk, found)

    def _written(self) -> Iterator[str]:
        for each in self.summary.files.result():
            yield cut(f"{each.total:>7}  {_written_line(each)}", self._columns)
        if unseen := self.summary.files.changes.get(UNSEEN):
            yield f"{unseen:>7}  changes in places that could not be watched"

    def _failures(self) -> Iterator[str]:
        if self.summary.steps.found and not self.page.tree:
            return  # the steps show them
        for line in _ranked(self.summary.failures, _FAILURES_SHOWN, _failure):
            yield cut(line, self._columns)

    def _offset(self, event: Event) -> str:
        return f"{(event.time_ns - self.summary.started_ns) / 1e9:>+10.3f} s"

    def _death(self, event: Event) -> str:
        comm = event.payload.get("comm") or "?"
        why = self.summary.explained.killed.get(event.seq) or event.payload.get("signal_name")
        return f"pid {event.pid} {printable(str(comm))}  {printable(str(why))}"


def _ranked(
    tally: Tally[Any],
    shown: int,
    said: Callable[[Any], str],
    counts: Sequence[tuple[Any, int]] | None = None,
) -> Iterator[str]:
    """Yield a line for each of the most frequent keys, and one for all others."""
    counts = tally.counts if counts is None else counts
    for key, count in counts[:shown]:
        yield f"{count:>7}  {said(key)}"
    if rest := tally.rest + sum(count for _, count in counts[shown:]):
        yield f"{rest:>7}  others" + ("" if tally.exact else _LOWER_BOUNDS)


def _failure(failure: Failure) -> str:
    return f"exit {failure.exit_code}  {shell_words(words(failure.command))}"


def _talk(talk: Talk) -> str:
    where = "listened at " if talk.direction == "bind" else ""
    has_none = talk.protocol in ("", "unix")  # the destination says it, or no rule is about it
    protocol = "" if has_none else f" ({printable(talk.protocol)})"
    return f"{where}{printable(talk.destination)}{protocol}  {talk.outcome}"


def _edge(edge: SignalEdge) -> str:
    target = printable(edge.target or "?")
    kind = f" ({printable(edge.target_type)})" if edge.target_type else ""
    name, source = printable(edge.signal_name), printable(edge.source or "?")
    return f"{name}  {source} -> {target}{kind}  {edge.outcome}"


def _shadowing(found: tuple[str, str]) -> str:
    path, shadows = found
    # A wrapper such as env has another name than what it finds along PATH.
    is_itself = path.rpartition("/")[2] == shadows.rpartition("/")[2]
    what = printable(path) if is_itself else f"what {printable(path)} runs"
    return f"{what}  shadows {printable(shadows)}"


def _written_line(written: Written) -> str:
    beneath = f"{written.folder.rstrip('/')}/**" if written.beneath else written.folder
    said = ", ".join(f"{count} {CHANGED[name]}" for name, count in written.counts.items())
    return f"{printable(beneath)}  {said}"


def _policy(summary: Summary) -> str:
    """Return the first line of the recorded policy, which may be a whole file."""
    first_line = str(summary.started["policy"]).strip().partition("\n")[0][:80]
    digest = str(summary.started.get("policy_digest") or "")[:16]
    return printable(f"{first_line} {digest}".rstrip())


def _recording(event: Event) -> str:
    payload = event.payload
    sizes = (f"{name} {payload.get(name, '?')} B" for name in ("stdin", "stdout", "stderr"))
    return printable(f"pid {event.pid}  {', '.join(sizes)}  {payload.get('reason') or ''}".rstrip())
