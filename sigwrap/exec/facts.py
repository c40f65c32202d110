"""What an exec is judged by, how its events and approval requests show that, and retries."""

from __future__ import annotations

import errno

from sigwrap.approve.requests import Answer, ApprovalRequest, command_line
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
    """Why sigwrap cannot read the arguments or files of an exec."""

    reason: str
    errno: int = errno.EACCES
    rule: str = "builtin:unreadable"


NOT_DUMPABLE = Unseen("sigwrap may not read the caller: it, or its program file, is not readable")
UNMAPPED = Unseen("its arguments point to unmapped memory", errno.EFAULT)


def stalled(reason: str) -> Unseen:
    """Return the facts of an exec that could block the supervisor."""
    return Unseen(reason, rule="builtin:stalled")


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


# Approval requests

# The fields of the event that a policy decides by.
_REQUEST_FIELDS = (
    *("path", "argv", "cwd", "depth", "truncated", "traced", "programs", "here"),
    *("masked", "elsewhere", "shadows"),
)
_CHANGED = "it changed after the request: check it again"
_NO_ARGUMENTS = "it has no arguments, not even a name"
_NOT_READ = "it has more arguments than sigwrap reads: the rest is unknown"
_NOT_OURS = "its paths may be other files than yours (another root, mount namespace or mount)"
_NO_VARIABLES = "its environment is unknown and may load any code"
_LOADS = "its environment loads code that may change: it can be approved once only"
_LONG_FOLDER = "the path of its directory is too long to show"
_LONG_FILE = "the path of its file is too long to show"


class Location(NamedTuple):
    folder: str  # the path of the directory; empty if that is too long
    identity: str  # of the root and the directory, since a path does not identify either
    is_ours: bool  # sigwrap finds the directory at its path
    traced: bool = False  # a process other than sigwrap traces the caller


UNKNOWN_LOCATION = Location("", "", False)


class Basis(NamedTuple):
    """What an approval rests on besides the facts."""

    location: Location
    content: tuple[str, ...]  # a text for each file; empty if one cannot be read
    loaded: tuple[str, ...] | None = ()  # variables that load code; None if they cannot be read
    environment: str = ""  # a digest of all variables; empty if they cannot be read


def approval_request(
    facts: ExecFacts, basis: Basis, decision: Decision, *, asked_before: bool
) -> ApprovalRequest:
    main, location, loaded = facts.programs[0], basis.location, basis.loaded
    # Each of these can change without a change of the key, so it is approved once only.
    doubts = {
        _NOT_READ: facts.truncated,
        # A new root or directory can get the inode numbers of an earlier one.
        _NOT_OURS: not location.is_ours or any(each.elsewhere for each in facts.programs),
        _NO_VARIABLES: loaded is None,
        _LOADS: bool(loaded),
        _LONG_FOLDER: bool(location.identity) and not location.folder,
        _LONG_FILE: not all(each.path_is_told for each in facts.programs),
    }
    notes = [_CHANGED] * asked_before + [_NO_ARGUMENTS] * (main.argv in ((), ("",)))
    notes += [note for note, holds in doubts.items() if holds]
    notes += [f"it shadows {decision.shadows}"] if decision.shadows else []
    # Other wrapped commands are judged when the wrapper executes them.
    programs = facts.here if facts.script_wraps is None else (*facts.here, facts.script_wraps)
    notes += [f"{each.path} is not there" for each in programs if each.missing]
    words = _interpreter_argv(facts)
    key = (
        "exec",
        *command_key(facts, decision),
        *("", *words),
        *("", location.folder, location.identity, *basis.content),
    )
    payload = exec_payload(facts, decision, verified=False)
    return ApprovalRequest(
        kind="exec",
        pid=facts.process.pid,
        process=facts.process.stub_of or facts.process.comm,
        depth=facts.process.depth,
        # The approver sees everything: what looks like a secret may be the command.
        what=shell_words(main.argv or ("",)),  # as Linux passes it on
        rule=decision.rule,
        message=decision.message,
        key=() if any(doubts.values()) else key,
        files=tuple(dict.fromkeys(each.path for each in programs if not each.missing)),
        runs=shell_words(words),
        loads=shell_words(loaded or ()),
        folder=location.folder,
        note="; ".join(notes),
        masked=shell_words(masked(main.argv)),
        # The rest of a script's first line is one argument with many words.
        masked_runs=shell_words(" ".join(masked(word.split(" "))) for word in masked(words)),
        masked_loads=shell_words(masked(loaded or ())),
        exec_payload={name: payload[name] for name in _REQUEST_FIELDS if name in payload},
    )


def command_key(facts: ExecFacts, decision: Decision) -> tuple[str, ...]:
    main = facts.programs[0]
    return (decision.rule, main.path, *main.argv)


def _interpreter_argv(facts: ExecFacts) -> tuple[str, ...]:
    """Return the arguments of a script's interpreter. The script's first line can add some."""
    return facts.programs[len(facts.scripts)].argv if facts.scripts else ()


def is_unchanged(before: ExecFacts, basis: Basis, now: ExecFacts, basis_now: Basis) -> bool:
    """Return whether an approval of the exec before covers the one now.

    Variables may have changed, apart from those that the approver was shown.
    """
    return (
        bool(basis.location.identity)
        and basis._replace(environment="") == basis_now._replace(environment="")
        and _shown(before) == _shown(now)
    )


def _shown(facts: ExecFacts) -> tuple[object, ...]:
    called = facts.path, facts.cwd, facts.truncated, facts.readable
    return *called, _interpreter_argv(facts), [_identity(each) for each in facts.programs]


def _identity(program: Program) -> tuple[str, str, tuple[str, ...], bool]:
    return program.path, program.name, program.argv, program.elsewhere


class ApprovedScript(NamedTuple):
    """A running script that was approved. This covers the exec that its interpreter makes next."""

    answer: Answer
    rule: str
    scripts: tuple[str, ...]
    wraps: Program  # the command that its interpreter executes
    basis: Basis  # its content: the scripts, the interpreter, and the command that this executes

    def executes(self, facts: ExecFacts, rule: str) -> bool:
        """Return whether the exec may be that one."""
        return (
            rule == self.rule
            and self.basis.location.folder in (facts.cwd, "")  # too long; its identity is compared
            and facts.readable
            and not facts.truncated
            and _identity(facts.programs[0]) == _identity(self.wraps)
        )

    def covers(self, basis: Basis) -> bool:
        """Return whether this is the basis of that exec, followed by the scripts' content."""
        count, approved = len(self.scripts), self.basis
        return (
            basis.location == approved.location
            and basis.content[-count:] == approved.content[:count]
            and set(basis.content[:-count]).issubset(approved.content[count + 1 :])
            and basis.environment == approved.environment != ""
        )


# Retries

_PROCESSES_KEPT = 1_000
_FOLDERS_KEPT = 64


class Retries:
    """Denied execs that repeat one in the next directory of PATH, as a shell does after EACCES for
    /usr/bin/X: it tries /bin/X."""

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
