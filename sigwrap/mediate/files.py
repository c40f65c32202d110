"""A file that is written, made, deleted or renamed, where a rule audits that: recorded, and then
the kernel does it. It reads the path again, so this is a record and no wall: walls are Landlock's.
What the rules deny is left to these, and what they allow goes on unrecorded."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from sigwrap.mediate.effects import Continue, Fail, Look, Mediation, RecordRepeated, Unrecorded
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.file_facts import Change, FileAim, FileFacts, Nothing, Touched, Unseen
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.request import Action, Decision, Operation

_COUNTED_FOR_S = 1.0
UNSEEN_RULE = "builtin:unseen"


class FileMediator:
    def __init__(self, rules: FileRules) -> None:
        """`rules` as they lie on the disk."""
        self._rules = rules

    def mediate(self) -> Mediation:
        facts: FileFacts = yield Look()
        match facts.aim:
            case WouldFail(errno=error):
                yield Fail(error, Unrecorded.NOTHING_HAPPENS)
            case Nothing():
                yield Continue(Unrecorded.FILE_IS_FREE)
            case Unseen(why=why):
                yield from _record(facts, facts.aim, Decision(Action.AUDIT, UNSEEN_RULE, why))
            case Touched():
                decision = self._audits(facts.aim)
                if decision is None:
                    yield Continue(Unrecorded.FILE_IS_FREE)
                else:
                    yield from _record(facts, facts.aim, decision)

    def _audits(self, touched: Touched) -> Decision | None:
        decisions = (self._rules.by_rules(*each) for each in _asks(touched))
        return next((each for each in decisions if each.action is Action.AUDIT), None)


def _asks(touched: Touched) -> Iterator[tuple[Operation, str]]:
    path, to = touched.path, touched.to
    match touched.change:
        case Change.WRITE:
            yield Operation.WRITE, path
        case Change.CREATE:
            yield Operation.CREATE, to or path
            if touched.is_written:
                yield Operation.WRITE, path
        case Change.DELETE:
            yield Operation.DELETE, path
        case Change.RENAME:
            yield Operation.DELETE, path
            yield Operation.CREATE, to
            if touched.is_exchange:
                yield Operation.DELETE, to
                yield Operation.CREATE, path


def _record(facts: FileFacts, aim: FileAim, decision: Decision) -> Mediation:
    """What one process does over and over with one file is one event more each second."""
    path = to = ""
    operation = "unseen"
    if isinstance(aim, Touched):
        path, to, operation = aim.path, aim.to, aim.change.value
    payload = {
        "syscall": facts.syscall,
        "comm": facts.process.comm,
        "operation": operation,
        "path": path,
        "rule_name": decision.rule,
        "reason": decision.reason,
        "verified": False,
    }
    if to:
        payload["to"] = to
    key = (facts.process, operation, path, to, decision.rule)
    if (yield RecordRepeated("file_audited", payload, key, _COUNTED_FOR_S)):
        yield Continue()
    else:
        yield Fail(errno.EPERM)
