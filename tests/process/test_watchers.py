"""The watchers of a session: rules that escalate, loops, drift, attempts on sigwrap."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.support.harness import REFUSED, UNDER_TEST, Sigwrap

KILLED = 128 + signal.SIGKILL
LOOPS = "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done; echo survived"


def _policy(subject: Sigwrap, *sections: str) -> str:
    path = subject.folder / "watching.yaml"
    head = ["version: 1", "name: watching", "defaults: {command: allow, signal: allow}"]
    path.write_text("\n".join([*head, *sections]) + "\n")
    path.chmod(0o644)
    return str(path)


def _sent(subject: Sigwrap, *signals: str) -> list[dict[str, Any]]:
    """Return the agent signals that were sent, without their escalations."""
    payloads = [event.payload for event in subject.sealed_events("agent_signal")]
    payloads = [each for each in payloads if each["cause"] is None]
    return [each for each in payloads if not signals or each["signal"] in signals]


# escalate


def test_a_rule_that_escalates_kills_the_tree_after_its_event(sigwrap: Sigwrap) -> None:
    rule = "name: never, commands: [id], decision: deny, message: not that, escalate: SIGPOLICY"
    policy = _policy(sigwrap, f"command_rules: [{{{rule}}}]")
    done = sigwrap.run("-p", policy, "--", "sh", "-c", "id --token=abcdefgh; sleep 99; echo on")
    assert done.returncode == KILLED
    assert b"on\n" not in done.stdout
    assert b": not that (rule never, policy watching)" in done.stderr
    [sent] = _sent(sigwrap, "SIGPOLICY")
    assert sent["source"] == "rule never of watching"
    assert sent["reason"] == "id '--token=***'"
    kinds = [event.type for event in sigwrap.sealed_events()]
    at = kinds.index("exec_denied")
    assert at < kinds.index("agent_signal") < kinds.index("interrupt_escalated")


# watch.loop


@pytest.mark.promise("agent signals")
def test_a_loop_ends_the_run_if_the_policy_says_so(sigwrap: Sigwrap) -> None:
    policy = _policy(sigwrap, "watch: {loop: {same_exec: 10, within: 60, action: kill}}")
    done = sigwrap.run("-p", policy, "--", "sh", "-c", LOOPS)
    assert (done.returncode, done.stdout) == (KILLED, b"")
    ran = [event.payload["argv"] for event in sigwrap.sealed_events("exec_allowed")]
    assert ran.count(["/bin/true"]) in (10, 11)
    assert len(_sent(sigwrap, "SIGLOOP")) == 1


# watch.drift


def test_drift_ends_the_run_if_the_policy_says_so(as_user: Sigwrap) -> None:
    learned = ("sh", "-c", "id; env ls -l; true")
    assert as_user.run("--", *learned).returncode == 0
    session = as_user.events("session_started")[0].payload["session_id"]
    generated = as_user.run("policy", "learn", "--new", session, "--name", "usual")
    assert generated.returncode == 0, generated
    profile = as_user.folder / "profile.yaml"
    profile.write_bytes(generated.stdout)
    profile.chmod(0o644)
    policy = _policy(as_user, "watch: {drift: kill}")
    assert as_user.run("-p", policy, f"--profile={profile}", "--", *learned).returncode == 0
    assert _sent(as_user) == []
    refused = as_user.run("-p", policy, "--profile=agent-strict", "--", *learned)
    assert refused.returncode == REFUSED
    assert b"no such file" in refused.stderr
    line = "id; uname; sleep 99; echo on"
    done = as_user.run("-p", policy, f"--profile={profile}", "--", "sh", "-c", line)
    assert done.returncode == KILLED
    assert b"on" not in done.stdout
    [sent] = _sent(as_user)
    assert (sent["signal"], sent["source"]) == ("SIGDRIFT", "watch.drift")


# trust.boundary


def test_harmless_acts_are_not_attempts(as_user: Sigwrap) -> None:
    """A question from inside of what waits; a signal to the group, which sigwrap is in as well
    (`kill 0`, and what timeout does)."""
    policy = _policy(as_user, "trust: {boundary: kill}")
    line = f"""
        {UNDER_TEST} approvals; echo status $?
        trap '' TERM; kill -TERM 0; echo on
    """
    done = as_user.run("-p", policy, "--", "bash", "-c", line)
    assert done.stdout == f"status {REFUSED}\non\n".encode()
    assert b"processes in a session can't answer" in done.stderr
    assert (_sent(as_user), as_user.sealed_events("store_tampered")) == ([], [])


@pytest.mark.parametrize("words", ["approve abc123", "signal SIGUSR1"])
def test_answering_or_signalling_from_inside_is_an_attempt(sigwrap: Sigwrap, words: str) -> None:
    policy = _policy(sigwrap, "trust: {boundary: kill}")
    done = sigwrap.run("-p", policy, "--", "sh", "-c", f"{UNDER_TEST} {words}; sleep 99")
    assert done.returncode == KILLED
    [sent] = _sent(sigwrap, "SIGTRUST")
    assert "connected to the control socket" in sent["reason"]


def test_a_loop_stops_the_session_if_the_policy_says_so(as_user: Sigwrap) -> None:
    policy = _policy(as_user, "watch: {loop: {same_exec: 5, within: 60s, action: stop}}")
    line = "while :; do /bin/true; done"
    process = as_user.start("-p", policy, "--no-report", "--", "sh", "-c", line)
    as_user.await_event("tree_frozen")
    told = [each.payload for each in as_user.events("agent_signal")]
    signals = [each["signal"] for each in told if each["outcome"] == "delivered"]
    assert signals == ["SIGLOOP", "SIGSTOP"]  # it may have waited for an exec before
    done = as_user.run("signal", "SIGKILL")
    assert done.returncode == 0
    process.communicate()
    assert process.returncode == KILLED
