"""The events of an exec."""

from __future__ import annotations

import errno

from sigwrap.events import Payload, text
from sigwrap.exec.facts import ExecFacts
from sigwrap.policy.judge.engine import is_system_file
from sigwrap.policy.judge.match import too_long_to_match
from sigwrap.policy.judge.request import Action, AskedFact, Decision, Program, answer_of
from sigwrap.policy.judge.signals import signal_name
from sigwrap.policy.judge.system_folders import may_be_the_systems
from sigwrap.session.effects import Record
from sigwrap.session.lineage import Process
from sigwrap.text import masked

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
        "truncated": facts.truncated or any(map(_is_too_long, facts.programs)),
        "traced": traced or not facts.readable,
        "verified": verified,
    }
    if decision.action is not Action.ALLOW and decision.message not in ("", decision.reason):
        payload["message"] = decision.message
    if (above := _nearest_that_ran(facts.process)) not in (0, facts.process.ppid):
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


def _nearest_that_ran(process: Process) -> int:
    """Return the pid of the nearest ancestor that has executed something, or 0."""
    above = process.parent
    while above is not None and not above.argv:
        above = above.parent
    return 0 if above is None else above.pid


def _is_too_long(program: Program) -> bool:
    return too_long_to_match(program.argv)


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


def exec_failed(path: str, rule: str, error: int) -> Record:
    name = errno.errorcode.get(error, str(error))
    return Record("exec_failed", {"path": path, "error": name, "rule_name": rule})


# The event of a process's end.


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
