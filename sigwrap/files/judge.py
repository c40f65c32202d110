"""Judges calls that change files, and infers which files the kernel has refused.

Audit: sigwrap records a call that writes, creates, deletes or renames a file if a rule audits it,
and the kernel goes on with it. The kernel reads the path again, so this only records. Landlock
enforces denials.

Inference: the kernel reports no refusal. At an exec, `Refusals.suspects` compares the arguments
with the file rules. If the process ends with an error, `Refusals.inferred` looks at those paths:
does one exist, and do the rules deny the place where it really is? A process with false arguments
causes inferences about itself only, and their number in a session is limited.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from sigwrap.bare import NamedTuple, lru_cache
from sigwrap.policy.judge.file_words import FileWord, Use, fails_from, file_words, name_of
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.match import parts_of, resolved
from sigwrap.policy.judge.request import Action, Decision, Operation
from sigwrap.session.effects import Continue, Fail, Look, RecordRepeated, Steps, Unrecorded
from sigwrap.session.lineage import Process
from sigwrap.text import masked

_COUNTED_FOR_S = 1.0
UNSEEN_RULE = "builtin:unseen"
MOST_EVENTS, MOST_LINES = 100, 1000
_PASSED_ON_BY = "git-receive-pack"  # it exits with 0; git exits with the error that it reports
_WORDS_LOOKED_AT, _SUSPECTS_OF_ONE = 64, 8
_FOLDERS_KEPT = 256
_WORDS_SHOWN, _CHARACTERS_SHOWN = 32, 200

_ASKS = {
    Use.READ: Operation.READ,
    Use.READ_BENEATH: Operation.READ,
    Use.WRITE: Operation.WRITE,
    Use.CREATE: Operation.CREATE,
    Use.DELETE: Operation.DELETE,
    Use.FILL: Operation.WRITE,
}
_CREATES = frozenset({Use.WRITE, Use.CREATE, Use.FILL})
_FOR_FOLDERS = frozenset({Use.READ_BENEATH, Use.DELETE, Use.FILL})


class Touched(NamedTuple):
    operation: str  # write, create, delete or rename
    asks: tuple[tuple[Operation, str], ...]  # which the rules decide on
    path: str  # its real place; if unknown, as the caller wrote it
    to: str = ""  # the other name in a rename or link


class Unseen(NamedTuple):
    """sigwrap could not find out what the call changes."""

    why: str


FileAim = Touched | Unseen | Continue | Fail  # the last two are answers: nothing changes


class FileFacts(NamedTuple):
    process: Process
    syscall: str
    aim: FileAim


class FileMediator:
    def __init__(self, rules: FileRules) -> None:
        """Match against `rules` with the real paths on the disk."""
        self._rules = rules

    def mediate(self) -> Steps:
        facts: FileFacts = yield Look()
        match facts.aim:
            case Unseen(why=why):
                yield from _record(facts, facts.aim, Decision(Action.AUDIT, UNSEEN_RULE, why))
            case Touched():
                decision = self._audits(facts.aim)
                if decision is None:
                    yield Continue(Unrecorded.NO_RULE)
                else:
                    yield from _record(facts, facts.aim, decision)
            case _:
                yield facts.aim

    def _audits(self, touched: Touched) -> Decision | None:
        decisions = (self._rules.by_rules(*each) for each in touched.asks)
        return next((each for each in decisions if each.action is Action.AUDIT), None)


def _record(facts: FileFacts, aim: Touched | Unseen, decision: Decision) -> Steps:
    """Record the change. Repeats by one process on one file share one more event each second."""
    path = to = ""
    operation = "unseen"
    if isinstance(aim, Touched):
        operation, _, path, to = aim
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


class Suspicion(NamedTuple):
    """Files that a process may be refused, by the arguments of its last exec."""

    words: tuple[FileWord, ...]  # with absolute paths
    fails_from: int  # the lowest exit status that is a failure
    command: list[str]  # its arguments, masked and cut
    is_passed_on: bool  # to the git that started it, which fails in its place


class Found(NamedTuple):
    path: str  # where it really is
    is_folder: bool
    permits: frozenset[Operation]  # what its mode lets this user do


class Inferred(NamedTuple):
    operation: Operation
    path: str
    rule: str


KnownFile = Callable[[str], Found | None]
"""Return the file at a path, or None. OSError: the kernel cannot tell at once."""


class Refusals:
    def __init__(self, rules: FileRules, home: str) -> None:
        """Match against `rules` that the kernel enforces, with the real paths on the disk."""
        self._rules = rules
        self._home = home
        # Whether every name in a directory is allowed. Most commands use a few directories only.
        self._allows_in = lru_cache(_FOLDERS_KEPT)(rules.holds_for_all)
        self._reported: set[Inferred] = set()
        self._lines = 0

    def suspects(self, argv: Sequence[str], folder: str) -> Suspicion | None:
        """Return what to suspect. `folder`: the working directory, empty if unknown."""
        if self._lines >= MOST_LINES or not argv:
            return None
        name = name_of(argv)
        here = parts_of(folder)
        is_plain = bool(folder) and all(
            self._allows_in(each, folder) for each in self._rules.restricted
        )
        words: list[FileWord] = []
        for use, word in islice(file_words(name, argv), _WORDS_LOOKED_AT):
            if is_plain and "/" not in word and word != "..":
                continue  # the rules deny nothing there
            if not folder and word[:1] not in ("/", "~"):
                continue
            path = resolved(word, here, self._home)
            if self._denies(_ASKS[use], path) or (
                use is Use.FILL and self._denies(Operation.CREATE, f"{path}/x")
            ):
                words.append(FileWord(use, path))
                if len(words) == _SUSPECTS_OF_ONE:
                    break
        if not words:
            return None
        shown = [each[:_CHARACTERS_SHOWN] for each in masked(argv[:_WORDS_SHOWN])]
        return Suspicion(tuple(words), fails_from(name), shown, name == _PASSED_ON_BY)

    def inferred(
        self, suspicion: Suspicion, status: int, look: KnownFile
    ) -> Iterator[tuple[Inferred, bool]]:
        """Yield the files that were probably refused, up to the session's maximum, and whether each
        needs an event: one for each file."""
        if status < suspicion.fails_from:
            return
        for word in suspicion.words:
            try:
                found = self._refused(word, look)
            except OSError:
                continue
            is_new = found not in self._reported
            is_within = not is_new or len(self._reported) < MOST_EVENTS
            if found is not None and is_within and self._lines < MOST_LINES:
                self._lines += 1
                self._reported.add(found)
                yield found, is_new

    def _denies(self, operation: Operation, path: str) -> bool:
        if self._allows_in(operation, path.rpartition("/")[0] or "/"):
            return False
        return self._rules.decide(operation, path).action is Action.DENY

    def _refused(self, word: FileWord, look: KnownFile) -> Inferred | None:
        use, path = word
        found, operation = look(path), _ASKS[use]
        if found is None and use in _CREATES:
            folder, _, name = path.rpartition("/")
            return self._in_folder(look(folder or "/"), Operation.CREATE, name)
        if found is None or use is Use.CREATE or (found.is_folder and use not in _FOR_FOLDERS):
            return None
        if found.is_folder and use is Use.FILL:
            inside = self._in_folder(found, Operation.CREATE, "x")
            return inside and Inferred(operation, found.path, inside.rule)
        if operation is Operation.DELETE:
            folder, _, name = found.path.rpartition("/")
            return self._in_folder(look(folder or "/"), operation, name)
        return self._asked(operation, found.path) if operation in found.permits else None

    def _in_folder(self, folder: Found | None, operation: Operation, name: str) -> Inferred | None:
        if folder is None or not folder.is_folder or operation not in folder.permits:
            return None
        return self._asked(operation, f"{folder.path.rstrip('/')}/{name}")

    def _asked(self, operation: Operation, path: str) -> Inferred | None:
        decision = self._rules.decide(operation, path)
        if decision.action is not Action.DENY:
            return None
        return Inferred(operation, path, decision.rule)

    def shown(self, found: Inferred) -> tuple[str, str]:
        """Return the texts for a line, such as `read` and `~/.ssh/id_rsa`."""
        home = self._home.rstrip("/")
        is_at_home = bool(home) and found.path.startswith(f"{home}/")
        return found.operation.value, f"~{found.path[len(home) :]}" if is_at_home else found.path
