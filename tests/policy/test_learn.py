"""A policy for what sessions were denied loads, allows that, and changes nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.events import Event
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import CommandRequest, Program, SignalRequest
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.tools.again import request_of
from sigwrap.policy.tools.learn import (
    MOST_CHARACTERS,
    Head,
    Learned,
    Only,
    _outcome,
    learned_policy,
)
from sigwrap.start.policy_files import read_source
from sigwrap.text import printable
from tests.policy.test_properties import (
    command_rules,
    policy,
    requests,
    signal_rules,
    signals,
    strange_decisions,
)
from tests.policy.test_suggest import VARIABLES, base, decided, exec_event, ran, reached, sent

HEAD = Head("learned", "base", "s1")
ALLOW = frozenset({Only.DENIED, Only.ASKED})


def extending(text: str, found: str) -> Policy:
    return parse_policy(
        Source(name="mine.yaml", text=found),
        variables=VARIABLES,
        find_base=lambda _name, _source: Source(name="base.yaml", text=text),
    )


def learned(
    text: str, events: Sequence[Event], wanted: frozenset[Only] = ALLOW, head: Head = HEAD
) -> Learned:
    return learned_policy(events, Engine(base(text)), wanted, head)


AGENT = read_source("agent-default").text


@pytest.fixture(scope="module")
def agent() -> Engine:
    return Engine(base(AGENT))


def test_there_is_a_rule_for_each_action_with_its_count_and_reason(agent: Engine) -> None:
    events = [
        ran(agent, "git", "push", "--force", comm="sh"),
        ran(agent, "git", "push", "--force", comm="node"),
        ran(agent, "npm", "install", "left-pad", comm="sh"),
        ran(agent, "git", "status", comm="sh"),
        ran(agent, "git", "push", "-f", comm="node", rule_name="limits.max_execs"),
    ]
    found = learned(AGENT, events)
    assert found.text == (
        "# Rules that allow actions that were denied or sent for approval in s1, under the policy "
        "agent-default.\n"
        "# Read each rule before you use it: a program may have tried something it should not\n"
        "# do. Delete the rules for actions that should stay as they were. A command rule\n"
        "# matches only these arguments.\n"
        "# Then: sigwrap policy check FILE, and sigwrap -p FILE -- COMMAND\n"
        "#\n"
        "# No rule can change:\n"
        "#   once /usr/bin/git: a limit: raise limits.max_execs\n"
        "\n"
        "version: 1\n"
        "name: learned\n"
        "extends: base\n"
        "\n"
        "command_rules:\n"
        "  # 2 times denied; rule force-push: forced pushes are left to people\n"
        '  - {name: allow-git-push-force, commands: [git], args: [push, "--force"], '
        "decision: allow, overrides: [force-push]}\n"
        "  # once sent for approval; rule pkg-install: package installs need approval\n"
        "  - {name: allow-npm-install-left-pad, commands: [npm], args: [install, left-pad], "
        "decision: allow, overrides: [pkg-install]}\n"
    )
    assert found.rules == 2
    after = Engine(extending(AGENT, found.text))
    assert [decided(after, each).action.value for each in events[:4]] == ["allow"] * 4


def test_a_reason_of_only_some_actions_is_left_out(agent: Engine) -> None:
    def approved(by: str) -> Event:
        asked = ran(agent, "npm", "install", "x", comm="sh", reason=f"approved by {by}")
        return asked._replace(type="exec_allowed", payload={**asked.payload, "message": ""})

    strict = read_source("agent-strict").text
    one, same, other = approved("pid 7"), approved("pid 7"), approved("pid 8")
    events = [each._replace(payload={**each.payload, "rule_name": "r"}) for each in (one, same)]
    assert "# 2 times sent for approval; rule r: approved by pid 7\n" in (
        learned(strict, events).text
    )
    events.append(other._replace(payload={**other.payload, "rule_name": "r"}))
    assert "# 3 times sent for approval; rule r\n" in learned(strict, events).text


def question(event: Event, *, is_told: bool = True, pid: int = 9) -> Event:
    """Return the approval request that came before this event."""
    names = ("path", "argv", "cwd", "programs")
    payload = {"what": " ".join(event.payload["argv"]), "rule_name": event.payload["rule_name"]}
    payload |= {"kind": "exec", "comm": "sh"}
    if is_told:
        payload["exec"] = {name: event.payload[name] for name in names}
    return event._replace(type="approval_requested", payload=payload, pid=pid)


@pytest.mark.parametrize("is_told", [True, False])
def test_an_open_approval_request_counts(agent: Engine, is_told: bool) -> None:
    event = ran(agent, "npm", "install", "left-pad", comm="sh")
    found = learned(AGENT, [question(event, is_told=is_told)])
    if is_told:
        assert "# once sent for approval; rule pkg-install: package installs" in found.text
        after = Engine(extending(AGENT, found.text))
        assert decided(after, event).action.value == "allow"
        assert found.rules == 1
    else:
        assert (
            "# No rule can change:\n"
            "#   once npm install left-pad: not answered yet, and the log has no details\n"
        ) in found.text
        assert found.rules == 0
    denied = frozenset({Only.DENIED})
    assert not learned(AGENT, [question(event, is_told=is_told)], denied).text


def test_an_approval_request_and_its_outcome_count_once(agent: Engine) -> None:
    event = ran(agent, "npm", "install", "left-pad", comm="sh")
    answered = [question(event), event._replace(pid=9)]
    assert "# once sent for approval" in learned(AGENT, answered).text


def test_a_wrapped_command_counts_when_the_wrapper_executes_it(agent: Engine) -> None:
    def program(*argv: str) -> Program:
        return Program(path=f"/usr/bin/{argv[0]}", name=argv[0], argv=argv)

    both = (program("env", "npm", "install", "x"), program("npm", "install", "x"))
    request = CommandRequest(both, depth=1, cwd="/project/app")
    wrapper = exec_event(both, agent.decide_exec(request, 1), here=1, comm="sh")
    assert wrapper.payload["decision"] == "allow"
    wrapped = ran(agent, "npm", "install", "x", comm="env")
    found = learned(AGENT, [wrapper, wrapped])
    assert found.rules == 1
    assert "# once sent for approval; rule pkg-install" in found.text


def test_a_search_along_path_counts_once(agent: Engine) -> None:
    folders = ("/usr/local/bin", "/usr/bin", "/bin")
    events = [
        ran(agent, "git", "push", "--force", path=f"{each}/git", comm="sh") for each in folders
    ]
    for event in events[1:]:
        event.payload["retry"] = True
    found = learned(AGENT, events)
    assert "# once denied;" in found.text
    assert found.rules == 1


def test_secrets_and_cut_arguments_are_in_no_rule(agent: Engine) -> None:
    masked = ran(agent, "npm", "install", "--token=***", comm="sh", masked=True)
    cut = ran(agent, "npm", "install", "x[...]", comm="sh", cut={"argv": {}})
    found = learned(AGENT, [masked, cut])
    assert (
        "#   once /usr/bin/npm: the log masks a secret in its arguments; write the rule yourself\n"
        "#   once /usr/bin/npm: its arguments are cut in the log; write the rule yourself\n"
    ) in found.text
    assert found.rules == 0


def test_nothing_is_learned_if_nothing_was_denied(agent: Engine) -> None:
    assert learned(AGENT, [ran(agent, "git", "status")]) == Learned("", 0)


def test_rules_come_before_those_of_a_policy_that_has_changed(agent: Engine) -> None:
    event = ran(agent, "npm", "install", "x", comm="sh")
    head = HEAD._replace(base=base(AGENT))
    found = learned(AGENT, [event], head=head)
    assert "# base has changed since. Below is that policy as the log has it" in found.text
    assert "command_rules:\n# once sent for approval; rule pkg-install" in found.text
    whole = base(found.text)
    assert (whole.name, whole.bases) == ("learned", ())
    assert decided(Engine(whole), event).action.value == "allow"


def test_no_name_is_taken_twice() -> None:
    text = "version: 1\nname: x\ncommand_rules:\n- {name: allow-a, commands: [a], decision: deny}\n"
    engine = Engine(base(text))
    found = learned(text, [ran(engine, "a"), ran(engine, "a", ""), ran(engine, "ls")])
    assert "allow-a-2" in found.text and "allow-a-3" in found.text and "allow-ls" in found.text


@pytest.mark.tier("ci")
def test_a_session_with_very_many_denials_makes_a_policy_that_loads() -> None:
    text = "version: 1\nname: x\n"
    engine = Engine(base(text))
    events = [ran(engine, f"tool{number}", "x" * 200) for number in range(MOST_CHARACTERS // 200)]
    found = learned(text, events)
    assert "Left out, because there are too many: " in found.text
    extending(text, found.text)


HOSTILE = ["a\n  - {name: b}", "x # y", "]}", "'\"", "\x1b[2J", "é\u2028", "${HOME}"]


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_words_stay_words(word: str) -> None:
    text = "version: 1\nname: x\n"
    engine = Engine(base(text))
    event = ran(engine, "bash", "-c", word, comm=word, rule_name="builtin:default", reason=word)
    found = learned(text, [event, ran(engine, word.replace("/", ""), "x", comm=word)])
    assert all(line == printable(line) for line in found.text.splitlines())
    loaded = extending(text, found.text)
    assert len(loaded.command_rules) == found.rules == 2
    assert decided(Engine(loaded), event).action.value == "allow"


@given(
    command_rules(),
    signal_rules(),
    st.lists(requests | signals, max_size=8),
    st.sampled_from([ALLOW, frozenset({Only.AUDITED})]),
)
def test_denied_actions_are_allowed_and_no_others_change(
    commands: list[str],
    signal_lines: list[str],
    asked: list[CommandRequest | SignalRequest],
    wanted: frozenset[Only],
) -> None:
    text = policy(commands, signal_lines)
    engine = Engine(base(text))
    events = [event_of(engine, each) for each in asked]
    found = learned(text, events, wanted)
    if not found.text:
        assert not any(_outcome(each, decided(engine, each)) in wanted for each in events)
        return
    after = Engine(extending(text, found.text))
    covered = [each for each in events if _outcome(each, decided(engine, each)) in wanted]
    decision = "deny" if Only.AUDITED in wanted else "allow"
    changed = {each for event in covered for each in arguments(event)}
    for event in events:
        before, now = decided(engine, event), decided(after, event)
        if event in covered:
            assert now.action.value == decision or "# No rule can change:" in found.text
        elif event.type.startswith("exec_") and changed.isdisjoint(arguments(event)):
            assert now.action is before.action


def arguments(event: Event) -> list[tuple[str, ...]]:
    """Return the command lines that a rule for the event names."""
    return [tuple(each["argv"]) for each in event.payload.get("programs", ())]


@given(st.lists(strange_decisions(), max_size=6), st.sampled_from(list(Only)))
def test_the_policy_of_any_log_loads(events: list[Event], only: Only) -> None:
    text = policy([], [])
    found = learned(text, events, frozenset({only}))
    if found.text:
        extending(text, found.text)
    assert all(map(request_of, events))


def event_of(engine: Engine, request: CommandRequest | SignalRequest) -> Event:
    if isinstance(request, SignalRequest):
        event = sent(engine, request)
        lenient = event.payload["decision"] in ("allow", "audit")
        return event._replace(type="signal_sent" if lenient else "signal_blocked")
    return exec_event(
        request.programs,
        engine.decide_command(request),
        depth=request.depth,
        truncated=request.truncated,
    )


def test_a_denied_connection_gets_a_rule() -> None:
    text = (
        "version: 1\nname: base\ndefaults: {network: deny}\nnetwork_rules:\n"
        "  - {name: ask, destinations: [private], decision: approve, message: is it ours?}\n"
    )
    seen: dict[str, Any] = {"address": "192.0.2.1", "port": 443, "rule_name": "builtin:default"}
    events = [
        *(reached("192.0.2.1:443", **seen) for _ in range(2)),
        reached("10.0.0.1:22", address="10.0.0.1", port=22, rule_name="ask"),
        reached("io_uring", "", rule_name="builtin:network"),
    ]
    found = learned(text, events)
    assert found.rules == 2
    assert (
        "network_rules:\n"
        "  # 2 times denied; rule builtin:default\n"
        '  - {name: allow-connect-192.0.2.1-443, destinations: ["192.0.2.1"], ports: [443], '
        "protocol: tcp, decision: allow}\n"
        "  # once sent for approval; rule ask: is it ours?\n"
        '  - {name: allow-connect-10.0.0.1-22, destinations: ["10.0.0.1"], ports: [22], '
        "protocol: tcp, decision: allow, overrides: [ask]}\n"
    ) in found.text
    assert "once io_uring: builtin:network: no rule overrides it" in found.text
    engine = Engine(extending(text, found.text))
    assert [decided(engine, each).action.value for each in events] == ["allow"] * 3 + ["deny"]
