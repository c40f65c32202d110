"""Each decision again: what sigwrap wrote comes out the same, what somebody made of it doesn't."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sigwrap
from sigwrap.events import Event, Payload
from sigwrap.mediate import signal_rules
from sigwrap.mediate.effects import (
    CannotHold,
    Held,
    KernelRefused,
    LoadedOther,
    Ran,
    SignalTarget,
)
from sigwrap.mediate.exec_facts import not_dumpable, stalled
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.signal_facts import Everybody, Group, How, SignalFacts, Unresolved
from sigwrap.policy.judge.limits import Crowd
from sigwrap.policy.judge.request import (
    PROTECTS_SIGWRAP,
    Action,
    AskedFact,
    Decision,
    Program,
    TargetType,
    with_implied,
)
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.texts import policy_texts
from sigwrap.report.check import reproduce
from sigwrap.report.check.reproduce import OTHER_NAME, ReproductionFold
from sigwrap.report.check.verify import Outcome, verify_session, with_reproduction
from sigwrap.report.check.whatever_words import MASKED, TOO_LONG
from sigwrap.store.reader import Session
from sigwrap.store.writer import SessionLog
from tests.policy.test_properties import command_rules, policy, programs
from tests.policy.test_properties import signal_rules as rules_of
from tests.report.check.mediated import NO, YES, Mediated, program, reproduction

RULES = f"""\
command_rules:
  - {{name: push, commands: [git], subcommands: [push], decision: deny}}
  - {{name: pinned, commands: [tool], not_sha256: [{"a" * 64}], decision: deny}}
  - {{name: ask, commands: [npm], decision: approve}}
  - {{name: other, commands: [cat], decision: redirect, redirect_to: {{command: echo}}}}
  - {{name: stub, commands: [curl], decision: redirect, redirect_to: {{command: echo, via: stub}}}}
  - {{name: secret, commands: [aws], args_patterns: [hunter2], decision: deny}}
  - {{name: long, commands: [rm], truncated: true, decision: deny}}
  - {{name: rest, commands: ["*"], decision: allow}}
signal_rules:
  - {{name: ask, signals: [HUP], target: children, decision: approve}}
  - {{name: other, signals: [TERM], target: children, decision: redirect, redirect_to: INT}}
  - {{name: handled, signals: [USR1], target: children, handled: true, decision: deny}}
  - {{name: inside, signals: ["@all"], target: session, decision: allow}}
defaults: {{command: deny, signal: deny}}
limits: {{max_execs: 50, max_children: 3, max_depth: 4}}
"""
NOT_A_PATTERN = """\
version: 1
name: x
command_rules: [{name: r, commands: [a], args_patterns: ["("], decision: deny}]
"""
CHILD = SignalTarget(50, 5, "sleep", with_implied([TargetType.CHILDREN]))
OUTSIDE = SignalTarget(70, 5, "postgres", with_implied([TargetType.USER]))
BASH = Process(pid=40, start_time=1, parent=None, ppid=30, depth=1, comm="bash")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Mediated]:
    session = Mediated(tmp_path, RULES)
    yield session
    session.log.close()


CALLS = {
    How.CHANGE: "prlimit64",
    How.OWNER: "fcntl",
    How.PIDFD: "pidfd_send_signal",
    How.TRACE: "ptrace",
}


def kill(number: int, aim: Any, how: How = How.NUMBER, handles: bool = False) -> SignalFacts:
    call = CALLS.get(how, "kill")
    return SignalFacts(BASH, call, number, how, aim, 4711, (), lambda _pid, _signal: handles)


def everything(made: Mediated) -> None:
    """One of each way in which something is decided."""
    made.run(program("ls"))
    made.run(program("git", "push"))
    made.run(program("npm", "test"), says=YES)
    made.run(program("npm", "ci"), says=NO)
    made.run(program("cat", "x"))
    made.run(program("curl", "x"))
    made.run(program("echo"), stub_rule="stub", process=child_of_stub())
    made.run(program("ls"), held=CannotHold("it would run on"))
    made.run(program("ls"), held=Held.BY_ITS_TRACER)
    made.outcome = KernelRefused(errno.ENOEXEC)
    made.run(program("ls", "-l"))
    made.run(program("npm", "run"), says=YES)
    made.outcome = LoadedOther("another file", "/tmp/x", ("x",))
    made.run(program("ls", "-l"))
    made.outcome = Ran()
    made.run(program("npm", "i"), held=Held.NO)
    made.run(program("ls"), crowd=Crowd(4, 9))
    made.run(program("ls"), crowd=Crowd(3, 9))
    made.run(program("rm", *map(str, range(5_000))))
    wrapped = program("git", "push", path="/opt/git")
    made.run(program("env", "git", "push"), wrapped, here=(program("env", "git", "push"),))
    wrapped = program("npm", "i")
    made.run(program("env", "npm", "i"), wrapped, here=(program("env", "npm", "i"),))
    made.run(program("tool", sha256=AskedFact(lambda: "b" * 64)))
    made.run(program("tool", sha256=AskedFact(lambda: "a" * 64)))
    made.run(program("ls", elsewhere=True))
    made.run(program("ls", path="/tmp/ls", shadows="/usr/bin/ls", found="./ls"))
    made.run(program("x", path=".../x"))
    made._carry_out(made.execs.mediate(not_dumpable(BASH, "execve")), None, Held.YES, YES)
    made._carry_out(made.execs.mediate(stalled(BASH, "execve", "so")), None, Held.YES, YES)
    made.signal(kill(15, CHILD))
    made.signal(kill(1, CHILD), says=YES)
    made.signal(kill(1, CHILD), says=NO)
    for handles in (True, False):
        made.signal(kill(10, CHILD, handles=handles))
    made.signal(kill(9, OUTSIDE))
    made.signal(kill(9, Everybody()))
    made.signal(kill(9, Unresolved()))
    made.signal(kill(9, Group((CHILD, OUTSIDE))))
    made.signal(kill(9, Group((CHILD, OUTSIDE)), how=How.CHANGE))
    made.signal(kill(9, OUTSIDE, how=How.TRACE))
    made.signal(kill(9, SignalTarget(2, 1, "sigwrap", frozenset({TargetType.PARENT}))))


def child_of_stub() -> Process:
    return Process(pid=41, start_time=1, parent=None, ppid=40, depth=2, comm="stub")


def test_all_that_sigwrap_decides_comes_out_the_same(made: Mediated) -> None:
    everything(made)
    found = made.reproduction()
    assert (found.problem, found.row) == ("", 0)
    assert found.decisions > 30
    assert found.reproduced == found.decisions


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
    targets() | st.lists(targets(), min_size=1, max_size=3).map(lambda each: Group(tuple(each))),
    st.sampled_from([How.NUMBER, How.CHANGE, How.OWNER, How.PIDFD]),
)
LIMITS = st.sampled_from(["", "{max_execs: 2}", "{max_children: 2, max_depth: 3}"])


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
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
    assert set(found.not_judged) <= {MASKED, OTHER_NAME}


# What somebody makes of it


def forged(made: Mediated, folder: Path, change: Callable[[Event], Event]) -> Session:
    """The whole chain anew, by sigwrap's own writer."""
    log = SessionLog.create(str(folder), "s1")
    for event in map(change, made.session.events()):
        log.append(event.type, event.pid, event.payload, event.time_ns)
    log.close()
    return Session("s1", log.path)


def as_if(type_name: str, wanted: Callable[[Event], bool], **different: Any) -> Any:
    def change(event: Event) -> Event:
        if not wanted(event):
            return event
        return event._replace(type=type_name, payload={**event.payload, **different})

    return change


def is_of(*argv: str) -> Callable[[Event], bool]:
    return lambda event: event.payload.get("argv") == list(argv)


def is_signal(number: int, kind: str) -> Callable[[Event], bool]:
    def found(event: Event) -> bool:
        return event.type == kind and event.payload.get("original_signal") == number

    return found


NPM_ELSEWHERE = {"path": "/opt/npm", "name": "npm", "argv": ["npm", "test"]}


def is_yes(what: str) -> Callable[[Event], bool]:
    return lambda event: event.type == "approval_granted" and event.payload["what"] == what


def is_no(what: str) -> Callable[[Event], bool]:
    return lambda event: event.type == "approval_denied" and event.payload["what"] == what


def is_question(what: str) -> Callable[[Event], bool]:
    return lambda event: event.type == "approval_requested" and event.payload["what"] == what


FORGERIES = {
    "a denial": as_if("exec_allowed", is_of("git", "push"), decision="allow", rule_name="rest"),
    "a denial alone": as_if("exec_allowed", is_of("git", "push"), decision="allow"),
    "its type": as_if("exec_allowed", is_of("git", "push")),
    "an allowance": as_if("exec_denied", is_of("ls"), decision="deny", rule_name="push"),
    "what ran": as_if("exec_allowed", is_of("ls"), argv=["git", "push"], path="/usr/bin/git"),
    "a no": as_if("exec_allowed", is_of("npm", "ci"), decision="approve", approval_id="a9"),
    "a yes of another": as_if(
        "exec_allowed", is_of("npm", "ci"), decision="approve", approval_id=""
    ),
    "no question": as_if("exec_allowed", is_of("npm", "test"), decision="allow"),
    "a replacement": as_if("exec_allowed", is_of("cat", "x"), decision="allow"),
    "a stub": as_if(
        "exec_allowed", is_of("git", "push"), decision="allow", rule_name="stub", stub=True, ppid=7
    ),
    "a limit": as_if("exec_denied", is_of("ls"), decision="deny", rule_name="limits.max_children"),
    "a limit of execs": as_if(
        "exec_denied", is_of("ls"), decision="deny", rule_name="limits.max_execs"
    ),
    "a built-in denial": as_if(
        "exec_denied", is_of("ls"), decision="deny", rule_name="builtin:unreadable"
    ),
    "an unknown rule": as_if("exec_allowed", is_of("ls"), rule_name="builtin:nothing"),
    "a signal": as_if(
        "signal_sent", is_signal(9, "signal_blocked"), decision="allow", rule_name="inside"
    ),
    "a signal by a built-in rule": as_if(
        "signal_sent", is_signal(9, "signal_blocked"), decision="allow", rule_name="builtin:stub"
    ),
    "another signal": as_if("signal_redirected", is_signal(15, "signal_redirected"), signal=9),
    "a signal to sigwrap": as_if(
        "signal_sent",
        lambda event: event.payload.get("target_types") == ["parent"],
        decision="allow",
        rule_name="inside",
    ),
    "what was judged": as_if(
        "exec_allowed",
        is_of("git", "push"),
        decision="allow",
        rule_name="rest",
        programs=[{"path": "/usr/bin/ls", "name": "ls", "argv": ["ls"]}],
    ),
    "what was replaced by": as_if(
        "exec_redirected", is_of("cat", "x"), replacement_argv=["rm", "-rf", "x"]
    ),
    "what a stub stands in for": as_if(
        "exec_allowed", is_of("git", "push"), decision="allow", rule_name="stub", stub=True, ppid=40
    ),
    "a stub where there is none": as_if(
        "exec_allowed",
        is_of("git", "push"),
        decision="allow",
        rule_name="other",
        stub=True,
        ppid=40,
    ),
    "how a stub's command was answered": as_if("exec_audited", is_of("echo"), decision="audit"),
    "a built-in denial of what is known": as_if(
        "exec_denied", is_of("ls"), decision="deny", rule_name="builtin:unreadable", path=""
    ),
    "the number of a signal": as_if(
        "signal_blocked", is_signal(9, "signal_blocked"), original_signal=18
    ),
    "the name of a signal": as_if(
        "signal_blocked", is_signal(9, "signal_blocked"), signal_name="SIGCONT"
    ),
    "whom it reached": as_if(
        "signal_blocked",
        lambda event: event.payload.get("target_types") == ["user", "external"],
        target_type="children",
    ),
    "a signal by the rule of jobs": as_if(
        "signal_sent",
        is_signal(9, "signal_blocked"),
        decision="allow",
        rule_name="builtin:job",
        correlation="1",
    ),
    "a signal to an owner": as_if(
        "signal_sent",
        is_signal(9, "signal_blocked"),
        decision="allow",
        rule_name="builtin:owner",
        target_types=[],
        target_pid=70,
    ),
    "that it was let through": as_if(
        "signal_blocked",
        is_signal(10, "signal_sent"),
        decision="deny",
        rule_name="builtin:everybody",
    ),
    "who was asked": as_if("process_exited", lambda event: event.type == "approval_granted"),
    "a question": as_if("process_exited", is_question("npm test")),
    "a yes that nobody asked for": as_if(
        "approval_granted",
        lambda event: event.type == "exec_denied",
        approval_id="a9",
        kind="exec",
        what="git push",
    ),
    "a yes of another process": as_if(
        "exec_allowed",
        is_of("npm", "ci"),
        decision="approve",
        approval_id="a1",
    ),
    "what somebody said yes to": as_if(
        "exec_allowed", is_of("npm", "test"), argv=["npm", "publish"]
    ),
    "where somebody said yes to it": as_if("exec_allowed", is_of("npm", "test"), cwd="/etc"),
    "which file somebody said yes to": as_if(
        "exec_allowed", is_of("npm", "test"), path="/opt/npm", programs=[NPM_ELSEWHERE]
    ),
    "who said yes": as_if("exec_allowed", is_of("npm", "test"), reason="approved by bob"),
    "a yes whose reason is a no": as_if("approval_granted", is_yes("npm test"), reason="denied"),
    "what a no was said to": as_if("approval_denied", is_no("npm ci"), what="npm test"),
    "a no that answers nothing": as_if("approval_denied", is_no("npm ci"), approval_id="a99"),
    "a yes where nobody was asked": as_if("exec_allowed", is_of("ls"), approval_id="a1"),
    "a replacement where there is none": as_if(
        "exec_allowed", is_of("ls"), replacement_argv=["rm", "-rf", "/"]
    ),
    "how something was replaced": as_if("exec_redirected", is_of("cat", "x"), via="stub"),
    "whether it was recorded": as_if("exec_redirected", is_of("curl", "x"), record=True),
    "what the rule says of it": as_if("exec_denied", is_of("git", "push"), message="all is well"),
    "why": as_if("exec_denied", is_of("git", "push"), reason="approved by ann"),
    "who sent a signal": as_if("signal_blocked", is_signal(9, "signal_blocked"), source_pid=41),
    "that a signal was let through, as one of a group": as_if(
        "signal_blocked",
        lambda event: (
            is_signal(15, "signal_redirected")(event) or is_signal(10, "signal_sent")(event)
        ),
        decision="deny",
        correlation="1",
    ),
    "a signal without its name": as_if("signal_sent", is_signal(10, "signal_sent"), signal_name=""),
    "what the policy is called": as_if(
        "session_started", lambda event: event.seq == 1, policy="agent-strict"
    ),
    "a denial as the kernel's": as_if("exec_failed", is_of("git", "push"), error="ENOENT"),
    "a denial as a mismatch": as_if("exec_verification_failed", is_of("git", "push"), reason=""),
    "what the kernel refused": as_if(
        "exec_failed", lambda event: event.type == "exec_failed", path="/usr/bin/git"
    ),
    "the rule of what the kernel refused": as_if(
        "exec_failed", lambda event: event.type == "exec_failed", rule_name="push"
    ),
    "the policy": as_if(
        "session_started",
        lambda event: event.seq == 1,
        policy_sources=[{"name": "x", "text": "version: 1\nname: x\n"}],
    ),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_decision_that_was_edited_is_found_though_the_chain_is_made_anew(
    made: Mediated, tmp_path: Path, what: str
) -> None:
    everything(made)
    change = FORGERIES[what]
    rows = [event.seq for event in made.session.events() if change(event) != event]
    session = forged(made, tmp_path / "forged", change)
    fold = ReproductionFold(sigwrap.__version__)
    chain = verify_session(session, None, and_also=fold.add)
    assert chain.outcome is Outcome.INTACT
    found = fold.result()
    named = with_reproduction(chain, found)
    assert named.outcome is Outcome.BROKEN and named.problem
    # What rests on a row that is gone is what breaks.
    later = {"who was asked": "exec_allowed", "a question": "approval_granted"}.get(what)
    of_that = [event.seq for event in made.session.events() if event.type == later]
    assert named.row == (next(row for row in of_that if row > rows[0]) if later else rows[0])


@pytest.mark.parametrize(("version", "row"), [(sigwrap.__version__, 3), ("0.0.1", 0)])
def test_this_version_has_no_events_of_an_unknown_type(version: str, row: int) -> None:
    fold = ReproductionFold(version)
    texts = policy_texts([Source("p", "version: 1\nname: x\n")], {})
    started = {**texts, "policy": "x", "sigwrap": sigwrap.__version__, "judgement": 1}
    fold.add(Event(1, 0, "session_started", 1, started, ""))
    fold.add(Event(2, 0, "tree_frozen", 1, {}, ""))
    fold.add(Event(3, 0, "exec_denied2", 1, {"decision": "deny"}, ""))
    assert fold.result().row == row


def test_of_two_rows_that_break_the_first_is_named(made: Mediated, tmp_path: Path) -> None:
    everything(made)
    session = forged(made, tmp_path / "forged", FORGERIES["a denial"])
    chain = verify_session(session, None)
    found = reproduction(session)
    for row, named in ((found.row + 1, found.row), (found.row - 1, found.row - 1)):
        broken = replace(chain, outcome=Outcome.BROKEN, row=row, problem="its hash")
        assert with_reproduction(broken, found).row == named


# What can't be judged


def test_a_secret_that_a_rule_has_seen_is_no_forgery(made: Mediated) -> None:
    made.run(program("aws", "--password=hunter2"))
    made.run(program("aws", "--password=letmein"))
    found = made.reproduction()
    assert (found.row, found.decisions, found.reproduced) == (0, 2, 1)
    assert found.not_judged == {MASKED: 1}


def test_what_goes_by_another_name_than_its_path_is_not_vouched_for(
    made: Mediated, tmp_path: Path
) -> None:
    made.run(program("true"))
    assert made.reproduction().reproduced == 1
    other = {"path": "/usr/bin/true", "name": "true", "argv": ["true"]}

    def change(event: Event) -> Event:
        if event.type != "exec_allowed":
            return event
        return event._replace(
            payload={**event.payload, "path": "/usr/bin/git", "programs": [other]}
        )

    found = reproduction(forged(made, tmp_path / "forged", change))
    assert (found.reproduced, found.not_judged) == (0, {OTHER_NAME: 1})


def test_what_was_cut_is_no_forgery(made: Mediated) -> None:
    made.run(program("git", *["-c", "x=" + "y" * 100] * 100, "push"))
    found = made.reproduction()
    assert (found.row, found.reproduced, found.not_judged) == (0, 0, {TOO_LONG: 1})


def test_a_yes_to_what_was_cut_is_not_vouched_for(made: Mediated, tmp_path: Path) -> None:
    made.run(program("npm", "i", *["x" * 100] * 100), says=YES)
    found = made.reproduction()
    assert (found.row, found.reproduced, found.not_judged) == (0, 0, {TOO_LONG: 1})
    (seq,) = (event.seq for event in made.session.events() if event.type == "exec_allowed")
    found = reproduction(edited(made, tmp_path, seq, argv=["npm", "publish", "[...]"]))
    assert found.row == seq and found.problem.startswith("somebody said yes to another command")


def test_a_yes_to_a_group_is_for_each_of_it_whatever_its_rule(tmp_path: Path) -> None:
    rules = """\
signal_rules:
  - {name: one, signals: [TERM], target: {type: children, pattern: sleep}, decision: approve}
  - {name: other, signals: [TERM], target: {type: children, pattern: node}, decision: approve}
defaults: {signal: deny}
"""
    made = Mediated(tmp_path, rules)
    node = SignalTarget(51, 5, "node", with_implied([TargetType.CHILDREN]))
    made.signal(kill(15, Group((CHILD, node))), says=YES)
    made.signal(kill(15, Group((CHILD, node))), says=NO)
    made.signal(kill(15, node), says=YES)
    found = made.reproduction()
    assert (found.problem, found.decisions, found.reproduced) == ("", 5, 5)

    def change(event: Event) -> Event:
        if event.type != "signal_approved" or event.payload["target_pid"] != 50:
            return event
        return event._replace(payload={**event.payload, "target_pid": 52})

    found = reproduction(forged(made, tmp_path / "forged", change))
    assert found.problem == "somebody said yes to a signal to others"
    made.log.close()


def test_a_script_goes_on_by_one_yes_and_nothing_else_does(made: Mediated, tmp_path: Path) -> None:
    """`#!/usr/bin/env npm`: env's exec, and then npm's."""
    script = program("npm", "x", path="/usr/bin/npm")
    npm = program("npm", "/usr/bin/npm", "x")
    env = program("env", "npm", "/usr/bin/npm", "x")
    all_of_it = (script, env, npm)
    made.run(*all_of_it, here=(script, env), scripts=(script.path,), script_wraps=npm, says=YES)
    made.run(npm)
    found = made.reproduction()
    assert (found.problem, found.decisions, found.reproduced) == ("", 2, 2)
    rows = [event.seq for event in made.session.events() if event.type == "exec_allowed"]
    assert len(rows) == 2
    found = reproduction(edited(made, tmp_path, rows[1], argv=["npm", "publish"]))
    assert (found.problem, found.row) == ("nobody said yes to it before", rows[1])


@pytest.mark.parametrize("letters", [300, 1300, 2500, 5000])
def test_of_a_script_and_what_it_goes_on_with_one_event_may_be_cut(
    made: Mediated, letters: int
) -> None:
    script = program("npm", "x" * letters, path="/usr/bin/npm")
    npm = program("npm", "/usr/bin/npm", "x" * letters)
    env = program("env", "npm", "/usr/bin/npm", "x" * letters)
    shown = (script, env, npm)
    made.run(*shown, here=(script, env), scripts=(script.path,), script_wraps=npm, says=YES)
    made.run(npm)
    found = made.reproduction()
    assert found.problem == ""
    assert found.reproduced + sum(found.not_judged.values()) == found.decisions == 2


def test_what_was_cut_is_judged_apart_from_what_reads_the_same(tmp_path: Path) -> None:
    """A process can pass the very words that a cut left of others."""
    rule = r"{name: tail, commands: [wc], args_patterns: ['\[\.\.\.\]$'], decision: deny}"
    made = Mediated(tmp_path, f"command_rules: [{rule}]\ndefaults: {{command: allow}}\n")
    made.run(program("wc", "y" * 20_000))
    (cut,) = (each.payload for each in made.session.events() if each.type == "exec_allowed")
    made.run(program(*cut["argv"]))
    made.log.close()
    found = made.reproduction()
    assert (found.problem, found.decisions, found.reproduced) == ("", 2, 2)


@pytest.mark.parametrize("different", [{"sigwrap": "0.0.1"}, {"judgement": None}])
def test_another_version_may_have_judged_otherwise(
    made: Mediated, tmp_path: Path, different: Payload
) -> None:
    everything(made)

    def change(event: Event) -> Event:
        if event.seq == 1:
            return event._replace(payload={**event.payload, **different})
        return FORGERIES["a denial"](event)  # type: ignore[no-any-return]

    found = reproduction(forged(made, tmp_path / "forged", change))
    assert found.row == 0
    assert list(found.not_judged) == ["they were made by another version of sigwrap"]
    assert found.reproduced == found.decisions - sum(found.not_judged.values())


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        (None, "the log holds no policy"),
        ("x", "the log holds no policy"),
        ([3, None], "the log holds no policy"),
        ([{"name": 3, "text": []}], "the recorded policy doesn't load: "),
        ([{"name": "p", "text": "\udce9"}], "the recorded policy doesn't load: "),
        ([{"name": "ci.yaml", "text": "\udce9", "shipped": True}], "the recorded policy doesn't"),
        ([{"name": "p", "text": "version: 1\nname: x\nextends: y"}], "the recorded policy doesn't"),
        ([{"name": "ci.yaml", "text": NOT_A_PATTERN, "shipped": True}], "the recorded policy d"),
    ],
)
def test_a_policy_that_is_none_is_said(sources: object, why: str) -> None:
    fold = ReproductionFold(sigwrap.__version__)
    started = {"policy_sources": sources, "policy_variables": {"HOME": 3, "x": "\udce9"}}
    fold.add(Event(1, 0, "session_started", 1, started, ""))
    fold.add(Event(2, 0, "exec_allowed", 1, {"decision": "allow", "argv": ["ls"]}, ""))
    found = fold.result()
    assert [reason.startswith(why) for reason in found.not_judged] == [True]
    assert found.row == 1  # its digest is of another


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
TYPES = [*reproduce._DECISIONS_OF, "approval_granted", "process_exited"]


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(TYPES),
            st.dictionaries(st.sampled_from(FIELDS), ANYTHING | st.sampled_from(["allow", "deny"])),
        ),
        max_size=4,
    )
)
def test_a_log_from_elsewhere_may_hold_anything(rows: list[tuple[str, Payload]]) -> None:
    fold = ReproductionFold(sigwrap.__version__)
    texts = policy_texts([Source("p", f"version: 1\nname: x\n{RULES}")], {})
    started = {**texts, "sigwrap": sigwrap.__version__, "judgement": 1}
    fold.add(Event(1, 0, "session_started", 1, started, ""))
    for seq, (type_name, payload) in enumerate(rows, start=2):
        fold.add(Event(seq, 0, type_name, 1, json.loads(json.dumps(payload)), ""))
    found = fold.result()
    assert found.decisions == sum(name in reproduce._DECISIONS_OF for name, _ in rows)


def test_the_rules_beneath_every_policy_are_the_mediators() -> None:
    denying = {
        each.rule
        for each in vars(signal_rules).values()
        if isinstance(each, Decision) and each.action is Action.DENY
    }
    assert denying == {
        *reproduce.UNAIMED_RULES,
        reproduce.PROTECTS_SIGWRAP_RULE,
        reproduce.PTRACE_RULE,
    }
    assert {not_dumpable(BASH, "x").rule, stalled(BASH, "x", "y").rule} == reproduce.UNSEEN_RULES
    assert PROTECTS_SIGWRAP.rule == reproduce.PROTECTS_SIGWRAP_RULE
    assert signal_rules.OF_A_STUB.rule == reproduce.STUB_RULE
    assert signal_rules.OWNER_JUDGED.rule == reproduce.OWNER_RULE
    assert signal_rules.OF_OWN_JOB.rule == reproduce.JOB_RULE


def edited(made: Mediated, folder: Path, seq: int, **fields: Any) -> Session:
    def change(event: Event) -> Event:
        if event.seq != seq:
            return event
        return event._replace(type="exec_allowed", payload={**event.payload, **fields})

    return forged(made, folder / "forged", change)


ALLOWED = {"decision": "allow", "rule_name": "rest", "message": ""}


@pytest.mark.parametrize(
    "excuse",
    [
        {"masked": True},
        {"cut": {"argv": {"size": 9, "hash": "00"}}},
        {"cut": {"argv": {"json": 300, "blake2b": "00"}}},
        {"cut": "x"},
    ],
)
def test_a_row_that_only_says_so_was_not_masked_or_cut(
    made: Mediated, tmp_path: Path, excuse: Payload
) -> None:
    made.run(program("git", "push"))
    found = reproduction(edited(made, tmp_path, 2, **ALLOWED, **excuse))
    assert (found.row, found.not_judged) == (2, {})


def test_a_mask_excuses_nothing_where_the_rule_asks_for_no_words(tmp_path: Path) -> None:
    rules = """\
command_rules:
  - {name: never, commands: [dd], decision: deny}
  - {name: some, commands: [aws], args_patterns: [x], decision: deny}
  - {name: rest, commands: ["*"], decision: allow}
"""
    made = Mediated(tmp_path, rules)
    made.run(program("dd", "--password=x"))
    found = reproduction(edited(made, tmp_path, 2, **ALLOWED))
    assert (found.row, found.not_judged) == (2, {})
    assert "whatever its other words are" in found.problem
    made.log.close()
    (tmp_path / "other").mkdir()
    made = Mediated(tmp_path / "other", rules)
    made.run(program("aws", "--password=x"))
    found = made.reproduction()
    assert (found.row, found.not_judged_rows) == (0, {MASKED: (2,)})
    made.log.close()


def test_the_first_rows_are_named(made: Mediated) -> None:
    for _ in range(7):
        made.run(program("aws", "--password=hunter2"))
    found = made.reproduction()
    assert found.not_judged == {MASKED: 7}
    assert found.not_judged_rows == {MASKED: (2, 3, 4, 5, 6)}
