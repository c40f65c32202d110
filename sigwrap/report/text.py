"""The report for a reader with one minute: how the session ended, then what led to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sigwrap.escape import printable, shell_words
from sigwrap.events import Event, texts
from sigwrap.report.cause import sent_to_sigwrap
from sigwrap.report.detail import detail
from sigwrap.report.style import PLAIN, Style
from sigwrap.report.summary import Ending, Listed, SignalEdge, Summary
from sigwrap.report.tally import Top
from sigwrap.report.times import local_time, span
from sigwrap.report.tree import TreeLine, words
from sigwrap.report.verify import Outcome, Verification

_PROGRAMS_SHOWN = 10
_SIGNALS_SHOWN = 15
_TREE_LINES_SHOWN = 60
_DEEPEST_INDENT = 20


def render_text(
    summary: Summary, verification: Verification | None = None, style: Style = PLAIN
) -> str:
    """Without a `verification`, nothing is said about the chain."""
    return "\n".join(_lines(summary, verification, style))


def render_verification(
    session_id: str, verification: Verification, running: bool, style: Style = PLAIN
) -> str:
    name = printable(session_id)
    events = _events(verification.events)
    match verification.outcome:
        case Outcome.INTACT:
            how = "with the key" if verification.keyed else "without a key"
            lines = [f"{name}: {style.good('intact')}, {events}, checked {how}"]
            if not verification.ended:
                lines.append("it is running" if running else "it did not end cleanly")
            lines.append(f"head {verification.head}")
            if not verification.head_given:
                lines.append("whether its end was cut off: compare the head, or give it as --head")
            return "\n".join(lines)
        case Outcome.BROKEN:
            return f"{name}: {style.bad('NOT INTACT')}: {_problem(verification)}"
        case Outcome.UNCHECKED:
            return f"{name}: {style.bad('not checked')}: {_problem(verification)}"


def _lines(summary: Summary, verification: Verification | None, style: Style) -> Iterator[str]:
    yield _verdict(summary, style)
    if verification is not None:
        yield _trust(summary, verification, style)
    yield from _frame(summary)
    yield from _section("Events", _counts(summary.by_type), style)
    yield from _section("Decisions", _counts(summary.by_decision), style)
    not_plain = _listed(summary.not_plainly_let_through, _not_plain, summary)
    yield from _section("Denied, redirected, approved, noticed", not_plain, style)
    recordings = _listed(summary.recordings, _recording, summary)
    yield from _section("Recorded (sigwrap replay --recorded stdout)", recordings, style)
    yield from _section("Interrupts", _listed(summary.interrupts, _interrupt, summary), style)
    deaths = _listed(summary.deaths, lambda event: _death(event, summary), summary)
    yield from _section("Died of a signal", deaths, style)
    yield from _section("Who signalled whom", _signals(summary.signals), style)
    yield from _section(
        "Found along PATH before the system's", _shadowing(summary.shadowing), style
    )
    yield from _section("Programs run most", _programs(summary.programs), style)
    yield from _section(_tree_title(summary), _tree(summary), style)


def _verdict(summary: Summary, style: Style) -> str:
    duration = span(summary.duration_ns)
    match summary.ending:
        case Ending.ENDED:
            status = summary.ended.get("exit_status")
            shown_status = printable(str(status))
            reason = printable(str(summary.ended.get("reason") or "ended"))
            text = f"{reason}: exit status {shown_status} after {duration}"
            return style.good(text) if status == 0 else style.bad(text)
        case Ending.RUNNING:
            return style.heading(f"running for {duration} so far{_stopped(summary)}")
        case Ending.MOMENT:
            moment = f"state after event {summary.events}, {duration} into the run"
            return style.heading(f"{moment}{_stopped(summary)}")
        case Ending.NOT_CLEAN:
            return style.bad(
                f"did not end cleanly: sigwrap was gone after the last event, "
                f"{duration} into the run"
            )


def _stopped(summary: Summary) -> str:
    stopped = summary.stopped
    return f", stopped since {local_time(stopped.since_ns)} by {stopped.by}" if stopped else ""


def _trust(summary: Summary, verification: Verification, style: Style) -> str:
    events = _events(summary.events)
    match verification.outcome:
        case Outcome.INTACT:
            how = "verified with the key" if verification.keyed else "verified"
            return f"{events}, {style.good(how)}, head {verification.head}"
        case Outcome.BROKEN:
            return f"{events}, {style.bad('NOT INTACT')}: {_problem(verification)}"
        case Outcome.UNCHECKED:
            problem = _problem(verification)
            return f"{events}, {style.bad('not verified')}: {problem}, head {verification.head}"


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def _problem(verification: Verification) -> str:
    where = f"row {verification.row}: " if verification.row else ""
    return where + printable(verification.problem)


def _frame(summary: Summary) -> Iterator[str]:
    started = summary.started
    name = f" ({printable(str(started['name']))})" if started.get("name") else ""
    yield ""
    yield f"session  {printable(str(started.get('session_id', '?')))}{name}"
    yield f"command  {shell_words(texts(started.get('command')) or ['?'])}"
    yield f"in       {printable(str(started.get('cwd', '?')))}"
    user = started.get("user") or f"uid {started.get('uid', '?')}"
    by = f"{user} on {started.get('host', '?')}"
    yield f"by       {printable(by)}, sigwrap {printable(str(started.get('sigwrap', '?')))}"
    yield f"started  {local_time(summary.started_ns)}"
    if started.get("policy"):
        yield f"policy   {_policy(summary)}"
    if removed := texts(started.get("environment_removed")):
        yield f"unset    {printable(', '.join(removed))}"
    if missing := texts(started.get("missing")):
        yield f"without  {printable(', '.join(missing))}"
    if unrecorded := summary.ended.get("unrecorded"):
        lost = printable(str(unrecorded))
        yield f"LOST     {lost} {'event' if lost == '1' else 'events'} could not be recorded"


def _policy(summary: Summary) -> str:
    """The recorded text may be a whole file: its first line is enough to recognise it."""
    first_line = str(summary.started["policy"]).strip().partition("\n")[0][:80]
    digest = str(summary.started.get("policy_digest") or "")[:16]
    return printable(f"{first_line} {digest}".rstrip())


def _section(title: str, lines: Iterator[str], style: Style) -> Iterator[str]:
    first = next(lines, None)
    if first is None:
        return
    yield ""
    yield style.heading(title)
    yield f"  {first}"
    for line in lines:
        yield f"  {line}"


def _counts(counts: dict[str, int]) -> Iterator[str]:
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        yield f"{count:>7}  {printable(str(name))}"


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


def _signals(signals: Top[SignalEdge]) -> Iterator[str]:
    for edge, count in signals.counts[:_SIGNALS_SHOWN]:
        target = printable(edge.target or "?")
        kind = f" ({printable(edge.target_type)})" if edge.target_type else ""
        name, source = printable(edge.signal_name), printable(edge.source or "?")
        yield f"{count:>7}  {name}  {source} -> {target}{kind}  {printable(edge.decision)}"
    yield from _rest(signals, _SIGNALS_SHOWN)


def _rest(top: Top[str] | Top[tuple[str, str]] | Top[SignalEdge], shown: int) -> Iterator[str]:
    rest = top.rest + sum(count for _, count in top.counts[shown:])
    if rest:
        yield f"{rest:>7}  others" + ("" if top.exact else " (counts above are lower bounds)")


def _listed(listed: Listed, render: Callable[[Event], str], summary: Summary) -> Iterator[str]:
    for event in listed.events:
        offset_s = (event.time_ns - summary.started_ns) / 1e9
        yield f"{offset_s:>+10.3f} s  {render(event)}"
    if listed.more:
        yield f"and {listed.more} more"


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
            left = ", left to COMMAND" if payload.get("taken_by") == "command" else ""
            text = f"received {sent_to_sigwrap(payload)}{left}"
        case "escalated":
            count = payload.get("processes")
            text = f"killed the tree ({count} process{'es' * (count != 1)}): "
            text += str(payload.get("reason"))
        case "withdrawn":
            text = "taken back: COMMAND came to a prompt"
        case _:
            text = f"{what} {signal}"
    return printable(text)


def _not_plain(event: Event) -> str:
    rule = event.payload.get("rule_name") or event.payload.get("rule") or ""
    shown_rule = f"  by rule {printable(str(rule))}" if rule else ""
    return f"{event.type:<18} {event.pid:>7}  {detail(event)}{shown_rule}"


def _death(event: Event, summary: Summary) -> str:
    comm = event.payload.get("comm") or "?"
    why = summary.why_killed.get(event.seq) or event.payload.get("signal_name")
    return f"pid {event.pid} {printable(str(comm))}  {printable(str(why))}"


def _tree_title(summary: Summary) -> str:
    alive = summary.running_processes
    return f"Processes ({summary.processes}{f', {alive} {_alive(summary)}' if alive else ''})"


def _alive(summary: Summary) -> str:
    over = summary.ending in (Ending.ENDED, Ending.NOT_CLEAN)
    return "whose end is not recorded" if over else "running"


def _tree(summary: Summary) -> Iterator[str]:
    for line in summary.tree[:_TREE_LINES_SHOWN]:
        yield _tree_line(line, _alive(summary))
    hidden = len(summary.tree) - _TREE_LINES_SHOWN
    if hidden > 0 or summary.tree_not_shown:
        yield f"... {max(hidden, 0) + summary.tree_not_shown} more lines are not shown"


def _tree_line(line: TreeLine, alive: str) -> str:
    indent = "  " * min(line.depth, _DEEPEST_INDENT)
    deeper = f"[{line.depth} deep] " if line.depth > _DEEPEST_INDENT else ""
    arrow = "=> " if line.in_place else ""
    notes = [] if line.count == 1 else [f"x{line.count}"]
    if line.running:
        notes.append(f"{line.running} {alive}" if line.count > 1 else alive)
    if line.failed:
        notes.append(f"{line.failed} failed" if line.count > 1 else "failed")
    notes += [f"{count} died of {name}" for name, count in line.killed]
    after = f"  ({printable(', '.join(notes))})" if notes else ""
    return f"{indent}{deeper}{arrow}{line.first_pid} {shell_words(words(line.command))}{after}"
