"""What a session's watchers notice: rules that escalate, loops, drift, attempts on sigwrap."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import PYTHON, REFUSED, UNDER_TEST, Sigwrap
from tests.support.programs import needs

KILLED = 128 + signal.SIGKILL
LOOPS = "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done; echo survived"


def _policy(subject: Sigwrap, *sections: str) -> str:
    path = subject.folder / "watching.yaml"
    head = ["version: 1", "name: watching", "defaults: {command: allow, signal: allow}"]
    path.write_text("\n".join([*head, *sections]) + "\n")
    path.chmod(0o644)
    return str(path)


def _sent(subject: Sigwrap, *signals: str) -> list[dict[str, Any]]:
    """What follows for one is told of the first."""
    payloads = [event.payload for event in subject.sealed_events("agent_signal")]
    payloads = [each for each in payloads if each["cause"] is None]
    return [each for each in payloads if not signals or each["signal"] in signals]


def _kinds(subject: Sigwrap) -> list[str]:
    return [event.type for event in subject.sealed_events()]


# escalate


@pytest.mark.parametrize("decision", ["deny", "allow", "approve"])
def test_a_rule_that_escalates_kills_the_tree_after_its_event(
    sigwrap: Sigwrap, decision: str
) -> None:
    rule = f"name: never, commands: [id], decision: {decision}, escalate: SIGPOLICY"
    if decision == "deny":
        rule += ", message: not that"
    policy = _policy(sigwrap, f"command_rules: [{{{rule}}}]")
    done = sigwrap.run("-p", policy, "--", "sh", "-c", "id --token=abcdefgh; sleep 99; echo on")
    assert done.returncode == KILLED
    assert b"on\n" not in done.stdout
    if decision == "deny":
        assert b": denied by rule never of watching: not that" in done.stderr
    [sent] = _sent(sigwrap, "SIGPOLICY")
    assert sent["source"] == "rule never of watching"
    assert sent["reason"] == "id '--token=***'"
    kinds = _kinds(sigwrap)
    decided = {"deny": "exec_denied", "approve": "exec_denied"}
    at = [event.payload.get("rule_name") for event in sigwrap.events()].index("never")
    assert kinds[at] in (decided.get(decision, "exec_allowed"), "approval_requested")
    assert at < kinds.index("agent_signal") < kinds.index("interrupt_escalated")


# watch.loop


def test_the_same_command_twenty_times_is_a_loop_that_is_told_once(sigwrap: Sigwrap) -> None:
    """Of a replaced command and of others with other arguments there are fewer."""
    rule = "{name: r, commands: [id], decision: redirect, redirect_to: {command: /bin/true}}"
    watch = "watch: {loop: {same_exec: 10, within: 60}}"
    policy = _policy(sigwrap, f"command_rules: [{rule}]", watch)
    others = "for i in 1 2 3 4 5 6; do id; /bin/true $i; done; "
    done = sigwrap.run("-p", policy, "--", "sh", "-c", others + LOOPS)
    assert (done.returncode, done.stdout) == (0, b"survived\n")
    [sent] = _sent(sigwrap)
    assert sent["signal"] == "SIGLOOP"
    assert sent["reason"] == "/bin/true: 10 times within 60 s"


@pytest.mark.promise("agent signals")
def test_a_loop_ends_the_run_where_the_policy_says_so(sigwrap: Sigwrap) -> None:
    policy = _policy(sigwrap, "watch: {loop: {same_exec: 10, within: 60, action: kill}}")
    done = sigwrap.run("-p", policy, "--", "sh", "-c", LOOPS)
    assert (done.returncode, done.stdout) == (KILLED, b"")
    ran = [event.payload["argv"] for event in sigwrap.sealed_events("exec_allowed")]
    assert ran.count(["/bin/true"]) in (10, 11)
    assert len(_sent(sigwrap, "SIGLOOP")) == 1


# watch.drift


def _profile(subject: Sigwrap, *command: str) -> str:
    assert subject.run("--", *command).returncode == 0
    path = subject.folder / "profile.yaml"
    session = subject.events("session_started")[0].payload["session_id"]
    generated = subject.run("policy", "generate", session, "--name", "usual")
    assert generated.returncode == 0, generated
    path.write_bytes(generated.stdout)
    path.chmod(0o644)
    return str(path)


@needs("git")
def test_what_no_profile_has_is_told_once_for_each_program(sigwrap: Sigwrap) -> None:
    profile = _profile(sigwrap, "sh", "-c", "/bin/true; id; git --version; :")
    line = "/bin/true; id -u; ls; ls -l; ls; git status; git status -s; exec git --version"
    policy = _policy(sigwrap)
    done = sigwrap.run("-p", policy, "--profile", profile, "--", "sh", "-c", line)
    assert done.returncode == 0
    reasons = [each["reason"] for each in _sent(sigwrap, "SIGDRIFT")]
    assert [reason.split(":")[0] for reason in reasons] == ["ls", "git status"]
    assert all("usual doesn't have /" in reason for reason in reasons)


def test_drift_ends_the_run_where_the_policy_says_so(as_user: Sigwrap) -> None:
    learned = ("sh", "-c", "id; env ls -l; true")
    profile = _profile(as_user, *learned)
    policy = _policy(as_user, "watch: {drift: kill}")
    assert as_user.run("-p", policy, "--profile", profile, "--", *learned).returncode == 0
    assert _sent(as_user) == []
    line = "id; uname; sleep 99; echo on"
    done = as_user.run("-p", policy, f"--profile={profile}", "--", "sh", "-c", line)
    assert done.returncode == KILLED
    assert b"on" not in done.stdout
    [sent] = _sent(as_user)
    assert (sent["signal"], sent["source"]) == ("SIGDRIFT", "watch.drift")


def test_what_is_no_profile_is_an_error_before_anything_runs(sigwrap: Sigwrap) -> None:
    profile = sigwrap.folder / "profile.yaml"
    profile.write_text("version: 1\nname: x\ndefaults: {command: allow}\n")
    for chosen, why in (
        (profile, b"is no profile"),
        ("agent-strict", b"there is no such file"),
    ):
        done = sigwrap.run("--profile", str(chosen), "--", "sh", "-c", "echo ran")
        assert (done.returncode, done.stdout) == (REFUSED, b"")
        assert why in done.stderr
    assert not sigwrap.has_sessions()


# trust.boundary


def test_a_signal_to_sigwrap_is_told_and_a_flood_of_them_once(as_user: Sigwrap) -> None:
    line = "for i in 1 2 3 4 5 6 7 8 9; do kill -TERM $PPID; done; echo on"
    done = as_user.run("-p", _policy(as_user), "--", "bash", "-c", line)
    assert (done.returncode, done.stdout) == (0, b"on\n")
    [sent] = _sent(as_user)
    assert (sent["signal"], sent["source"]) == ("SIGTRUST", "trust.boundary")
    assert "tried SIGTERM by kill on sigwrap's own process" in sent["reason"]


def test_it_ends_the_run_where_the_policy_says_so(as_user: Sigwrap) -> None:
    policy = _policy(as_user, "trust: {boundary: kill}")
    done = as_user.run("-p", policy, "--", "bash", "-c", "kill -9 $PPID; sleep 99; echo on")
    assert (done.returncode, done.stdout) == (KILLED, b"")
    assert len(_sent(as_user, "SIGTRUST")) == 1


def test_what_is_no_attempt_ends_nothing(as_user: Sigwrap) -> None:
    """A question from inside of what waits; a log that is only touched; a signal to the group,
    which sigwrap is in as well (`kill 0`, and what timeout does)."""
    policy = _policy(as_user, "trust: {boundary: kill}")
    line = f"""
        {UNDER_TEST} approvals; echo status $?
        sleep .1; touch {as_user.store}/sessions/*; sleep 1.5
        trap '' TERM; kill -TERM 0; echo on
    """
    done = as_user.run("-p", policy, "--", "bash", "-c", line)
    assert done.stdout == f"status {REFUSED}\non\n".encode()
    assert b"it is inside a supervised session" in done.stderr
    assert (_sent(as_user), as_user.sealed_events("store_tampered")) == ([], [])


@pytest.mark.parametrize("words", ["approve abc123", "signal SIGUSR1"])
def test_who_answers_or_signals_from_inside_attempts_it(sigwrap: Sigwrap, words: str) -> None:
    policy = _policy(sigwrap, "trust: {boundary: kill}")
    done = sigwrap.run("-p", policy, "--", "sh", "-c", f"{UNDER_TEST} {words}; sleep 99")
    assert done.returncode == KILLED
    [sent] = _sent(sigwrap, "SIGTRUST")
    assert "connected to the control socket" in sent["reason"]


def test_the_log_removed_and_a_peer_from_inside_are_told(as_user: Sigwrap) -> None:
    peer = (
        "import glob,os,socket; s=socket.socket(socket.AF_UNIX); "
        f"s.connect(glob.glob('{as_user.store}/control/*.sock')[0]); s.recv(100); "
        f"[os.unlink(f) for f in glob.glob('{as_user.store}/sessions/*')]"
    )
    line = (
        f"import time\n{peer}\nwhile not glob.glob('{as_user.store}/sessions/*'): time.sleep(.01)"
    )
    done = as_user.run("-p", _policy(as_user), "--", *PYTHON, "-c", line)
    assert done.returncode == 0, done.stderr
    first, second = _sent(as_user, "SIGTRUST")
    assert "connected to the control socket" in first["reason"]
    assert "was removed" in second["reason"]


def test_what_shadows_a_system_command_is_told_once_and_ends_nothing(as_user: Sigwrap) -> None:
    """As `python3` does in a virtual environment that is activated."""
    folder = as_user.folder / "bin"
    folder.mkdir(mode=0o755)
    for name in ("ls", "id"):
        (folder / name).write_bytes(Path("/bin/true").read_bytes())
        (folder / name).chmod(0o755)
    if as_user.user is not None:
        os.chown(folder, as_user.user, as_user.user)
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    line = "for i in 1 2 3; do ls; id; done; echo on"
    policy = _policy(as_user, "trust: {boundary: kill}")
    done = as_user.run("-p", policy, "--", "sh", "-c", line, env=path)
    assert (done.returncode, done.stdout) == (0, b"on\n")
    signals = [each.payload["signal"] for each in as_user.sealed_events("agent_signal")]
    assert signals == ["SIGTRUST"] * 2
    sent = _sent(as_user, "SIGTRUST")
    assert {each["source"] for each in sent} == {"trust.path_shadow"}
    reasons = [each["reason"] for each in sent]
    assert [reason.partition(" was called, which shadows ")[0] for reason in reasons] == [
        str(folder / "ls"),
        str(folder / "id"),
    ]


def test_a_loop_stops_the_session_where_the_policy_says_so(as_user: Sigwrap) -> None:
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
