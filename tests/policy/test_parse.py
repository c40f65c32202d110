"""What a policy file may say, and what is said about one that is wrong."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.request import Action
from sigwrap.policy.language.parse import MAX_BASES
from sigwrap.policy.problems import InvalidPolicy
from tests.policy.conftest import MakeEngine, Parse

RULE = "command_rules:\n  - {name: r, commands: [x], decision: deny%s}\n"


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "5", "[]", "version: 2\nname: x\n"])
def test_what_is_no_policy_at_all_is_refused(parse: Parse, text: str) -> None:
    with pytest.raises(InvalidPolicy):
        parse(text)


def test_values_arrive_as_they_are_meant(parse: Parse) -> None:
    """That each key arrives, test_show.py says."""
    policy = parse(
        """
version: 1
name: x
vars: {TOOLS: "${HOME}/tools", BIN: "${TOOLS}/bin"}
command_rules:
  - name: c
    commands: ["${BIN}/*"]
    args_patterns: ["^${PROJECT_ROOT}/x.y"]
    sha256: ["%s"]
    decision: redirect
    message: "not for ${USER}"
    redirect_to: {command: /bin/echo, args: ["${MISSING:-no}"]}
signal_rules:
  - {name: s, signals: [TERM, 9, SIGRTMIN+2, "@job"], decision: allow}
on: {loop: {same_exec: 25, within: 2m}}
"""
        % ("AB" * 32)
    )
    rule = policy.command_rules[0]
    assert rule.commands == ("/home/user/tools/bin/*",)
    assert rule.args_patterns == ("^/project/app/x.y",)
    assert rule.sha256 == {"ab" * 32}
    assert rule.message == "not for user"
    assert rule.redirect_to is not None and rule.redirect_to.args == ("no",)
    assert policy.signal_rules[0].signals == {15, 9, 36, 18, 19, 20, 21, 22}
    assert policy.watch.loop is not None and policy.watch.loop.within_s == 120


def test_many_patterns_of_a_usual_size_are_fine(engine: MakeEngine) -> None:
    patterns = ", ".join(f"'^--an-option-of-some-length-{index}$'" for index in range(100))
    engine(RULE % f", args_patterns: [{patterns}]")


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
    with pytest.raises(InvalidPolicy, match="rule name already used, here or in a base"):
        parse(base + "extends: b\n", {"b": base})


def test_a_circle_of_extends_is_refused(parse: Parse) -> None:
    a = "version: 1\nname: a\nextends: b\n"
    b = "version: 1\nname: b\nextends: a\n"
    with pytest.raises(InvalidPolicy, match=r"circular extends \(policy.yaml → b → a → b\)"):
        parse(a, {"a": a, "b": b})


def test_a_chain_of_extends_has_an_end(parse: Parse) -> None:
    bases = {f"b{i}": f"version: 1\nname: b{i}\nextends: b{i + 1}\n" for i in range(1, MAX_BASES)}
    bases[f"b{MAX_BASES}"] = f"version: 1\nname: b{MAX_BASES}\n"
    first = "version: 1\nname: x\nextends: b1\n"
    assert parse(first, bases).bases == tuple(bases)
    bases[f"b{MAX_BASES}"] += "extends: last\n"
    with pytest.raises(InvalidPolicy, match=f"more than {MAX_BASES} policies extend each other"):
        parse(first, {**bases, "last": "version: 1\nname: last\n"})


def test_mistakes_of_a_base_are_reported_with_its_own(parse: Parse) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse("version: 1\nname: x\nextends: b\nz: 1\n", {"b": "version: 1\nname: b\ny: 1\n"})
    assert {each.place.file for each in caught.value.problems} == {"policy.yaml", "b"}


def test_what_escalates_is_in_the_log(parse: Parse) -> None:
    """An unlogged signal may not even be noticed."""
    rule = "{name: r, signals: [SIGURG], decision: allow, log: false, escalate: SIGPOLICY}"
    with pytest.raises(InvalidPolicy, match="log: false cannot be combined with escalate"):
        parse(f"version: 1\nname: x\nsignal_rules:\n  - {rule}\n")
