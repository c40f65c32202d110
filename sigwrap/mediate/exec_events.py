"""The events of an exec."""

from __future__ import annotations

import errno

from sigwrap.events import Payload
from sigwrap.mediate.effects import Record
from sigwrap.mediate.exec_facts import ExecFacts
from sigwrap.mediate.masking import masked
from sigwrap.policy.judge.engine import is_system_file
from sigwrap.policy.judge.request import Decision, Program


def exec_payload(
    facts: ExecFacts, decision: Decision, *, verified: bool, traced: bool = False
) -> Payload:
    """`verified`: that it will be; the event comes first. If that fails, another one says so."""
    main = facts.programs[0]
    argv = masked(main.argv)
    payload: Payload = {
        "path": facts.path or main.path,
        "argv": argv,
        "cwd": facts.cwd,
        "comm": facts.process.comm,
        "ppid": facts.process.ppid,
        "depth": facts.process.depth,
        "decision": decision.action.value,
        "rule_name": decision.rule,
        "reason": decision.reason,
        "syscall": facts.syscall,
        "truncated": facts.truncated,
        "traced": traced or not facts.readable,
        "verified": verified,
    }
    if len(facts.programs) > 1 or main.path != payload["path"]:
        payload["programs"] = [
            {
                "path": each.path,
                "name": each.name,
                "argv": argv if each.argv is main.argv else masked(each.argv),
                **_whose_name_counts(each),
            }
            for each in facts.programs
        ]
    if any(each.elsewhere for each in facts.programs):
        payload["elsewhere"] = True
    if decision.shadows:
        payload["shadows"] = decision.shadows
    return payload


def _whose_name_counts(program: Program) -> Payload:
    """What a replay has to know of a name that is not the file's own."""
    if program.counts_by_name:
        return {"counts_by_name": True}
    if program.path.endswith(f"/{program.name}"):
        return {}
    return {"system_file": is_system_file(program)}


def exec_failed(path: str, rule: str, error: int) -> Record:
    name = errno.errorcode.get(error, str(error))
    return Record("exec_failed", {"path": path, "error": name, "rule_name": rule})
