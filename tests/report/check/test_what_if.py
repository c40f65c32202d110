"""Try another policy on a recorded session."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from sigwrap.events import Event, Payload
from sigwrap.network.judge import OutOfRules
from sigwrap.policy.judge.network import Direction, Endpoint, endpoint_of, packed_address
from sigwrap.policy.judge.request import Program
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.tools.draft import MOST_RULES_TOGETHER
from sigwrap.report.check.decisions import BUILT_IN, MASKED, NOT_RECORDED
from sigwrap.report.check.what_if import Outcome, WhatIf, WhatIfFold
from sigwrap.report.forms.what_if import what_if_json, what_if_md, what_if_text
from tests.report.check.mediated import (
    CHILD,
    NO,
    RULES,
    VARIABLES,
    YES,
    Mediated,
    everything,
    kill,
    program,
)

Mediate = Callable[[str], Mediated]
ALLOWS = "defaults: {command: allow}\n"


def fold_under(text: str) -> WhatIfFold:
    source = Source("other.yaml", f"version: 1\nname: other\n{text}")
    policy = parse_policy(source, variables=VARIABLES, find_base=lambda _name, _source: None)
    return WhatIfFold(policy)


def under(made: Mediated, text: str) -> WhatIf:
    fold = fold_under(text)
    for event in made.session.events():
        fold.add(event)
    return fold.result()


def kinds(found: WhatIf) -> list[tuple[str, str, str, str, str, int]]:
    return [
        (each.what, each.was.value, each.was_by, each.would_be.value, each.would_be_by, each.count)
        for each in found.differences
    ]


def test_under_the_same_policy_nothing_differs(made: Mediated) -> None:
    everything(made)
    found = under(made, RULES)
    assert (found.differ, found.differences, found.by_other_rule) == (0, (), 0)
    assert found.own > 5
    assert what_if_text(found).startswith(f"Under other, nothing would differ: {found.decisions} ")


def test_what_would_be_denied_comes_first_then_what_would_be_asked(made: Mediated) -> None:
    for _ in range(3):
        made.run(program("ls"))
    made.run(program("git", "push", "--force"))
    made.run(program("make"))
    made.run(program("make", "all"))
    made.run(program("npm", "test"), says=YES)
    made.run(program("npm", "ci"), says=NO)
    found = under(
        made,
        "command_rules:\n"
        "  - {name: no-lists, commands: [ls], decision: deny}\n"
        "  - {name: look, commands: [make], decision: approve}\n"
        "defaults: {command: allow}\n",
    )
    assert kinds(found) == [
        ("ls", "let through", "rest", "denied", "no-lists", 3),
        ("make", "let through", "rest", "asked", "look", 2),
        ("git push", "denied", "push", "let through", "builtin:default", 1),
        ("npm test", "asked", "ask", "let through", "builtin:default", 1),
        ("npm ci", "asked", "ask", "let through", "builtin:default", 1),
    ]
    assert [each.first_seq for each in found.differences][:2] == [2, 6]
    assert (found.decisions, found.differ) == (8, 8)
    text = what_if_text(found)
    assert text.index("Would be denied") < text.index("Would need approval")
    assert "  3 execs of ls by rule no-lists (was allowed by rest; first at event 2: ls)" in text
    [suggestion] = found.differences[0].rules
    assert suggestion.line in text
    allowed = under(
        made,
        f"command_rules:\n  {suggestion.line}\n"
        "  - {name: no-lists, commands: [ls], decision: deny}\n"
        "defaults: {command: allow}\n",
    )
    assert "ls" not in [each.what for each in allowed.differences]


ASKS = "command_rules:\n{rules}  - {{name: look, commands: [rm, sh], decision: approve}}\n"
ASKS += "defaults: {{command: allow}}\n"


def with_the_rules(made: Mediated, found: WhatIf) -> WhatIf:
    """Try a policy that has the proposed rules."""
    lines = [f"  {rule.line}\n" for each in found.differences for rule in each.rules]
    return under(made, ASKS.format(rules="".join(lines)))


def test_the_rules_are_for_every_command_line_of_a_group(made: Mediated) -> None:
    for folder in ("/etc", "/root", "/usr", "/usr", "/usr"):
        made.run(program("rm", "-rf", folder))
    for script in ("a.sh", "b.sh"):
        made.run(program("sh", script))
    found = under(made, ASKS.format(rules=""))
    assert [(each.what, each.count, each.rules_for) for each in found.differences] == [
        ("rm", 5, 5),
        ("sh", 2, 2),
    ]
    assert [len(each.rules) for each in found.differences] == [3, 2]
    assert not with_the_rules(made, found).differences
    for form in (what_if_text(found), what_if_md(found)):
        assert 'args: ["-rf", "/etc"]' in form and 'args: ["-rf", "/usr"]' in form
        assert "# none for " not in form
    first = json.loads(what_if_json("s1", found))["differences"][0]
    assert (len(first["rules"]), first["rules_for"], first["why_not"]) == (3, 5, None)


def test_rules_that_are_for_some_only_or_for_none_say_so(mediated: Mediate) -> None:
    made = mediated(RULES.replace("max_execs: 50", "max_execs: 500"))
    for number in range(200):
        made.run(program("rm", f"-rf={number}"))
    made.run(program("rm", "x" * 5_000))
    found = under(made, ASKS.format(rules=""))
    [difference] = found.differences
    assert (difference.count, len(difference.rules)) == (201, MOST_RULES_TOGETHER)
    assert 0 < difference.rules_for < 201
    assert with_the_rules(made, found).differ == 201 - difference.rules_for
    said = f"# none for {201 - difference.rules_for} of the 201 execs of rm: more rules would be "
    for form in (what_if_text(found), what_if_md(found)):
        assert form.count(said) == 1
    [as_json] = json.loads(what_if_json("s1", found))["differences"]
    assert as_json["rules_for"] == difference.rules_for
    assert as_json["why_not"] == "more rules would be needed"
    made = mediated(RULES)
    made.run(program("rm", "x" * 5_000))
    found = under(made, ASKS.format(rules=""))
    said = "# none for 1 exec of rm: its arguments are too long for a rule"
    for form in (what_if_text(found), what_if_md(found)):
        assert said in form and "command_rules:" not in form


def test_what_was_tried_in_several_folders_of_path_is_one_request(made: Mediated) -> None:
    for folder in ("/usr/local/bin", "/usr/bin", "/bin"):  # as a shell searches PATH
        made.run(program("git", "push", path=f"{folder}/git"))
    found = under(made, ALLOWS)
    assert (found.decisions, found.differ) == (1, 1)
    assert kinds(found) == [("git push", "denied", "push", "let through", "builtin:default", 1)]
    found = under(made, "defaults: {command: deny}\n")
    assert (found.decisions, found.differ, found.by_other_rule) == (1, 0, 1)
    assert "1 decision would be the same by another rule" in what_if_text(found)


def test_limits_are_those_of_the_other_policy(made: Mediated) -> None:
    for _ in range(4):
        made.run(program("ls"))
    found = under(made, f"{ALLOWS}limits: {{max_execs: 3}}\n")
    assert kinds(found) == [("ls", "let through", "rest", "denied", "limits.max_execs", 1)]
    assert under(made, f"{ALLOWS}limits: {{max_depth: 1}}\n").differ == 0


def test_another_replacement_and_another_signal_differ(made: Mediated) -> None:
    made.run(program("cat", "x"))
    made.signal(kill(15, CHILD))
    other = RULES.replace("{command: echo}", "{command: head}").replace("INT}", "HUP}")
    assert [each.would_be for each in under(made, other).differences] == [Outcome.REPLACED] * 2
    found = under(made, "defaults: {command: allow, signal: deny}\n")
    assert [(each.kind, each.what) for each in found.differences] == [
        ("signal", "SIGTERM to children"),
        ("exec", "cat"),
    ]


def test_what_the_log_does_not_have_is_said(made: Mediated) -> None:
    made.run(program("ls"))
    made.run(program("aws", "--password=letmein"))
    for asks in ("loads_code: true", f"not_sha256: [{'b' * 64}]"):
        rule = f"{{name: x, commands: [ls], {asks}, decision: deny}}"
        found = under(made, f"command_rules: [{rule}]\n{ALLOWS}")
        assert (found.differ, found.doubtful) == (0, {NOT_RECORDED: 1, MASKED: 1})


def test_each_form_has_it_whatever_a_process_wrote(made: Mediated) -> None:
    hostile = "x\n## `|](http://x)\x1b[2J<b>\udce9"
    made.run(Program(f"/tmp/{hostile}", hostile, (hostile,)))
    found = under(made, "defaults: {command: deny}\n")
    document = json.loads(what_if_json("s1", found))
    assert (document["schema"], document["differ"]) == ("sigwrap.what-if/1", 1)
    assert document["differences"][0]["was"] == "let through"
    for text in (what_if_text(found), what_if_md(found)):
        assert all(line.isprintable() for line in text.splitlines())
        assert "\n## `" not in text and "\n`" not in text.replace("\n```", "")


def test_of_too_many_kinds_only_the_number_is_known() -> None:
    fold = fold_under("defaults: {command: deny}")
    for seq in range(1, 1_101):
        payload = {"argv": [f"c{seq}"], "decision": "allow", "rule_name": "x"}
        fold.add(Event(seq, 0, "exec_allowed", 1, payload, ""))
    found = fold.result()
    assert (found.differ, len(found.differences), found.left_out) == (1_100, 1_000, 100)
    assert "100 more differ, of too many kinds to list" in what_if_text(found)


NETWORK = """
defaults: {network: audit}
network_rules:
  - {name: ours, destinations: [a.example, b.example], decision: allow}
  - {name: ask, destinations: [private], decision: approve}
  - {name: keep, destinations: ["unix:docker"], decision: deny}
"""


def to(text: str, address: str = "", *names: str) -> Endpoint:
    found = endpoint_of(text, Direction.CONNECT)
    return found._replace(
        address=packed_address(address) or found.address, names=found.names | set(names)
    )


@pytest.fixture
def connected(mediated: Mediate) -> Mediated:
    session = mediated(NETWORK)
    session.connection(to("b.example:443", "192.0.2.1", "a.example"))
    session.connection(to("203.0.113.9:80"))
    session.connection(to("10.0.0.1:22"))
    session.connection(to("10.0.0.2:22"), says=NO)
    session.connection(to("unix:/run/docker.sock"))
    session.connection(OutOfRules("io_uring", "it passes by"))
    return session


def test_connections_are_decided_again_as_they_were(connected: Mediated) -> None:
    made = connected.reproduction()
    assert (made.problem, made.reproduced, made.not_judged) == ("", 5, {BUILT_IN: 1})
    found = under(connected, NETWORK)
    assert (found.decisions, found.differ, found.own, found.doubtful) == (6, 0, 1, {})


TCP = {"address": "10.0.0.1", "protocol": "tcp", "port": 22}


@pytest.mark.parametrize(
    ("become", "destination", "told", "problem"),
    [
        ("allow", "unix:/run/docker.sock", {"protocol": "unix"}, "the policy says deny by"),
        ("allow", "10.0.0.1:22", TCP, "the policy says approve by ask"),
        ("approve", "10.0.0.2:22", {**TCP, "address": "10.0.0.2"}, "no approval came before it"),
    ],
)
def test_a_connection_that_the_policy_or_a_person_kept_back_was_not_let_through(
    mediated: Mediate, become: str, destination: str, told: Payload, problem: str
) -> None:
    session = mediated(NETWORK)
    session.connection(to("10.0.0.1:22"))
    decided = {"direction": "connect", "decision": become, "rule_name": "ours", **told}
    if become == "approve":
        decided["rule_name"] = "ask"
    type_name = "connection_allowed" if become == "allow" else "connection_approved"
    session.add(type_name, 40, destination=destination, **decided)
    assert session.reproduction().problem.startswith(problem)


def test_what_another_policy_says_of_connections(connected: Mediated) -> None:
    rule = "{name: docker, destinations: ['unix:docker'], decision: audit}"
    found = under(connected, f"defaults: {{network: deny}}\nnetwork_rules: [{rule}]\n")
    by = ("denied", "builtin:default", 1)
    assert kinds(found) == [
        ("connection to a.example:443", "let through", "ours", *by),
        ("connection to 203.0.113.9:80", "let through", "builtin:default", *by),
        ("connection to 10.0.0.1:22", "asked", "ask", *by),
        ("connection to 10.0.0.2:22", "asked", "ask", *by),
        ("connection to unix:/run/docker.sock", "denied", "keep", "let through", "docker", 1),
    ]
    assert found.differences[0].example == "bash, connection to a.example:443"
    [rule_for_it] = found.differences[0].rules
    assert rule_for_it.line == (
        "- {name: allow-connect-a.example-443, destinations: [a.example], ports: [443], "
        "protocol: tcp, decision: allow}"
    )
    assert "network_rules:" in what_if_text(found) and "network_rules:" in what_if_md(found)


def test_the_addresses_of_other_names_are_not_in_the_log(connected: Mediated) -> None:
    rule = "{name: x, destinations: [c.example], decision: deny}"
    found = under(connected, f"defaults: {{network: allow}}\nnetwork_rules: [{rule}]\n")
    assert found.doubtful == {NOT_RECORDED: 4}
