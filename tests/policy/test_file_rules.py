"""The language of rules on files, and what tools say of them."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.request import Action, Operation
from sigwrap.policy.problems import InvalidPolicy
from sigwrap.policy.tools.cases import run_cases
from sigwrap.policy.tools.explain import explain_file, explanation_text
from tests.policy.conftest import Parse

HEAD = "version: 1\nname: x\n"


def policy_of(*rules: str, more: str = "") -> str:
    return f"{HEAD}{more}file_rules:\n" + "".join(f"  - {{{each}}}\n" for each in rules)


SECRETS = "name: secrets, paths: [/home/me/.ssh], operations: [read], decision: deny"
MINE = "name: mine, paths: [/mine/**], operations: [write, create, delete], decision: allow"
REST = "name: rest, paths: [/**], operations: [write, create, delete], decision: deny"


def test_mounts_and_denials_exclude_each_other(parse: Parse) -> None:
    mounts = "session: {mounts: true}\n"
    with pytest.raises(InvalidPolicy, match="forbid all mounts"):
        parse(policy_of(SECRETS, more=mounts))
    base = {"base": policy_of(SECRETS).replace("name: x", "name: base")}
    with pytest.raises(InvalidPolicy, match=r"policy\.yaml:4.*forbid all mounts"):
        parse(f"{HEAD}extends: base\n{mounts}", base)
    base = {"base": f"{HEAD}{mounts}".replace("name: x", "name: base")}
    with pytest.raises(InvalidPolicy, match=r"policy\.yaml:4.*forbid all mounts"):
        parse(f"{HEAD}extends: base\ndefaults: {{file: deny}}\n", base)
    free = "name: free, paths: [/**], operations: [read], decision: allow"
    assert parse(policy_of(free, SECRETS, more=mounts)).session.mounts is True


def test_who_goes_without_on_an_older_kernel_says_so_and_is_inherited(parse: Parse) -> None:
    lenient = {"base": f"{HEAD}unenforced: warn\n".replace("name: x", "name: base")}
    assert not parse(HEAD).tolerates_old_kernels
    assert parse(f"{HEAD}extends: base\n", lenient).tolerates_old_kernels
    assert not parse(f"{HEAD}extends: base\nunenforced: error\n", lenient).tolerates_old_kernels


def test_paths_of_cases_begin_where_others_do(parse: Parse) -> None:
    rule = "name: r, paths: [~/x, ./y], operations: [read], decision: deny"
    cases = "".join(
        f"  - {{file: {path}, operation: read, decision: deny, rule: r}}\n"
        for path in ("~/x", "y", "./y")
    )
    results = list(run_cases(Engine(parse(f"{policy_of(rule)}tests:\n{cases}"))))
    assert [each.passed for each in results] == [True, True, True]


def test_cases_are_decided_as_the_kernel_would(parse: Parse) -> None:
    cases = [
        "file: /home/me/.ssh/id, operation: read, decision: deny, rule: secrets",
        "file: /home/me/x, operation: read, decision: allow, rule: 'builtin:default'",
        "file: /mine/x, operation: create, decision: allow, rule: mine",
        "file: /mine, operation: delete, decision: deny, rule: 'builtin:parted'",
        "file: /mine/x, operation: read, decision: deny",
    ]
    text = policy_of(SECRETS, MINE, REST) + "tests:\n" + "".join(f"  - {{{c}}}\n" for c in cases)
    results = list(run_cases(Engine(parse(text))))
    assert [each.passed for each in results] == [True, True, True, True, False]
    wrong = "read /mine/x: FAILED: expected deny, got allow by builtin:default"
    assert str(results[-1]).endswith(wrong)


NOT_HERE = "name: no, paths: [/no], operations: [write], decision: deny"
AUDITED = "name: rest, paths: [/**], operations: [write, create, delete], decision: audit"


def test_what_is_audited_is_allowed_and_said(parse: Parse) -> None:
    policy = parse(policy_of(NOT_HERE, AUDITED))
    files = FileRules.of(policy)
    assert files.audits and files.audited == {Operation.WRITE, Operation.CREATE, Operation.DELETE}
    assert files.decide(Operation.WRITE, "/x").action is Action.AUDIT
    assert files.decide(Operation.WRITE, "/no/x").action is Action.DENY
    assert files.decide(Operation.READ, "/x").action is Action.ALLOW
    assert files.restricted == {Operation.WRITE, Operation.CREATE}
    allowed = FileRules.of(parse(policy_of(NOT_HERE, AUDITED.replace("audit", "allow"))))
    names = {"/": [("no", True), ("x", True)]}
    assert list(files.sandbox_rules(names.get)) == list(allowed.sandbox_rules(names.get))
    assert not allowed.audits


@pytest.mark.parametrize(
    ("operation", "path", "exists", "said"),
    [
        (Operation.READ, "/home/me/.ssh/id", True, "deny\n  Why: rule secrets matches"),
        (Operation.READ, "/usr/x", True, "allow\n  Why: no file rule of x matches"),
        (Operation.READ, "/home/me/x", True, "Rules deny read for other files in /home/me, so"),
        (Operation.READ, "/home/me/x", False, "only for files that exist when the command starts"),
        (Operation.WRITE, "/mine/x", False, "allow\n  Why: rule mine matches"),
        (Operation.CREATE, "/home/me/x", False, "rule rest matches"),
        (Operation.DELETE, "/mine", True, "rule rest denies part of /, so no file"),
        (Operation.EXECUTE, "/home/me/.ssh/id", True, "deny\n  Why: rule secrets matches"),
    ],
)
def test_explained(parse: Parse, operation: Operation, path: str, exists: bool, said: str) -> None:
    engine = Engine(parse(policy_of(SECRETS, MINE, REST)))
    explained = explain_file(engine, engine.files, operation, path, path, exists=exists)
    text = explanation_text(explained)
    assert text.startswith(f"{operation.value} {path}: ")
    assert said in text


def test_an_absent_file_is_explained_as_its_test_decides(parse: Parse) -> None:
    """Rules as a run enforces them leave out a denied file that does not exist."""
    secret, new = "/home/me/.ssh/id", "/home/me/.ssh/new"
    cases = f"tests:\n  - {{file: {secret}, operation: read, decision: deny, rule: secrets}}\n"
    engine = Engine(parse(policy_of(SECRETS) + cases))
    on_disk = FileRules.of(parse(HEAD))
    for operation, path in ((Operation.READ, secret), (Operation.CREATE, new)):
        by_test = engine.files.decide(operation, path)
        found = explain_file(engine, on_disk, operation, path, path, exists=False)
        assert found.decision == by_test
        said = "A command that starts now gets allow" in explanation_text(found)
        assert said is (by_test.action is Action.DENY)
    assert [each.passed for each in run_cases(engine)] == [True]
    existing = explain_file(engine, on_disk, Operation.READ, secret, secret, exists=True)
    assert existing.decision.action is Action.ALLOW
