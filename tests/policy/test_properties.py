"""What holds for every policy and every request."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from sigwrap.errors import PolicyError
from sigwrap.events import EVENT_TYPES, EXEC_TYPES, SIGNAL_TYPES, Event
from sigwrap.policy.judge.engine import Engine, Facts
from sigwrap.policy.judge.request import (
    DEFAULT_RULE,
    STRICTNESS,
    CommandRequest,
    Program,
    SignalRequest,
    TargetType,
    with_implied,
)
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.tools.explain import explain_command, explain_signal
from sigwrap.policy.tools.generate import generate_policy
from sigwrap.policy.tools.show import policy_text

NAMES = ["git", "npm", "ls", "sh", "dash", "a*b", "mkfs.ext4", "["]
WORDS = ["push", "install", "-f", "--force", "status", "", "x y", "caf\udce9", "é"]
FOLDERS = ["/bin", "/usr/bin", "/opt/a/b"]
COMMANDS = ["git", "npm", "ls", "sh", "dash", "*", "mkfs.*", "?it", "/bin/*", "/opt/**", "/bin/git"]


def parse(text: str) -> Policy:
    return parse_policy(
        Source(name="p.yaml", text=text), variables={}, find_base=lambda name, source: None
    )


def quoted(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


@st.composite
def command_rules(draw: st.DrawFn) -> list[str]:
    lines = []
    for index in range(draw(st.integers(0, 6))):
        commands = draw(st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=3))
        line = f"  - {{name: r{index}, commands: [{', '.join(map(quoted, commands))}]"
        if draw(st.booleans()):
            patterns = draw(st.sampled_from([["^push"], ["-f"], ["a", "é"], ["^$"], ["."]]))
            line += f", args_patterns: [{', '.join(map(quoted, patterns))}]"
        if draw(st.booleans()):
            line += f", subcommands: [{draw(st.sampled_from(['push', 'install', quoted('')]))}]"
        if draw(st.booleans()):
            line += f", depth: {{min: {draw(st.integers(0, 2))}}}"
        if draw(st.booleans()):
            line += f", truncated: {draw(st.sampled_from(['true', 'false']))}"
        for key in ("system_file", "loads_code"):
            if draw(st.integers(0, 3)) == 0:
                line += f", {key}: {draw(st.sampled_from(['true', 'false']))}"
        for key in ("paths", "sources"):
            if draw(st.integers(0, 3)) == 0:
                line += f", {key}: [{draw(st.sampled_from(['/etc', quoted('/w*')]))}]"
        decision = draw(st.sampled_from(["allow", "deny", "audit", "approve"]))
        lines.append(f"{line}, decision: {decision}}}\n")
    return lines


TARGETS = [each.value for each in TargetType] + [
    "{type: process, pattern: 'n*'}",
    "{type: user, pattern: 'n*'}",
]


@st.composite
def signal_rules(draw: st.DrawFn) -> list[str]:
    lines = []
    for index in range(draw(st.integers(0, 6))):
        signals = draw(st.sampled_from(["@fatal", "@all", "SIGTERM", "9", "SIGRTMIN+1"]))
        targets = draw(st.lists(st.sampled_from(TARGETS), min_size=1, max_size=2))
        decision = draw(st.sampled_from(["allow", "deny", "audit", "absorb"]))
        lines.append(
            f"  - {{name: s{index}, signals: ['{signals}'], target: [{', '.join(targets)}], "
            f"decision: {decision}}}\n"
        )
    return lines


def policy(commands: list[str], signals: list[str]) -> str:
    text = "version: 1\nname: x\n"
    text += "command_rules:\n" + "".join(commands) if commands else ""
    text += "signal_rules:\n" + "".join(signals) if signals else ""
    return text


@st.composite
def programs(draw: st.DrawFn) -> Program:
    name = draw(st.sampled_from(NAMES) | st.text(max_size=5).map(lambda t: "n" + surrogates(t)))
    basename = draw(st.sampled_from([name, "busybox", "dash"]))
    arguments = draw(st.lists(st.sampled_from(WORDS), max_size=4))
    path = f"{draw(st.sampled_from(FOLDERS))}/{basename}"
    return Program(path=path, name=name, argv=(name, *arguments))


def surrogates(text: str) -> str:
    """A name as Linux has it: any bytes but the slash and NUL."""
    return (
        text.encode("utf-8", "replace").translate(None, b"/\0").decode("utf-8", "surrogateescape")
    )


requests = st.builds(
    CommandRequest,
    programs=st.lists(programs(), min_size=1, max_size=3).map(tuple),
    depth=st.integers(0, 3),
    truncated=st.booleans(),
)
signals = st.builds(
    SignalRequest,
    signal=st.integers(0, 66),
    target_types=st.lists(st.sampled_from(list(TargetType)), min_size=1, max_size=2).map(
        with_implied
    ),
    target_command=st.sampled_from(["node", "sh", ""]),
)


@given(command_rules(), requests)
def test_the_first_match_decides_each_program_and_the_strictest_holds(
    rules: list[str], request: CommandRequest
) -> None:
    engine = Engine(parse(policy(rules, [])))
    answers = []
    for program in request.programs:
        facts = Facts(program, request)
        matching = [
            rule.decision
            for rule in engine.command_rules
            if rule.names(facts) and rule.holds(facts)
        ]
        decision = engine.decide_program(program, request)
        assert decision is matching[0] if matching else decision.rule == DEFAULT_RULE
        answers.append(decision)
    final = engine.decide_command(request)
    assert STRICTNESS[final.action] == max(STRICTNESS[each.action] for each in answers)
    assert explain_command(engine, request).decision is final


@given(signal_rules(), signals)
def test_a_rule_added_at_the_end_changes_no_signal_that_a_rule_decided(
    rules: list[str], signal: SignalRequest
) -> None:
    before = Engine(parse(policy([], rules)))
    last = "  - {name: last, signals: ['@all'], decision: deny}\n"
    after = Engine(parse(policy([], [*rules, last])))
    decided = before.decide_signal(signal)
    if decided.rule != DEFAULT_RULE:
        assert after.decide_signal(signal).rule == decided.rule
    assert explain_signal(before, signal).decision is decided


@given(command_rules(), signal_rules(), requests, signals)
def test_a_policy_that_is_shown_means_the_same(
    commands: list[str], signal_lines: list[str], request: CommandRequest, signal: SignalRequest
) -> None:
    first = parse(policy(commands, signal_lines))
    second = parse(policy_text(first))
    assert policy_text(second) == policy_text(first)
    assert [each.name for each in first.command_rules] == [
        each.name for each in second.command_rules
    ]
    assert Engine(first).decide_command(request).rule == Engine(second).decide_command(request).rule
    assert Engine(first).decide_signal(signal).rule == Engine(second).decide_signal(signal).rule


YAMLISH = st.text(alphabet=string.printable + "é\ud800\x00\ufeff", max_size=200)


@given(YAMLISH)
def test_parsing_raises_nothing_but_a_policy_error(text: str) -> None:
    for candidate in (text, f"version: 1\nname: x\n{text}", f"command_rules:\n  - {text}"):
        try:
            parse(candidate)
        except PolicyError:
            pass


KEYS = ["version", "name", "command_rules", "commands", "signals", "target", "decision", "tests"]
KEYS += ["depth", "min", "redirect_to", "vars", "extends", "limits", "watch", "loop", "type", "x"]
SCALARS = st.sampled_from(["1", "x", "true", "'${HOME}'", "'${'", "deny", "null", "[", "'('", "9"])
FLOW = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4).map(
            lambda entries: (
                "{" + ", ".join(f"{key}: {value}" for key, value in entries.items()) + "}"
            )
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(KEYS), FLOW, max_size=6))
def test_no_arrangement_of_keys_raises_anything_but_a_policy_error(entries: dict[str, str]) -> None:
    try:
        parse("".join(f"{key}: {value}\n" for key, value in entries.items()))
    except PolicyError:
        pass


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "/", "children", "\n", "a\0b", "\udcff", "${X}", "no"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["path", "argv", "name"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def strange_decisions(draw: st.DrawFn) -> Event:
    kind = EVENT_TYPES[draw(st.sampled_from(sorted(EXEC_TYPES | SIGNAL_TYPES)))]
    payload = {field: draw(VALUES) for field in kind.fields if draw(st.booleans())}
    return Event(seq=1, time_ns=0, type=kind.name, pid=9, payload=payload, hash="")


@given(st.lists(strange_decisions(), max_size=5))
def test_a_log_that_sigwrap_did_not_write_makes_a_policy_that_loads(events: list[Event]) -> None:
    parse(generate_policy(events, name="locked"))
