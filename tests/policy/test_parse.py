"""What a policy file may say, and what is said about one that is wrong."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.request import Action, Operation, TargetType, Via
from sigwrap.policy.judge.rules import PidRange, ProcessPattern
from sigwrap.policy.language.parse import MAX_BASES
from sigwrap.policy.problems import InvalidPolicy
from sigwrap.policy.tools.show import policy_text
from tests.policy.conftest import MakeEngine, Parse

RULE = "command_rules:\n  - {name: r, commands: [x], decision: deny%s}\n"


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "5", "[]", "version: 2\nname: x\n"])
def test_what_is_no_policy_at_all_is_refused(parse: Parse, text: str) -> None:
    with pytest.raises(InvalidPolicy):
        parse(text)


def test_every_key_arrives(parse: Parse) -> None:
    policy = parse(
        """
version: 1
name: whole
unenforced: warn
description: everything
defaults: {command: audit, signal: absorb}
vars: {TOOLS: "${HOME}/tools", BIN: "${TOOLS}/bin"}
command_rules:
  - name: c
    description: why
    commands: ["${BIN}/*"]
    args_patterns: ["^${PROJECT_ROOT}/x.y"]
    subcommands: [push, ""]
    depth: {min: 1, max: 3}
    sha256: ["%s"]
    not_sha256: ["cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"]
    truncated: false
    traced: true
    decision: redirect
    message: "not for ${USER}"
    redirect_to:
      command: /bin/echo
      args: ["${MISSING:-no}"]
      append_args: true
      env: {GITHUB_TOKEN: "${SIGWRAP_HOST:GITHUB_TOKEN}"}
      via: stub
      record: true
    escalate: SIGPOLICY
signal_rules:
  - name: s
    signals: [TERM, 9, SIGRTMIN+2, "@job"]
    target: [children, {type: process, pattern: "postgres*"}, {type: pid_range, min: 1, max: 100}]
    decision: redirect
    redirect_to: SIGHUP
    fallback: audit
file_rules: [{name: f, paths: ["/x/**"], operations: [read], decision: deny}]
network_rules: [{name: n, destinations: ["*"], ports: [443], decision: approve, message: ask}]
env_policy: {remove: ["*_KEY"], keep: [API_KEY]}
limits: {max_depth: 8, wall_time: 2h, cpu_time: 90, memory: 512M}
watch: {loop: {same_exec: 25, within: 60s, action: stop}, drift: kill}
trust: {path_shadow: deny, boundary: kill}
tests: [{command: ls -l, decision: audit}, {signal: 9, target: children, decision: deny, rule: s}]
"""
        % ("AB" * 32)
    )
    rule = policy.command_rules[0]
    assert rule.commands == ("/home/user/tools/bin/*",)
    assert rule.args_patterns == ("^/project/app/x.y",)
    assert (rule.min_depth, rule.max_depth, rule.truncated, rule.traced) == (1, 3, False, True)
    assert rule.sha256 == {"ab" * 32}
    assert rule.not_sha256 == {"cd" * 32}
    assert rule.message == "not for user"
    assert rule.redirect_to is not None
    assert rule.redirect_to.args == ("no",)
    assert rule.redirect_to.env == (("GITHUB_TOKEN", "${SIGWRAP_HOST:GITHUB_TOKEN}"),)
    assert (rule.redirect_to.via, rule.redirect_to.record) == (Via.STUB, True)
    signal = policy.signal_rules[0]
    assert signal.signals == {15, 9, 36, 18, 19, 20, 21, 22}
    assert signal.targets == (
        TargetType.CHILDREN,
        ProcessPattern(glob="postgres*"),
        PidRange(minimum=1, maximum=100),
    )
    assert (signal.redirect_signal, signal.fallback) == (1, Action.AUDIT)
    (file,), (network,) = policy.file_rules, policy.network_rules
    assert (file.name, file.paths, file.operations) == ("f", ("/x/**",), (Operation.READ,))
    assert (file.decision, file.make_missing) == (Action.DENY, False)
    assert (network.name, network.destinations, network.ports) == ("n", ("*",), (443,))
    assert (network.decision, network.message) == (Action.APPROVE, "ask")
    assert (policy.default_command, policy.default_signal) == (Action.AUDIT, Action.ABSORB)
    assert (policy.limits.wall_time_s, policy.limits.memory_bytes) == (7200, 512 * 2**20)
    assert policy.watch.loop is not None and policy.watch.loop.within_s == 60
    assert policy.trust.path_shadow is Action.DENY
    assert len(policy.cases) == 2


def test_many_patterns_of_a_usual_size_are_fine(engine: MakeEngine) -> None:
    patterns = ", ".join(f"'^--an-option-of-some-length-{index}$'" for index in range(100))
    engine(RULE % f", args_patterns: [{patterns}]")


def test_an_empty_variable_takes_the_default(parse: Parse) -> None:
    policy = parse(
        "version: 1\nname: x\nvars: {EMPTY: ''}\n" + RULE % ", message: 'a${EMPTY}b${EMPTY:-c}'"
    )
    assert policy.command_rules[0].message == "abc"


def test_a_value_put_into_a_pattern_is_taken_literally(parse: Parse) -> None:
    policy = parse(
        "version: 1\nname: x\nvars: {ODD: 'a.b*[c]'}\ncommand_rules:\n"
        "  - {name: r, commands: ['/${ODD}/*'], args_patterns: ['^${ODD}$'], decision: deny}\n"
    )
    assert policy.command_rules[0].commands == ("/a.b[*][[]c]/*",)
    assert policy.command_rules[0].args_patterns == (r"^a\.b\*\[c\]$",)


def test_own_rules_go_before_those_of_the_base_and_other_keys_replace_its_keys(
    parse: Parse,
) -> None:
    base = """
version: 1
name: base
defaults: {command: audit, signal: audit}
vars: {WHERE: /base, OTHER: /other}
command_rules: [{name: b, commands: ["${WHERE}/x", "${OTHER}/x"], decision: deny}]
limits: {max_depth: 8, max_execs: 100}
tests: [{command: x, decision: deny}]
"""
    policy = parse(
        "version: 1\nname: child\nextends: base\nvars: {WHERE: /child}\n"
        "defaults: {command: deny}\nlimits: {max_depth: 4}\n"
        "command_rules: [{name: c, commands: ['${OTHER}/y'], decision: allow}]\n",
        {"base": base},
    )
    assert [each.name for each in policy.command_rules] == ["c", "b"]
    assert policy.command_rules[0].commands == ("/other/y",)
    assert policy.command_rules[1].commands == ("/child/x", "/other/x")
    assert (policy.default_command, policy.default_signal) == (Action.DENY, Action.AUDIT)
    assert (policy.limits.max_depth, policy.limits.max_execs) == (4, 100)
    assert policy.bases == ("base",)
    assert policy.cases == ()


def test_a_name_leads_to_one_rule(parse: Parse) -> None:
    base = "version: 1\nname: b\ncommand_rules: [{name: r, commands: [x], decision: deny}]\n"
    with pytest.raises(InvalidPolicy, match="another rule here or in the base has this name"):
        parse(base + "extends: b\n", {"b": base})


def test_a_circle_of_extends_is_refused(parse: Parse) -> None:
    a = "version: 1\nname: a\nextends: b\n"
    b = "version: 1\nname: b\nextends: a\n"
    with pytest.raises(InvalidPolicy, match=r"a circle of extends: policy.yaml → b → a → b"):
        parse(a, {"a": a, "b": b})


def test_a_chain_of_extends_has_an_end(parse: Parse) -> None:
    bases = {f"b{i}": f"version: 1\nname: b{i}\nextends: b{i + 1}\n" for i in range(1, MAX_BASES)}
    bases[f"b{MAX_BASES}"] = f"version: 1\nname: b{MAX_BASES}\n"
    first = "version: 1\nname: x\nextends: b1\n"
    assert parse(first, bases).bases == tuple(bases)
    bases[f"b{MAX_BASES}"] += "extends: last\n"
    with pytest.raises(InvalidPolicy, match=f"more than {MAX_BASES} policies extend one another"):
        parse(first, {**bases, "last": "version: 1\nname: last\n"})


def test_mistakes_of_a_base_are_reported_with_its_own(parse: Parse) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse("version: 1\nname: x\nextends: b\nz: 1\n", {"b": "version: 1\nname: b\ny: 1\n"})
    assert {each.place.file for each in caught.value.problems} == {"policy.yaml", "b"}


def test_what_an_older_policy_says_of_keys_that_were_not_enforced_then_still_loads(
    parse: Parse,
) -> None:
    for word in ("warn", "error"):
        policy = parse(f"version: 1\nname: x\nunenforced: {word}\nnetwork_rules: []\n")
        assert policy.warnings == ()
        assert policy.tolerates_old_kernels is (word == "warn")
        assert parse(policy_text(policy)).tolerates_old_kernels is (word == "warn")


def test_at_fork_is_shown_and_loads_again(parse: Parse) -> None:
    text = "version: 1\nname: x\nlimits: {at_fork: true, max_processes: 5}\n"
    policy = parse(text)
    assert policy.limits.hold_at_forks
    assert parse(policy_text(policy)).limits == policy.limits
    assert not parse("version: 1\nname: x\nlimits: {at_fork: true}\n").limits.hold_at_forks


def test_whether_programs_may_mount_is_inherited_shown_and_loads_again(parse: Parse) -> None:
    assert parse("version: 1\nname: x\n").session.mounts is None
    for word, mounts in (("true", True), ("false", False)):
        policy = parse(f"version: 1\nname: x\nsession: {{mounts: {word}}}\n")
        assert policy.session.mounts is mounts
        assert parse(policy_text(policy)).session.mounts is mounts


def test_what_escalates_is_in_the_log(parse: Parse) -> None:
    """An unlogged signal may not even be noticed."""
    rule = "{name: r, signals: [SIGURG], decision: allow, log: false, escalate: SIGPOLICY}"
    with pytest.raises(InvalidPolicy, match="what a rule escalates can't stay out of the log"):
        parse(f"version: 1\nname: x\nsignal_rules:\n  - {rule}\n")
