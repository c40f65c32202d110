"""What the agent did, in lines: each tool call with its outcome, and what ran below it."""

from __future__ import annotations

from collections.abc import Iterator

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.events import Event, text, texts
from sigwrap.policy.presets import as_meant
from sigwrap.report.folds.steps import Step, Steps

_SHOWN = 12
_BELOW_SHOWN = 3
_CHARACTERS = 200
MAY_HAVE_DISCARDED = "may have discarded uncommitted changes"


def steps_lines(steps: Steps, started_ns: int, is_whole: bool) -> Iterator[str]:
    """Yield a line for each step; of many, choose first the ones that went wrong."""
    found = steps.found
    shown = set(range(len(found)))
    if not is_whole and len(found) > _SHOWN:
        order = sorted(shown, key=lambda at: (not found[at].is_bad, at))
        shown = set(order[: _SHOWN if len(found) > _SHOWN + 1 else None])
    hidden, times = 0, 0
    first: Step | None = None  # of equal steps in a row
    for at, step in enumerate(found):
        if at not in shown:
            hidden += 1
            continue
        if hidden:
            yield f"{'':>10}  ... {hidden} more"
            hidden = 0
        first = first or step
        times += 1
        following = found[at + 1] if at + 1 in shown else None
        if following is not None and _said(following) == _said(step):
            continue
        yield f"{_offset(first, started_ns)}  {_said(step)}" + (f"  x{times}" if times > 1 else "")
        times, first = 0, None
    if hidden := hidden + steps.more:
        yield f"{'':>10}  ... {hidden} more"
    if steps.own:
        names = ", ".join(f"{printable(name)} ({n})" for name, n in steps.own.items())
        yield shortened(f"and {sum(steps.own.values())} commands of the agent itself: {names}", 200)


def _offset(step: Step, started_ns: int) -> str:
    return f"{(step.time_ns - started_ns) / 1e9:>+8.2f} s"


def _said(step: Step) -> str:
    tool = f"{step.tool}: " if step.tool else ""
    return f"{step.outcome:<8}  {tool}{step.what}{_below(step)}"


def _below(step: Step) -> str:
    """Return what ran below, in a few words."""
    notes = [f"denied: {each}" for each in step.denied[:_BELOW_SHOWN] if each != step.what]
    if len(notes) < step.denials and step.what not in step.denied:
        notes.append(f"{step.denials} denied")
    others = [each for each in step.below if each != step.what]
    if others and step.what not in others:
        names = dict.fromkeys(each.partition(" ")[0].rpartition("/")[2] for each in others)
        notes.append(
            f"ran {', '.join(list(names)[:_BELOW_SHOWN])}{', …' if len(names) > 3 else ''}"
        )
    return f"  ({'; '.join(notes)})" if notes else ""


def judged_line(step: Step) -> str:
    """Return what a hook denied, or asked the user about."""
    label = "denied" if step.answer == "deny" else "asked"
    why = f"  ({step.reason})" if step.reason else ""
    return f"{label}  {step.tool}: {step.what}{why}"


def discard_line(event: Event) -> str:
    return f"look  {discarding(event)} {MAY_HAVE_DISCARDED} ({event.pid}, event {event.seq})"


def discarding(event: Event) -> str:
    """Return the command line."""
    words = as_meant(texts(event.payload.get("argv")) or [text(event.payload.get("path"))])
    return shortened(shell_words(words), _CHARACTERS)
