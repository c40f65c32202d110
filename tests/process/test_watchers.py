"""What a session's watchers notice: rules that escalate, loops, drift, attempts on sigwrap."""

from __future__ import annotations

import os
import signal
from pathlib import Path
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
    """What follows for one is told of the first."""
    payloads = [event.payload for event in subject.sealed_events("agent_signal")]
    payloads = [each for each in payloads if each["cause"] is None]
    return [each for each in payloads if not signals or each["signal"] in signals]


def _kinds(subject: Sigwrap) -> list[str]:
    return [event.type for event in subject.sealed_events()]


# escalate


@pytest.mark.parametrize("decision", ["deny", "allow", "audit", "approve"])
def test_a_rule_that_escalates_kills_the_tree_after_its_event(
    as_user: Sigwrap, decision: str
) -> None:
    rule = f"{{name: never, commands: [id], decision: {decision}, escalate: SIGPOLICY}}"
    policy = _policy(as_user, f"command_rules: [{rule}]")
    done = as_user.run("-p", policy, "--", "sh", "-c", "id --token=abcdefgh; sleep 99; echo on")
    assert (done.returncode, done.stdout.replace(b"uid", b"")) != (0, b"on\n")
    assert done.returncode == KILLED
    assert b"on\n" not in done.stdout
    [sent] = _sent(as_user, "SIGPOLICY")
    assert sent["source"] == "rule never of watching"
    assert sent["reason"] == "id '--token=***'"
    kinds = _kinds(as_user)
    decided = {"deny": "exec_denied", "approve": "exec_denied", "audit": "exec_audited"}
    at = [event.payload.get("rule_name") for event in as_user.events()].index("never")
    assert kinds[at] in (decided.get(decision, "exec_allowed"), "approval_requested")
    assert at < kinds.index("agent_signal") < kinds.index("interrupt_escalated")


def test_the_denied_caller_is_told_before(as_user: Sigwrap) -> None:
    rule = "{name: never, commands: [id], decision: deny, message: not that, escalate: SIGPOLICY}"
    done = as_user.run("-p", _policy(as_user, f"command_rules: [{rule}]"), "--", "sh", "-c", "id")
    assert b"sigwrap: id: denied by rule never of watching: not that" in done.stderr


def test_a_signal_rule_escalates_too(as_user: Sigwrap) -> None:
    rule = "{name: never, signals: [USR2], decision: deny, escalate: SIGPOLICY}"
    policy = _policy(as_user, f"signal_rules: [{rule}]")
    line = "sleep 99 & kill -USR2 $!; sleep 99; echo on"
    done = as_user.run("-p", policy, "--", "bash", "-c", line)
    assert (done.returncode, done.stdout) == (KILLED, b"")
    [sent] = _sent(as_user)
    assert sent["signal"] == "SIGPOLICY"
    assert sent["reason"].startswith("SIGUSR2 to ")


def test_a_replaced_command_escalates_too(as_user: Sigwrap) -> None:
    rule = (
        "{name: never, commands: [id], decision: redirect, redirect_to: {command: /bin/sleep, "
        "args: ['99']}, escalate: SIGPOLICY}"
    )
    done = as_user.run("-p", _policy(as_user, f"command_rules: [{rule}]"), "--", "sh", "-c", "id;:")
    assert done.returncode == KILLED
    assert [each["reason"] for each in _sent(as_user)] == ["id"]


# watch.loop


def test_the_same_command_twenty_times_is_a_loop_that_is_told_once(as_user: Sigwrap) -> None:
    policy = _policy(as_user, "watch: {loop: {same_exec: 10, within: 60}}")
    done = as_user.run("-p", policy, "--", "sh", "-c", LOOPS)
    assert (done.returncode, done.stdout) == (0, b"survived\n")
    [sent] = _sent(as_user)
    assert sent["signal"] == "SIGLOOP"
    assert sent["reason"] == "/bin/true: 10 times within 60 s"


def test_a_loop_ends_the_run_where_the_policy_says_so(as_user: Sigwrap) -> None:
    policy = _policy(as_user, "watch: {loop: {same_exec: 10, within: 60, action: kill}}")
    done = as_user.run("-p", policy, "--", "sh", "-c", LOOPS)
    assert (done.returncode, done.stdout) == (KILLED, b"")
    ran = [event.payload["argv"] for event in as_user.sealed_events("exec_allowed")]
    assert ran.count(["/bin/true"]) in (10, 11)
    assert len(_sent(as_user, "SIGLOOP")) == 1


def test_other_arguments_and_other_folders_are_no_loop(as_user: Sigwrap) -> None:
    policy = _policy(as_user, "watch: {loop: {same_exec: 3, within: 60, action: kill}}")
    line = "for i in 1 2 3 4; do /bin/true $i; mkdir $i; cd $i; /bin/true; done; echo on"
    done = as_user.run("-p", policy, "--", "sh", "-c", line)
    assert (done.returncode, done.stdout) == (0, b"on\n")
    assert _sent(as_user) == []


@pytest.mark.parametrize("via", ["via: exec", "via: stub", "via: stub, record: true"])
def test_a_replaced_command_counts_once(as_user: Sigwrap, via: str) -> None:
    instead = f"redirect_to: {{command: /bin/true, {via}}}"
    rule = f"{{name: r, commands: [id], decision: redirect, {instead}}}"
    watch = "watch: {loop: {same_exec: 3, within: 60}}"
    policy = _policy(as_user, f"command_rules: [{rule}]", watch)
    for times, sent in (("1 2", 0), ("1 2 3", 1)):
        done = as_user.run("-p", policy, "--", "sh", "-c", f"for i in {times}; do id; done; :")
        assert done.returncode == 0
        assert len(_sent(as_user, "SIGLOOP")) == sent


# watch.drift


def _profile(subject: Sigwrap, *command: str) -> str:
    assert subject.run("--", *command).returncode == 0
    path = subject.folder / "profile.yaml"
    session = subject.events("session_started")[0].payload["session_id"]
    generated = subject.native(UNDER_TEST, "policy", "generate", session, "--name", "usual")
    assert generated.returncode == 0, generated
    path.write_bytes(generated.stdout)
    path.chmod(0o644)
    return str(path)


def test_what_no_profile_has_is_told_once_for_each_program(as_user: Sigwrap) -> None:
    profile = _profile(as_user, "sh", "-c", "/bin/true; id; git --version; :")
    line = "/bin/true; id -u; ls; ls -l; ls; git status; git status -s; exec git --version"
    policy = _policy(as_user)
    done = as_user.run("-p", policy, "--profile", profile, "--", "sh", "-c", line)
    assert done.returncode == 0
    reasons = [each["reason"] for each in _sent(as_user, "SIGDRIFT")]
    assert [reason.split(":")[0] for reason in reasons] == ["ls", "git status"]
    assert all("usual doesn't have /" in reason for reason in reasons)


def test_drift_ends_the_run_where_the_policy_says_so(as_user: Sigwrap) -> None:
    profile = _profile(as_user, "sh", "-c", "id; true")
    policy = _policy(as_user, "watch: {drift: kill}")
    line = "id; ls; sleep 99; echo on"
    done = as_user.run("-p", policy, f"--profile={profile}", "--", "sh", "-c", line)
    assert done.returncode == KILLED
    assert b"on" not in done.stdout
    [sent] = _sent(as_user)
    assert (sent["signal"], sent["source"]) == ("SIGDRIFT", "watch.drift")


def test_what_was_learned_is_no_drift(as_user: Sigwrap) -> None:
    line = ("sh", "-c", "id; env ls -l; true")
    profile = _profile(as_user, *line)
    policy = _policy(as_user, "watch: {drift: kill}")
    assert as_user.run("-p", policy, "--profile", profile, "--", *line).returncode == 0
    assert _sent(as_user) == []


def test_of_many_new_programs_no_more_than_a_hundred_are_told(as_user: Sigwrap) -> None:
    profile = _profile(as_user, "sh", "-c", "true")
    line = "i=0; while [ $i -lt 105 ]; do cp /bin/true p$i; ./p$i; i=$((i+1)); done"
    policy = _policy(as_user)
    assert as_user.run("-p", policy, "--profile", profile, "--", "sh", "-c", line).returncode == 0
    sent = _sent(as_user, "SIGDRIFT")
    assert len(sent) == 100
    assert sent[-1]["reason"].endswith("(no more of these are told: there were 100)")
    assert "no more" not in sent[-2]["reason"]


@pytest.mark.parametrize(
    "text, why",
    [
        (None, b"there is no such file"),
        ("version: 1\nname: x\ndefaults: {command: allow}\n", b"is no profile"),
        ("version: 1\nname: x\nfolder: y\n", b"unknown"),
        ("not a policy", b"profile.yaml"),
        (
            "version: 1\nname: x\ncommand_rules:\n  - {name: r, commands: [a], decision: allow, "
            f"sha256: [{'0' * 64}]}}\n",
            b"its rule r has digests",
        ),
    ],
)
def test_what_is_no_profile_is_an_error_before_anything_runs(
    sigwrap: Sigwrap, text: str | None, why: bytes
) -> None:
    profile = sigwrap.folder / "profile.yaml"
    if text is not None:
        profile.write_text(text)
    done = sigwrap.run("--profile", str(profile), "--", "sh", "-c", "echo ran")
    assert (done.returncode, done.stdout) == (REFUSED, b"")
    assert why in done.stderr
    assert not sigwrap.has_sessions()


def test_a_shipped_policy_is_no_file(sigwrap: Sigwrap) -> None:
    done = sigwrap.run("--profile", "agent-strict", "--", "true")
    assert (done.returncode, b"there is no such file" in done.stderr) == (REFUSED, True)


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


def test_whoever_signals_its_group_means_not_sigwrap(as_user: Sigwrap) -> None:
    """`kill 0`, and what timeout does: sigwrap is in that group as well."""
    policy = _policy(as_user, "trust: {boundary: kill}")
    line = "trap '' TERM; kill -TERM 0; echo on"
    done = as_user.run("-p", policy, "--", "bash", "-c", line)
    assert done.stdout == b"on\n"
    assert _sent(as_user, "SIGTRUST") == []


def test_the_log_removed_and_a_peer_from_inside_are_told(as_user: Sigwrap) -> None:
    peer = (
        "import glob,os,socket; s=socket.socket(socket.AF_UNIX); "
        f"s.connect(glob.glob('{as_user.store}/control/*.sock')[0]); s.recv(100); "
        f"[os.unlink(f) for f in glob.glob('{as_user.store}/sessions/*')]"
    )
    line = (
        f"import time\n{peer}\nwhile not glob.glob('{as_user.store}/sessions/*'): time.sleep(.01)"
    )
    python = os.path.realpath("/usr/bin/python3")
    done = as_user.run("-p", _policy(as_user), "--", python, "-c", line)
    assert done.returncode == 0, done.stderr
    first, second = _sent(as_user, "SIGTRUST")
    assert "connected to the control socket" in first["reason"]
    assert "was removed" in second["reason"]


def test_who_only_touches_the_log_attempts_nothing(as_user: Sigwrap) -> None:
    policy = _policy(as_user, "trust: {boundary: kill}")
    line = f"sleep .1; touch {as_user.store}/sessions/*; sleep 1.5; echo on"
    done = as_user.run("-p", policy, "--", "sh", "-c", line)
    assert (done.returncode, done.stdout) == (0, b"on\n")
    assert (_sent(as_user), as_user.sealed_events("store_tampered")) == ([], [])


@pytest.mark.parametrize("words", ["approvals", "approvals --json", "approvals --full abc123"])
def test_who_asks_inside_what_waits_is_refused_and_attempts_nothing(
    as_user: Sigwrap, words: str
) -> None:
    policy = _policy(as_user, "trust: {boundary: kill}")
    line = f"{UNDER_TEST} {words}; echo status $?"
    done = as_user.run("-p", policy, "--", "sh", "-c", line)
    assert (done.returncode, done.stdout) == (0, f"status {REFUSED}\n".encode())
    assert b"it is inside a supervised session" in done.stderr
    assert _sent(as_user) == []


@pytest.mark.parametrize("words", ["approve abc123", "deny abc123", "signal SIGUSR1"])
def test_who_answers_or_signals_from_inside_attempts_it(as_user: Sigwrap, words: str) -> None:
    policy = _policy(as_user, "trust: {boundary: kill}")
    done = as_user.run("-p", policy, "--", "sh", "-c", f"{UNDER_TEST} {words}; sleep 99")
    assert done.returncode == KILLED
    [sent] = _sent(as_user, "SIGTRUST")
    assert "connected to the control socket" in sent["reason"]


@pytest.mark.parametrize("boundary", ["log", "stop", "kill"])
def test_what_shadows_a_system_command_is_told_once_and_ends_nothing(
    as_user: Sigwrap, boundary: str
) -> None:
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
    policy = _policy(as_user, f"trust: {{boundary: {boundary}}}")
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


def test_who_watches_nothing_is_told_of_nothing(as_user: Sigwrap) -> None:
    policy = _policy(as_user, "watch: {drift: kill}", "trust: {boundary: kill}")
    assert as_user.run("-p", policy, "--", "sh", "-c", LOOPS).returncode == 0
    assert _sent(as_user) == []


def test_hostile_words_are_shown_as_what_they_are(as_user: Sigwrap) -> None:
    policy = _policy(as_user, "watch: {loop: {same_exec: 2, within: 60}}")
    (as_user.folder / "a\nb").symlink_to("/bin/true")
    line = "./a\nb $(printf '\\033[2J') \nexit"
    script: Path = as_user.folder / "script"
    script.write_text("for i in 1 2 3; do './a\nb' \"$(printf '\\033[2J')\"; done\n")
    script.chmod(0o644)
    assert as_user.run("-p", policy, "--", "sh", str(script)).returncode == 0, line
    [sent] = _sent(as_user)
    assert sent["reason"].isprintable()


def test_a_loop_stops_the_session_where_the_policy_says_so(as_user: Sigwrap) -> None:
    policy = _policy(as_user, "watch: {loop: {same_exec: 5, within: 60s, action: stop}}")
    line = "while :; do /bin/true; done"
    process = as_user.start("-p", policy, "--no-report", "--", "sh", "-c", line)
    as_user.await_event("tree_frozen")
    told = [each.payload for each in as_user.events("agent_signal")]
    signals = [each["signal"] for each in told if each["outcome"] == "delivered"]
    assert signals == ["SIGLOOP", "SIGSTOP"]  # it may have waited for an exec before
    done = as_user.native(UNDER_TEST, "signal", "SIGKILL")
    assert done.returncode == 0
    process.communicate()
    assert process.returncode == KILLED
