"""The first sentence of every form: how a session ended, or how far it is."""

from __future__ import annotations

from enum import Enum

from sigwrap.bare import NamedTuple
from sigwrap.errors import COMMAND_ENDED
from sigwrap.events import DENIED, counted, text, texts
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.request import Action, Operation
from sigwrap.report.check.decisions import recorded_variables
from sigwrap.report.folds.ending import WHAT_ENDED_IT, Ending
from sigwrap.report.folds.incidents import with_new_keys
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.times import local_time, span
from sigwrap.text import printable

_FILE_WALL = "file_wall"


class News(Enum):
    GOOD = "good"
    BAD = "bad"
    OPEN = "open"  # nothing has ended


class Verdict(NamedTuple):
    sentence: str  # escaped for a terminal
    news: News


def verdict(summary: Summary, *, now_ns: int, utc: bool = False) -> Verdict:
    duration = span(summary.duration_ns)
    match summary.ending:
        case Ending.ENDED:
            status = summary.ended.get("exit_status")
            reason = with_new_keys(printable(str(summary.ended.get("reason") or "ended")))
            is_by_user = reason == "interrupted" and _is_by_user(summary)
            if is_by_user:
                reason = "interrupted by Ctrl+C"
            elif reason == COMMAND_ENDED:
                reason = "failed" if status else "finished"
            said = f"{reason[:1].upper()}{reason[1:]}, exit {printable(str(status))}, {duration}"
            news = News.OPEN if is_by_user else News.GOOD if status == 0 else News.BAD
        case Ending.RUNNING:
            so_far = span(max(now_ns - summary.started_ns, 0))
            said = f"Running for {so_far} so far{_stopped(summary, utc=utc)}"
            news = News.OPEN
        case Ending.MOMENT:
            moment = f"State after event {summary.events}, {duration} into the run"
            said, news = f"{moment}{_stopped(summary, utc=utc)}", News.OPEN
        case Ending.HOOKS:
            return Verdict(_of_hooks(summary), News.OPEN)
        case Ending.NOT_CLEAN:
            said = f"Did not end cleanly: {WHAT_ENDED_IT}, {duration} into the run"
            news = News.BAD
    return Verdict(f"{said}.{_actions(summary)}", news)


def _is_by_user(summary: Summary) -> bool:
    """Return whether the user's own Ctrl+C ended it."""
    received = summary.interrupts.events
    return any(each.payload.get("origin") == "terminal" for each in received)


def _actions(summary: Summary) -> str:
    """Say what was denied, and what the sandbox ruled out."""
    if summary.selection is not None or not summary.events:
        return ""
    denied, approved = summary.counts.denied, summary.counts.approved
    by_hook = [each.answer for each in summary.steps.judged].count("deny")
    said = [f"{counted(denied, 'action was', 'actions were')} denied"] if denied else []
    said += [f"hooks denied {counted(by_hook, 'tool call')}"] if by_hook else []
    if refused := summary.counts.refused_files:
        said += [f"{counted(refused, 'file was', 'files were')} probably refused"]
    said = said or ["nothing was denied"]
    said += [f"{approved} approved"] if approved else []
    sentence = ", ".join(said)
    return f" {sentence[:1].upper()}{sentence[1:]}.{_unchanged(summary)}"


def _of_hooks(summary: Summary) -> str:
    steps = summary.steps
    answers = [each.answer for each in steps.judged]
    count = counted(len(steps.found) + steps.more, "tool call")
    denied, asked = answers.count("deny"), answers.count("ask")
    return f"Hooks judged {count} of one conversation: {denied} denied, {asked} left to the user."


_WRITES = (Operation.WRITE, Operation.CREATE, Operation.DELETE)
_TEMPORARY = ("/tmp", "/var/tmp", "/dev", "/nonexistent")
_PROBES = ("/etc/x", "/usr/x", "/opt/x", "/root/x", "/home/x/y", "/x")


def has_file_wall(summary: Summary) -> bool:
    """Return whether the kernel enforced the file rules."""
    return _FILE_WALL in texts(summary.started.get("capabilities"))


def _unchanged(summary: Summary) -> str:
    """Say where nothing can have changed, if the kernel enforced it; otherwise return ""."""
    started = summary.started
    talks = summary.talks
    asked_servers = talks.rest or any(  # such as systemd --user, which may change files for it
        each.destination.startswith("unix:") and each.outcome != DENIED for each, _ in talks.counts
    )
    if not has_file_wall(summary) or summary.handed.found or asked_servers:
        return ""
    if summary.ended.get("unrecorded"):
        return ""
    if (policy := summary.policy) is None:
        return ""
    rules = FileRules.of(policy)
    denied = (rules.by_rules(each, path).action for each in _WRITES for path in _PROBES)
    if any(each is not Action.DENY for each in denied):
        return ""
    variables = recorded_variables(started)
    project = variables.get("PROJECT_ROOT") or text(started.get("cwd"))
    home = variables.get("HOME") or "/nonexistent"  # it may be in a temporary directory
    known = (project, variables.get("TMPDIR") or "/tmp", *_TEMPORARY)
    writable = (
        path
        for rule in policy.file_rules
        if rule.decision is not Action.DENY and set(rule.operations) & set(_WRITES)
        for path in rule.paths
    )
    is_strict = all(
        any(_is_in(path, each) for each in known if each)
        and (_is_in(path, project) or not _is_in(path, home))
        for path in writable
    )
    also = "" if is_strict else f" and the other paths that policy {printable(policy.name)} allows"
    between = " and" if is_strict else ","
    return f" Nothing could be changed outside the project{between} temporary directories{also}."


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _stopped(summary: Summary, *, utc: bool) -> str:
    stopped = summary.explained.stopped
    if not stopped:
        return ""
    return f", stopped since {local_time(stopped.since_ns, utc=utc)} by {stopped.by}"
