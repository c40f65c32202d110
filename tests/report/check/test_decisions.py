"""Decide recorded requests again: sigwrap's logs come out the same, changed ones do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sigwrap
from sigwrap.events import DECISION_TYPES, Event, Payload
from sigwrap.exec.facts import NOT_DUMPABLE, stalled
from sigwrap.policy import SHIPPED
from sigwrap.policy.judge.network import OUT_OF_RULES
from sigwrap.policy.judge.request import (
    PROTECTS_SIGWRAP,
    AskedFact,
    Decision,
    Program,
    TargetType,
    with_implied,
)
from sigwrap.policy.judge.rules import Crowd
from sigwrap.policy.language.document import Source, policy_texts
from sigwrap.report.check.decisions import (
    BUILT_IN,
    MASKED,
    OTHER_VERSION,
    TRACED,
    ReproductionFold,
    recorded_policy,
)
from sigwrap.report.check.verify import Outcome, verify_session, with_reproduction
from sigwrap.session.effects import CannotHold, Held, SignalTarget
from sigwrap.session.lineage import Process
from sigwrap.signal import facts as signal_facts
from sigwrap.signal.facts import CallKind, SignalFacts, TargetGroup
from sigwrap.start.policy_files import host_variables, load_with_sources
from tests.policy.test_properties import command_rules, policy, programs
from tests.policy.test_properties import signal_rules as rules_of
from tests.report.check.mediated import (
    CHILD,
    NO,
    RULES,
    YES,
    Mediated,
    everything,
    kill,
    program,
    reproduction,
)
from tests.support import consistent

Mediate = Callable[[str], Mediated]
NOT_A_PATTERN = """\
version: 1
name: x
command_rules: [{name: r, commands: [a], args_patterns: ["("], decision: deny}]
"""


def test_all_that_sigwrap_decides_comes_out_the_same(made: Mediated) -> None:
    everything(made)
    found = made.reproduction()
    assert (found.problem, found.row) == ("", 0)
    assert found.reproduced > 30
    assert found.reproduced + found.not_judged.pop(BUILT_IN) == found.decisions
    assert found.not_judged == {}


def asked(answer: object) -> AskedFact:
    return AskedFact(lambda: answer)


@st.composite
def programs_with_facts(draw: st.DrawFn) -> Program:
    made = draw(programs())._replace(
        system_file=asked(draw(st.booleans())), loads_code=asked(draw(st.booleans()))
    )
    secret = draw(st.sampled_from([(), ("--token=abcdefgh",), ("--password", "hunter22")]))
    return made._replace(
        argv=(*made.argv, *secret),
        elsewhere=draw(st.integers(0, 5)) == 0,
        counts_by_name=draw(st.integers(0, 4)) == 0,
        shadows=draw(st.sampled_from(["", "", "", "/usr/bin/ls"])),
        found=draw(st.sampled_from(["", "./ls", "/opt/ls"])),
    )


@st.composite
def execs(draw: st.DrawFn) -> dict[str, Any]:
    all_of_it = draw(st.lists(programs_with_facts(), min_size=1, max_size=3))
    first = all_of_it[0]._replace(counts_by_name=False)
    found = (first, *all_of_it[1:])
    depth = draw(st.integers(0, 4))
    return {
        "programs": found,
        "path": draw(st.sampled_from([first.path, "x"])),
        "here": found[: draw(st.integers(1, len(found)))],
        "truncated": draw(st.booleans()),
        "readable": draw(st.integers(0, 4)) != 0,
        "crowd": Crowd(draw(st.integers(0, 4)), draw(st.integers(0, 4))),
        "process": Process(pid=40, start_time=1, parent=None, ppid=30, depth=depth, comm="bash"),
        "held": draw(st.sampled_from([Held.YES, Held.NO, Held.BY_ITS_TRACER, CannotHold("so")])),
        "says": draw(st.booleans()),
        "cwd": draw(st.sampled_from(["/project", "", "/etc"])),
    }


@st.composite
def targets(draw: st.DrawFn) -> SignalTarget:
    types = draw(st.lists(st.sampled_from(list(TargetType)), min_size=1, max_size=2))
    comm = draw(st.sampled_from(["node", "sh", "caf\udce9"]))
    return SignalTarget(draw(st.integers(1, 99)), 1, comm, with_implied(types))


SIGNALS = st.builds(
    kill,
    st.integers(1, 66),
    targets()
    | st.lists(targets(), min_size=1, max_size=3).map(lambda each: TargetGroup(tuple(each))),
    st.sampled_from([CallKind.NUMBER, CallKind.CHANGE, CallKind.OWNER, CallKind.PIDFD]),
)
LIMITS = st.sampled_from(["", "{max_execs: 2}", "{max_children: 2, max_depth: 3}"])


@settings(suppress_health_check=list(HealthCheck))
@given(command_rules(), rules_of(), LIMITS, st.lists(execs(), max_size=5), st.lists(SIGNALS))
def test_whatever_the_policy_what_it_decided_comes_out_the_same(
    commands: list[str],
    signals: list[str],
    limits: str,
    asked: list[dict[str, Any]],
    sent: list[SignalFacts],
) -> None:
    text = policy(commands, signals).removeprefix("version: 1\nname: x\n")
    text += f"limits: {limits}\n" if limits else ""
    with TemporaryDirectory() as folder:
        made = Mediated(Path(folder), text)
        for each in asked:
            made.run(*each["programs"], **{k: v for k, v in each.items() if k != "programs"})
        for facts in sent:
            made.signal(facts)
        found = made.reproduction()
        made.log.close()
    assert (found.problem, found.row) == ("", 0)
    assert found.reproduced + sum(found.not_judged.values()) == found.decisions
    assert set(found.not_judged) <= {BUILT_IN, MASKED, TRACED}


# What was changed

Change = Callable[[Event], Event]
Wanted = Callable[[Event], bool]


def as_if(type_name: str, wanted: Wanted, **different: Any) -> Change:
    def change(event: Event) -> Event:
        if not wanted(event):
            return event
        return event._replace(type=type_name, payload={**event.payload, **different})

    return change


def is_type(name: str) -> Wanted:
    return lambda event: event.type == name


def is_of(*argv: str) -> Wanted:
    return lambda event: event.payload.get("argv") == list(argv)


def is_signal(number: int, kind: str) -> Wanted:
    return lambda event: event.type == kind and event.payload.get("original_signal") == number


LS, PUSH, CAT, CURL = is_of("ls"), is_of("git", "push"), is_of("cat", "x"), is_of("curl", "x")
TESTS, INSTALLS = is_of("npm", "test"), is_of("npm", "ci")
BLOCKED, LET_THROUGH = is_signal(9, "signal_blocked"), is_signal(10, "signal_sent")
REDIRECTED = is_signal(15, "signal_redirected")
STARTED, GRANTED = is_type("session_started"), is_type("approval_granted")
BY_REST = {"decision": "allow", "rule_name": "rest"}
BY_INSIDE = {"decision": "allow", "rule_name": "inside"}
UNREADABLE = {"decision": "deny", "rule_name": "builtin:unreadable"}
OTHER_TEXT = [{"name": "x", "text": "version: 1\nname: x\n"}]

allowed = partial(as_if, "exec_allowed")
denied = partial(as_if, "exec_denied")
replaced = partial(as_if, "exec_redirected")
sent = partial(as_if, "signal_sent")
FORGERIES = {
    "a denial": allowed(PUSH, **BY_REST),
    "a denial alone": allowed(PUSH, decision="allow"),
    "its type": allowed(PUSH),
    "a denial, as if a stub had run it": allowed(PUSH, decision="allow", stub=True),
    "an allowance": denied(LS, decision="deny", rule_name="push"),
    "what ran": allowed(LS, argv=["git", "push"], path="/usr/bin/git"),
    "a denied request": allowed(INSTALLS, decision="approve", approval_id="a9"),
    "a denied request, without an approval": allowed(INSTALLS, decision="approve", approval_id=""),
    "no approval request": allowed(TESTS, decision="allow"),
    "a replacement": allowed(CAT, decision="allow"),
    "a limit": denied(LS, decision="deny", rule_name="limits.max_children"),
    "a limit of execs": denied(LS, decision="deny", rule_name="limits.max_execs"),
    "a built-in allowance": allowed(PUSH, decision="allow", rule_name="builtin:nothing"),
    "a signal": sent(BLOCKED, **BY_INSIDE),
    "another signal": as_if("signal_redirected", REDIRECTED, signal=9),
    "a signal to sigwrap": sent(
        lambda event: event.payload.get("target_types") == ["parent"], **BY_INSIDE
    ),
    "what was judged": allowed(
        PUSH, **BY_REST, programs=[{"path": "/usr/bin/ls", "name": "ls", "argv": ["ls"]}]
    ),
    "what was replaced by": replaced(CAT, replacement_argv=["rm", "-rf", "x"]),
    "what ran instead of a stub": allowed(CURL, decision="allow"),
    "who approved": as_if("process_exited", GRANTED),
    "what the policy is called": as_if("session_started", STARTED, policy="agent-strict"),
    "the policy": as_if("session_started", STARTED, policy_sources=OTHER_TEXT),
}


def test_a_changed_decision_is_found_in_a_log_whose_chain_was_made_anew(made: Mediated) -> None:
    everything(made)
    events = list(made.session.events())
    for what, change in FORGERIES.items():
        row = next(event.seq for event in events if change(event) != event)
        if what == "who approved":  # the command that was approved
            row = next(
                each.seq for each in events if each.seq > row and "approval_id" in each.payload
            )
        fold = ReproductionFold(sigwrap.__version__)
        chain = verify_session(made.forged(change), None, and_also=fold.add)
        assert chain.outcome is Outcome.INTACT, what
        named = with_reproduction(chain, fold.result())
        assert (named.outcome, named.row) == (Outcome.BROKEN, row), what
        assert named.problem, what


def test_a_decision_of_a_built_in_rule_is_counted_and_no_more(made: Mediated) -> None:
    everything(made)
    before = made.reproduction()
    found = reproduction(made.forged(denied(LS, **UNREADABLE)))
    assert found.row == 0
    assert found.not_judged[BUILT_IN] > before.not_judged[BUILT_IN]


def begun(rules: str = "", version: str = sigwrap.__version__) -> ReproductionFold:
    fold = ReproductionFold(version)
    texts = policy_texts([Source("p", f"version: 1\nname: x\n{rules}")], {})
    started = {**texts, "policy": "x", "sigwrap": sigwrap.__version__, "judgement": 1}
    fold.add(Event(1, 0, "session_started", 1, started, ""))
    return fold


@pytest.mark.parametrize(("version", "row"), [(sigwrap.__version__, 3), ("0.0.1", 0)])
def test_this_version_has_no_events_of_an_unknown_type(version: str, row: int) -> None:
    fold = begun(version=version)
    fold.add(Event(2, 0, "tree_frozen", 1, {}, ""))
    fold.add(Event(3, 0, "exec_denied2", 1, {"decision": "deny"}, ""))
    assert fold.result().row == row


def test_of_two_rows_that_break_the_first_is_named(made: Mediated) -> None:
    everything(made)
    session = made.forged(FORGERIES["a denial"])
    chain, found = verify_session(session, None), reproduction(session)
    for row, named in ((found.row + 1, found.row), (found.row - 1, found.row - 1)):
        broken = replace(chain, outcome=Outcome.BROKEN, row=row, problem="its hash")
        assert with_reproduction(broken, found).row == named


# What can't be judged


def test_a_secret_that_a_rule_has_seen_is_no_forgery_and_the_first_rows_are_named(
    made: Mediated,
) -> None:
    made.run(program("aws", "--password=letmein"))
    for _ in range(7):
        made.run(program("aws", "--password=hunter2"))
    found = made.reproduction()
    assert (found.row, found.decisions, found.reproduced) == (0, 8, 1)
    assert found.not_judged == {MASKED: 7}
    assert found.not_judged_rows == {MASKED: (3, 4, 5, 6, 7)}


def test_an_approval_covers_a_command_that_was_cut(made: Mediated) -> None:
    made.run(program("npm", "i", *["x" * 100] * 100), says=YES)
    assert made.reproduction().reproduced == 1


def test_a_yes_to_a_group_is_for_each_of_it_whatever_its_rule(mediated: Mediate) -> None:
    made = mediated("""\
signal_rules:
  - {name: one, signals: [TERM], target: {type: children, pattern: sleep}, decision: approve}
  - {name: other, signals: [TERM], target: {type: children, pattern: node}, decision: approve}
defaults: {signal: deny}
""")
    node = SignalTarget(51, 5, "node", with_implied([TargetType.CHILDREN]))
    made.signal(kill(15, TargetGroup((CHILD, node))), says=YES)
    made.signal(kill(15, TargetGroup((CHILD, node))), says=NO)
    made.signal(kill(15, node), says=YES)
    found = made.reproduction()
    assert (found.problem, found.decisions, found.reproduced) == ("", 5, 5)


def run_script(made: Mediated, *words: str) -> None:
    """Run a script with `#!/usr/bin/env npm`: env is executed, then npm."""
    script = program("npm", *words, path="/usr/bin/npm")
    npm = program("npm", "/usr/bin/npm", *words)
    env = program("env", "npm", "/usr/bin/npm", *words)
    shown, here = (script, env, npm), (script, env)
    made.run(*shown, here=here, scripts=(script.path,), script_wraps=npm, says=YES)
    made.run(npm)


def test_a_script_goes_on_by_one_approval(made: Mediated) -> None:
    run_script(made, "x")
    found = made.reproduction()
    assert (found.problem, found.decisions, found.reproduced) == ("", 2, 2)


@pytest.mark.parametrize("letters", [300, 1300, 2500, 5000])
def test_of_a_script_and_what_it_goes_on_with_one_event_may_be_cut(
    made: Mediated, letters: int
) -> None:
    run_script(made, "x" * letters)
    found = made.reproduction()
    assert found.problem == ""
    assert found.reproduced + sum(found.not_judged.values()) == found.decisions == 2


def test_what_was_cut_is_judged_apart_from_what_reads_the_same(mediated: Mediate) -> None:
    """Arguments can look like those of another command that was cut."""
    rule = r"{name: tail, commands: [wc], args_patterns: ['\[\.\.\.\]$'], decision: deny}"
    made = mediated(f"command_rules: [{rule}]\ndefaults: {{command: allow}}\n")
    made.run(program("wc", "y" * 20_000))
    (cut,) = (each.payload for each in made.session.events() if each.type == "exec_allowed")
    made.run(program(*cut["argv"]))
    found = made.reproduction()
    assert (found.problem, found.decisions, found.reproduced) == ("", 2, 2)


@pytest.mark.parametrize("different", [{"sigwrap": "0.0.1"}, {"judgement": None}])
def test_another_version_may_have_judged_otherwise(made: Mediated, different: Payload) -> None:
    everything(made)
    started = as_if("session_started", STARTED, **different)
    found = reproduction(made.forged(lambda event: FORGERIES["a denial"](started(event))))
    assert found.row == 0
    assert set(found.not_judged) == {BUILT_IN, OTHER_VERSION}
    assert found.reproduced == found.decisions - sum(found.not_judged.values())


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        (None, "the log has no policy"),
        ("x", "the log has no policy"),
        ([3, None], "the log has no policy"),
        ([{"name": 3, "text": []}], "cannot load the recorded policy: "),
        ([{"name": "p", "text": "\udce9"}], "cannot load the recorded policy: "),
        (
            [{"name": "ci.yaml", "text": "\udce9", "shipped": True}],
            "cannot load the recorded policy",
        ),
        (
            [{"name": "p", "text": "version: 1\nname: x\nextends: y"}],
            "cannot load the recorded policy",
        ),
        ([{"name": "ci.yaml", "text": NOT_A_PATTERN, "shipped": True}], "cannot load"),
        ([{"name": "ci.yaml", "digest": "0" * 64}], "this sigwrap lacks the policy ci.yaml as"),
        ([{"name": "../x.yaml", "digest": "0" * 64}], "this sigwrap lacks the policy ../x.yaml"),
        ([{"name": "ci.yaml", "digest": ["x"]}], "cannot load the recorded policy"),
    ],
)
def test_a_policy_that_is_none_is_said(sources: object, why: str) -> None:
    fold = ReproductionFold(sigwrap.__version__)
    started = {"policy_sources": sources, "policy_variables": {"HOME": 3, "x": "\udce9"}}
    fold.add(Event(1, 0, "session_started", 1, started, ""))
    fold.add(Event(2, 0, "exec_allowed", 1, {"decision": "allow", "argv": ["ls"]}, ""))
    found = fold.result()
    assert [reason.startswith(why) for reason in found.not_judged] == [True]
    assert found.row == 1  # the digest belongs to another text


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_policy_is_recorded_by_its_digest_and_loaded_again(name: str) -> None:
    variables = host_variables(".")
    policy, sources = load_with_sources(name, variables=variables)
    started = policy_texts(sources, variables)
    assert len(json.dumps(started)) < 1_000
    assert recorded_policy(started)._replace(cases=()) == policy._replace(cases=())


def test_a_policy_of_the_users_own_is_recorded_with_its_text(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("version: 1\nname: mine\nextends: agent-default\n", encoding="utf-8")
    variables = host_variables(".")
    policy, sources = load_with_sources(str(mine), variables=variables)
    started = policy_texts(sources, variables)
    mine.unlink()
    assert recorded_policy(started) == policy
    assert [sorted(each) for each in started["policy_sources"]] == [
        ["name", "text"],
        ["digest", "name"],
    ]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("builtin:stub"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
FIELDS = (
    "path argv cwd depth decision rule_name truncated traced programs here masked siblings "
    "processes stub shadows approval_id ppid signal original_signal target_types target_type "
    "target_cmd target_pid source_pid correlation target_handles kind cut"
).split()
TYPES = [*sorted(DECISION_TYPES), "approval_granted", "process_exited"]
PAYLOADS = st.dictionaries(st.sampled_from(FIELDS), ANYTHING | st.sampled_from(["allow", "deny"]))


@given(st.lists(st.tuples(st.sampled_from(TYPES), PAYLOADS), max_size=4))
def test_a_log_from_elsewhere_may_hold_anything(rows: list[tuple[str, Payload]]) -> None:
    fold = begun(RULES)
    for seq, (type_name, payload) in enumerate(rows, start=2):
        fold.add(Event(seq, 0, type_name, 1, json.loads(json.dumps(payload)), ""))
    found = fold.result()
    assert found.decisions == sum(name in DECISION_TYPES for name, _ in rows)


def test_the_consistent_built_in_rules_are_the_mediators() -> None:
    decisions = [each for each in vars(signal_facts).values() if isinstance(each, Decision)]
    unseen = NOT_DUMPABLE, stalled("y")
    rules = {each.rule for each in unseen} | {each.rule for each in decisions}
    others = {"builtin:traced", OUT_OF_RULES, PROTECTS_SIGWRAP.rule}
    assert rules | others == {f"builtin:{name}" for name in consistent.BUILT_IN}


def test_a_row_that_only_says_so_was_not_masked(made: Mediated) -> None:
    made.run(program("git", "push"))
    found = made.edited(2, **BY_REST, masked=True)
    assert (found.row, found.not_judged) == (2, {})
