"""Why something may be done with a file, or not: the rule that decides, and how far that goes."""

from __future__ import annotations

from collections.abc import Iterator

from sigwrap.policy.judge.files import CGROUP_RULE, IN_A_FOLDER, FileRules
from sigwrap.policy.judge.layers import Compiled, always, held_back
from sigwrap.policy.judge.request import Action, Operation
from sigwrap.policy.judge.rules import FileRule, Policy
from sigwrap.policy.tools.explain import Explanation, Judgement, Passed, why_not_weaker

_IS_DONE = {
    Operation.READ: "read",
    Operation.WRITE: "written",
    Operation.CREATE: "created",
    Operation.DELETE: "deleted",
    Operation.EXECUTE: "executed",
}
_CGROUPS = "through cgroup files, a process can stop and kill other processes"


def explain_file(
    policy: Policy, files: FileRules, operation: Operation, path: str, *, exists: bool
) -> Explanation:
    """`files` has the policy's rules as they lie on this disk, and `path` is where it really is."""
    decision = files.decide(operation, path)
    is_of_cgroups = decision.rule == CGROUP_RULE
    if is_of_cgroups:
        decision = decision._replace(reason=_CGROUPS)
    # The kernel reads what it executes.
    asked = (operation, Operation.READ) if operation is Operation.EXECUTE else (operation,)
    about = [rule for rule in policy.file_rules if not set(asked).isdisjoint(rule.operations)]
    decided_by = next((rule for rule in about if rule.name == decision.rule), None)
    before = about[: about.index(decided_by)] if decided_by else about
    if is_of_cgroups:
        before = []
    matching = held_back(files.rules_about(operation, path), always)
    held = {own.rule.name: base for own, base in matching}
    judgement = Judgement(
        what=f"{operation.value} {path}",
        answer=decision,
        decision=decision,
        decided_at=decided_by.place if decided_by else None,
        description=decided_by.description if decided_by else "",
        passed=tuple(_passed(rule, held.get(rule.name), exists=exists) for rule in before),
        nobody_asked=False,
        runs_instead=(),
        shadows="",
        unrelated=len(policy.file_rules) - len(about),
        notes=tuple(_notes(files, operation, path, exists=exists))
        if decision.action is not Action.DENY
        else (),
    )
    return Explanation(decision=decision, judgements=(judgement,))


def _passed(rule: FileRule, base: Compiled | None, *, exists: bool) -> Passed:
    if base is not None:
        return Passed(rule=rule.name, place=rule.place, why=why_not_weaker(base))
    denies = rule.decision is Action.DENY and not exists
    why = "covers other files that exist at the start" if denies else "is for other files"
    return Passed(rule=rule.name, place=rule.place, why=why)


def _notes(files: FileRules, operation: Operation, path: str, *, exists: bool) -> Iterator[str]:
    folder = path.rpartition("/")[0] or "/"
    if operation in IN_A_FOLDER or files.holds_for_all(operation, folder):
        return
    if not exists:
        yield (
            f"It does not exist. Only some files in {folder} can be {_IS_DONE[operation]}: files "
            "that exist when the command starts."
        )
    else:
        yield (
            f"Only some files in {folder} can be {_IS_DONE[operation]}. A file that gets this name "
            "after the command started cannot."
        )
