"""What an event rests on that came before it in the log.

A yes rests on its question, what needs a yes on that yes, what came of an exec on its having been
let through, a stub's command on its stub, and `max_execs` on how many have run.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from sigwrap.escape import shell_words
from sigwrap.events import QUESTION_CHARACTERS, Event, Payload, number, text, texts
from sigwrap.policy.judge.network import reaching
from sigwrap.policy.judge.request import Via
from sigwrap.report.check.telling import (
    asked_about_otherwise,
    is_told_as,
    programs_of,
    signal_asked_about_otherwise,
)
from sigwrap.report.check.whatever_words import TOO_LONG, was_cut

FORGOTTEN = "too many approvals or stubs came before them"
NO_YES = "no approval came before it"
_NO_QUESTION = "it answers no earlier approval request"

_MOST_REMEMBERED = 10_000
_MOST_LINES = 1_000
_LETS_THROUGH = frozenset({"exec_allowed", "exec_audited", "exec_redirected"})

Value = TypeVar("Value")


class NotJudged(Exception):
    """Says why nobody can tell."""


class Remembered(Generic[Value]):
    """By what they are about, the latest of them: a log may have any number."""

    def __init__(self, most: int = _MOST_REMEMBERED) -> None:
        self._most = most
        self._values: dict[int | str, Value] = {}
        self._forgets = False

    def keep(self, key: int | str, value: Value) -> None:
        self._values.pop(key, None)
        if len(self._values) >= self._most:
            del self._values[next(iter(self._values))]
            self._forgets = True
        self._values[key] = value

    def drop(self, key: int | str) -> Value | None:
        return self._values.pop(key, None)

    def get(self, key: int | str) -> Value | None:
        return self._values.get(key)

    def about(self, key: int | str) -> Value | None:
        """Raises NotJudged where it may be forgotten."""
        value = self._values.get(key)
        if value is None and self._forgets:
            raise NotJudged(FORGOTTEN)
        return value


class _Question(NamedTuple):
    """As its event has it; the same of an answer."""

    id: str
    pid: int
    kind: str
    rule: str
    what: str
    folder: str
    files: list[str]
    by: str
    is_cut: bool

    @staticmethod
    def of(event: Event) -> _Question:
        payload = event.payload
        return _Question(
            text(payload.get("approval_id")),
            event.pid,
            text(payload.get("kind")),
            text(payload.get("rule_name")),
            text(payload.get("what")),
            text(payload.get("cwd")),
            texts(payload.get("files")),
            text(payload.get("by")),
            was_cut(payload),
        )

    def is_answered_by(self, answer: _Question) -> bool:
        is_cut = self.is_cut or answer.is_cut
        return self[:4] == answer[:4] and is_told_as(self.what, answer.what, is_cut=is_cut)


class _Script(NamedTuple):
    """That somebody said yes to, and that runs."""

    id: str
    rule: str
    by: str
    programs: list[tuple[str, list[str]]]  # path and words of all that it was to run
    is_cut: bool


class _LetThrough(NamedTuple):
    """What a process was last let execute. A million come here: nothing is made of it before
    somebody asks."""

    rule: object
    path: object
    programs: object
    replacement: object
    is_told: bool


class Before:
    """`note` is given each event that decides nothing, `decided` each other one."""

    def __init__(self) -> None:
        self.gone_on = 0
        self.redirected = 0
        self._questions = Remembered[_Question]()  # that wait for an answer, by their id
        self._yeses = Remembered[_Question]()  # to execs that have not run yet, by their id
        self._yeses_to_signals = Remembered[_Question]()  # by the sender
        # By who connects, and what somebody said yes to. Further ones of the same are one event a
        # second, which comes after other questions, and perhaps after the process's end.
        self._yeses_to_connections = Remembered[_Question]()
        self._scripts = Remembered[_Script](_MOST_LINES)
        self._stubs = Remembered[str]()  # the rules of those that run
        self._replacements = Remembered[list[str]](_MOST_LINES)  # of stubs
        self._let_through = Remembered[_LetThrough]()
        self._approved = Remembered[set[str]]()  # the rules of yeses whose exec is still to come
        self._notes = {
            "approval_requested": self._asked,
            "approval_granted": self._granted,
            "approval_denied": self._not_granted,
            "approval_expired": self._not_granted,
            "exec_waiting": self._stub_waits,
            "exec_failed": self._exec_failed,
            "exec_verification_failed": self._other_was_loaded,
            "process_exited": self._exited,
        }

    def note(self, event: Event) -> str:
        """Empty where what it rests on is there. Raises NotJudged."""
        noted = self._notes.get(event.type)
        return "" if noted is None else noted(event)

    def decided(self, event: Event) -> None:
        if event.type not in _LETS_THROUGH:
            return
        payload, pid, rule = event.payload, event.pid, text(event.payload.get("rule_name"))
        get = payload.get
        is_told = get("stub") is not True and not was_cut(payload)
        self._let_through.keep(
            pid, _LetThrough(rule, get("path"), get("programs"), get("replacement"), is_told)
        )
        self._scripts.drop(pid)
        if event.type != "exec_redirected":
            self.gone_on += 1
        else:
            self.redirected += 1
            if payload.get("via") == Via.STUB.value:
                self._stubs.keep(pid, rule)
                self._replacements.keep(pid, texts(payload.get("replacement_argv")))
        if approval_id := text(payload.get("approval_id")):
            (self._approved.get(pid) or set()).discard(rule)
            if (yes := self._yeses.drop(approval_id)) is not None:
                runs = programs_of(payload)
                self._scripts.keep(pid, _Script(yes.id, rule, yes.by, runs, was_cut(payload)))

    # Questions and answers

    def _asked(self, event: Event) -> str:
        question = _Question.of(event)
        self._questions.keep(question.id, question)
        if question.kind == "signal":
            self._yeses_to_signals.drop(event.pid)
        return ""

    def _granted(self, event: Event) -> str:
        answer = _Question.of(event)
        if (question := self._taken(answer)) is None:
            return _NO_QUESTION
        if text(event.payload.get("reason")) != "granted":
            return "it is an approval, but its reason is not granted"
        yes = question._replace(by=answer.by, is_cut=question.is_cut or answer.is_cut)
        if yes.kind == "signal":
            self._yeses_to_signals.keep(event.pid, yes)
        elif yes.kind == "connection":
            self._yeses_to_connections.keep(f"{event.pid} {yes.what}", yes)
        else:
            self._yeses.keep(yes.id, yes)
            self._approved.keep(event.pid, {yes.rule, *(self._approved.get(event.pid) or ())})
        return ""

    def _not_granted(self, event: Event) -> str:
        if self._taken(_Question.of(event)) is None:
            return _NO_QUESTION
        is_yes = event.payload.get("reason") == "granted"
        return "it is a denial, but its reason is granted" if is_yes else ""

    def _taken(self, answer: _Question) -> _Question | None:
        """The question that it answers, which has no other answer then."""
        question = self._questions.about(answer.id)
        self._questions.drop(answer.id)
        return question if question is not None and question.is_answered_by(answer) else None

    def yes_objection(self, event: Event, rule: str) -> str:
        """A yes is for one exec; where that runs a script, also for the next one of the process, by
        which the script's interpreter goes on (mediate/approved_scripts.py). Raises NotJudged where
        its words are not all there, and no other than those that somebody said yes to."""
        payload, approval_id = event.payload, text(event.payload.get("approval_id"))
        is_cut = was_cut(payload)
        if (yes := self._yeses.get(approval_id)) is not None:
            is_cut = is_cut or yes.is_cut
            problem = _not_for(yes, event, rule, is_cut=is_cut)
        else:
            script = self._scripts.about(event.pid)
            if script is None or script.id != approval_id:
                self._yeses.about(approval_id)
                return NO_YES
            is_cut = is_cut or script.is_cut
            problem = _not_what_it_runs(script, payload, rule, is_cut=is_cut)
        if is_cut and not problem:
            raise NotJudged(TOO_LONG)
        return problem

    def signal_yes_objection(self, payload: Payload) -> str:
        """Of several targets each may be another rule's; the question names the first one's."""
        yes = self._yeses_to_signals.about(number(payload.get("source_pid")))
        if yes is None:
            return NO_YES
        return signal_asked_about_otherwise(payload, yes.what, is_cut=yes.is_cut)

    def connection_yes_objection(self, event: Event, rule: str) -> str:
        get = event.payload.get
        what = reaching(text(get("direction")), text(get("destination")))
        if was_cut(event.payload) or len(what) > QUESTION_CHARACTERS:
            raise NotJudged(TOO_LONG)
        yes = self._yeses_to_connections.about(f"{event.pid} {what}")
        return "" if yes is not None and yes.rule == rule else NO_YES

    # What came of an exec

    def _stub_waits(self, event: Event) -> str:
        rule, path = (event.payload.get(each) for each in ("rule_name", "path"))
        self._let_through.keep(event.pid, _LetThrough(rule, path, None, None, is_told=False))
        return ""

    def _exec_failed(self, event: Event) -> str:
        """What a yes was said to may be gone by then: nothing was let through."""
        rule = text(event.payload.get("rule_name"))
        if rule in (self._approved.get(event.pid) or ()):
            return ""
        let_through = self._let_through.about(event.pid)
        self._let_through.drop(event.pid)
        return _of_another_exec(event.payload, let_through)

    def _other_was_loaded(self, event: Event) -> str:
        return _of_another_exec(event.payload, self._let_through.about(event.pid))

    # Stubs

    def rule_of_stub(self, pid: int) -> str:
        return self._stubs.about(pid) or ""

    def replacement_of_stub(self, pid: int) -> list[str]:
        return self._replacements.about(pid) or []

    def _exited(self, event: Event) -> str:
        for by_process in (self._stubs, self._replacements, self._scripts):
            by_process.drop(event.pid)
        for rules in (self._let_through, self._approved, self._yeses_to_signals):
            rules.drop(event.pid)
        return ""


def _not_for(yes: _Question, event: Event, rule: str, *, is_cut: bool) -> str:
    payload = event.payload
    if (yes.pid, yes.rule) != (event.pid, rule):
        return NO_YES
    if payload.get("reason") != f"approved by {yes.by}":
        return "its reason does not name the approver"
    if problem := asked_about_otherwise(payload, yes.what, is_cut=is_cut):
        return problem
    folder = text(payload.get("cwd"))  # empty where nobody could tell
    if yes.folder and folder and not is_cut and yes.folder != folder:
        return "the approval was for another directory"
    if yes.files and not is_cut and programs_of(payload)[0][0] not in yes.files:
        return "the approval was for another file"
    return ""


def _not_what_it_runs(script: _Script, payload: Payload, rule: str, *, is_cut: bool) -> str:
    path, words = programs_of(payload)[0]
    is_its = rule == script.rule and text(payload.get("reason")).startswith(
        f"approved by {script.by} with "
    )
    if not is_its:
        return NO_YES
    known = script.is_cut or any(path == other for other, _ in script.programs[1:])
    return "" if known and (is_cut or (path, words) in script.programs[1:]) else NO_YES


def _of_another_exec(payload: Payload, let_through: _LetThrough | None) -> str:
    rule = text(payload.get("rule_name"))
    if let_through is None or let_through.rule != rule:
        return f"no earlier exec of its process was allowed by {rule or 'no rule'}"
    paths = _paths(let_through)
    if let_through.is_told and not was_cut(payload) and text(payload.get("path")) not in paths:
        return f"the earlier exec was allowed for {shell_words(paths)}, another file"
    return ""


def _paths(let_through: _LetThrough) -> list[str]:
    """As asked for, with links resolved, of what ran in its place."""
    programs = let_through.programs if isinstance(let_through.programs, list) else []
    found = [each.get("path") for each in programs[:1] if isinstance(each, dict)]
    return [text(each) for each in (let_through.path, let_through.replacement, *found) if each]
