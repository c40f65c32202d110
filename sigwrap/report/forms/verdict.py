"""How a session ended, or where it stands, in a sentence: what every form begins with."""

from __future__ import annotations

from enum import Enum

from sigwrap.escape import printable
from sigwrap.report.folds.ending import WHAT_ENDED_IT, Ending
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.counts import counted
from sigwrap.report.forms.times import local_time, span
from sigwrap.status import COMMAND_ENDED
from sigwrap.tuples import NamedTuple


class News(Enum):
    GOOD = "good"
    BAD = "bad"
    OPEN = "open"  # nothing has ended


class Verdict(NamedTuple):
    sentence: str  # fit for a terminal
    news: News


def verdict(summary: Summary, *, now_ns: int, utc: bool = False) -> Verdict:
    duration = span(summary.duration_ns)
    match summary.ending:
        case Ending.ENDED:
            status = summary.ended.get("exit_status")
            reason = printable(str(summary.ended.get("reason") or "ended"))
            said = "" if reason == COMMAND_ENDED else f", {reason}"
            sentence = f"exit {printable(str(status))} after {duration}{said}"
            return Verdict(sentence, News.GOOD if status == 0 else News.BAD)
        case Ending.RUNNING:
            so_far = span(max(now_ns - summary.started_ns, 0))
            return Verdict(f"running for {so_far} so far{_stopped(summary, utc=utc)}", News.OPEN)
        case Ending.MOMENT:
            moment = f"state after event {summary.events}, {duration} into the run"
            return Verdict(f"{moment}{_stopped(summary, utc=utc)}", News.OPEN)
        case Ending.HOOKS:
            calls = counted(summary.by_type.get("tool_call_judged", 0), "tool call")
            return Verdict(f"{calls} of an agent, judged by its hook", News.OPEN)
        case Ending.NOT_CLEAN:
            sentence = f"did not end cleanly: {WHAT_ENDED_IT}, {duration} into the run"
            return Verdict(sentence, News.BAD)


def _stopped(summary: Summary, *, utc: bool) -> str:
    stopped = summary.explained.stopped
    if not stopped:
        return ""
    return f", stopped since {local_time(stopped.since_ns, utc=utc)} by {stopped.by}"
