"""What an exec is judged by, how its events and lines show that, and which denials are retries."""

from __future__ import annotations

import errno

from sigwrap.approve.requests import command_line
from sigwrap.bare import NamedTuple
from sigwrap.events import Payload, text
from sigwrap.policy.judge.engine import is_system_file
from sigwrap.policy.judge.match import too_long_to_match
from sigwrap.policy.judge.request import (
    Action,
    AskedFact,
    CommandRequest,
    Decision,
    Program,
    answer_of,
)
from sigwrap.policy.judge.rules import Crowd
from sigwrap.policy.judge.signals import signal_name
from sigwrap.policy.judge.system_folders import may_be_the_systems
from sigwrap.session.lineage import Process
from sigwrap.text import masked, shell_words

_NOT_DUMPABLE = "sigwrap may not read the caller: it, or its program file, is not readable"
_NOWHERE = "its arguments point to unmapped memory"


class ExecFacts(NamedTuple):
    process: Process
    syscall: str
    path: str  # as the caller wrote it
    cwd: str
    truncated: bool  # its arguments are longer than sigwrap reads
    programs: tuple[Program, ...]  # the file, its interpreters, and wrapped commands
    here: tuple[Program, ...]  # programs that this exec runs itself
    readable: bool  # sigwrap may read the files, so it can verify them
    crowd: Crowd
    stub_rule: str | None  # the rule that allowed a stub's command
    scripts: tuple[str, ...] = ()  # the file and interpreters that are scripts, as called
    script_wraps: Program | None = None  # the only command that their interpreter executes


class Unseen(NamedTuple):
    """An exec whose arguments or files sigwrap cannot read."""

    process: Process
    syscall: str
    reason: str
    errno: int
    rule: str = "builtin:unreadable"


def not_dumpable(process: Process, syscall: str) -> Unseen:
    return Unseen(process, syscall, _NOT_DUMPABLE, errno.EACCES)


def pointing_nowhere(process: Process, syscall: str) -> Unseen:
    return Unseen(process, syscall, _NOWHERE, errno.EFAULT)


def stalled(process: Process, syscall: str, reason: str) -> Unseen:
    """Return the facts of an exec that could block the supervisor."""
    return Unseen(process, syscall, reason, errno.EACCES, "builtin:stalled")


def subject_of(facts: ExecFacts, *, traced: bool) -> CommandRequest:
    depth = facts.process.depth
    return CommandRequest(facts.programs, depth, facts.truncated, traced, facts.cwd)


def line_of(facts: ExecFacts) -> str:
    """Return the command line to show, with the typed path or else the program's real name.

    The caller can write anything into argv[0]. A typed path may be a link, or relative.
    """
    main = facts.programs[0]
    arguments = shell_words(masked(main.argv)[1:])
    if "/" in facts.path and main.argv[:1] == (facts.path,):
        return command_line(facts.path, arguments, main.path.rpartition("/")[2])
    return command_line(main.name, arguments, main.name)


# Events

# The fields that a policy decides by.
_REQUEST_FIELDS = (
    *("path", "argv", "cwd", "depth", "truncated", "traced", "programs", "here"),
    *("masked", "elsewhere", "shadows"),
)


def exec_payload(
    facts: ExecFacts, decision: Decision, *, verified: bool, traced: bool = False
) -> Payload:
    """Return the fields of an exec event.

    The event comes before the exec: `verified` says that sigwrap will verify it. A later event
    reports if that fails.
    """
    main = facts.programs[0]
    argv = masked(main.argv)
    words = [argv if each.argv is main.argv else masked(each.argv) for each in facts.programs]
    payload: Payload = {
        "path": facts.path or main.path,
        "argv": argv,
        "cwd": facts.cwd,
        "comm": facts.process.stub_of or facts.process.comm,
        "ppid": facts.process.ppid,
        "depth": facts.process.depth,
        "decision": decision.action.value,
        "rule_name": decision.rule,
        "reason": decision.reason,
        "syscall": facts.syscall,
        "truncated": facts.truncated
        or any(too_long_to_match(each.argv) for each in facts.programs),
        "traced": traced or not facts.readable,
        "verified": verified,
    }
    if decision.action is not Action.ALLOW and decision.message not in ("", decision.reason):
        payload["message"] = decision.message
    if (above := nearest_that_ran(facts.process.parent)) not in (0, facts.process.ppid):
        payload["below"] = above
    found = list(map(_findings, facts.programs))
    if len(facts.programs) > 1 or main.path != payload["path"] or found[0]:
        payload["programs"] = [
            {"path": each.path, "name": each.name, "argv": shown, **more}
            for each, shown, more in zip(facts.programs, words, found, strict=True)
        ]
        if len(facts.here) < len(facts.programs):
            payload["here"] = len(facts.here)
    if any(shown != each.argv for each, shown in zip(facts.programs, words, strict=True)):
        payload["masked"] = True
    if any(each.elsewhere for each in facts.programs):
        payload["elsewhere"] = True
    if any(facts.crowd):
        payload["siblings"], payload["processes"] = facts.crowd
    if facts.stub_rule is not None:
        payload["stub"] = True
    if decision.shadows:
        payload["shadows"] = decision.shadows
    return payload


def request_of(facts: ExecFacts, decision: Decision) -> Payload:
    """Return the fields that an approval request shows."""
    payload = exec_payload(facts, decision, verified=False)
    return {name: payload[name] for name in _REQUEST_FIELDS if name in payload}


def nearest_that_ran(process: Process | None) -> int:
    """Return the pid of the process or its nearest ancestor that has executed something, or 0."""
    while process is not None and not process.argv:
        process = process.parent
    return 0 if process is None else process.pid


def _findings(program: Program) -> Payload:
    """Return the facts that rules asked for, so that judge/recorded.py can repeat the decision."""
    found: Payload = {}
    is_own_name = program.path.endswith(f"/{program.name}") or not program.path
    system_file = answer_of(program.system_file)
    if program.counts_by_name:
        found["counts_by_name"] = True
    elif not is_own_name:
        system_file = is_system_file(program)
        found["system_file"] = system_file
    if system_file not in (None, may_be_the_systems(program.path)):
        found["system_file"] = system_file
    if answer_of(program.loads_code):
        found["loads_code"] = True
    if isinstance(program.sha256, AskedFact) and program.sha256.answer is not None:
        found["sha256"] = program.sha256.answer
    if program.elsewhere:
        found["elsewhere"] = True
    if program.shadows:
        found["shadows"] = program.shadows
        found["found"] = program.found
    if program.missing:
        found["missing"] = True
    return found


def exit_payload(ppid: int, comm: str, depth: int, code: int | None, killer: int | None) -> Payload:
    """Return the fields. Of `code` and `killer`, a signal, one is set, or neither if unknown."""
    return {
        "ppid": ppid,
        "comm": comm,
        "depth": depth,
        "exit_code": code,
        "signal": killer,
        "signal_name": None if killer is None else signal_name(killer),
    }


# Denied execs that repeat one in the next directory of PATH, as a shell does after EACCES for
# /usr/bin/X: it tries /bin/X.

_PROCESSES_KEPT = 1_000
_FOLDERS_KEPT = 64


class Retries:
    def __init__(self) -> None:
        self._denied: dict[Process, tuple[object, set[str]]] = {}

    def is_one(self, process: Process, denied: Payload) -> bool:
        """Return whether the process asked before for the same words in another directory."""
        folder, _, name = text(denied.get("path")).rpartition("/")
        what = denied.get("argv"), denied.get("rule_name"), name
        before, folders = self._denied.get(process, (None, set[str]()))
        if before == what and folder not in folders and len(folders) < _FOLDERS_KEPT:
            folders.add(folder)
            return True
        self._denied[process] = what, {folder}
        if len(self._denied) > _PROCESSES_KEPT:
            del self._denied[next(iter(self._denied))]
        return False
