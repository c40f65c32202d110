"""SIGUSR1 and SIGUSR2: how a session stands, and a copy of its log, for a person."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.support.harness import Running, Sigwrap
from tests.support.waiting import reader

OBSERVE = ("-p", "agent-observe", "--no-report", "--")
ASKS = """
version: 1
name: asks
defaults: {command: allow, signal: allow}
limits: {max_processes: 50}
command_rules:
  - {name: ask, commands: [id], decision: approve}
"""


def sent(subject: Sigwrap, *words: str) -> str:
    done = subject.run("signal", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def started(subject: Sigwrap, *words: str) -> Running:
    process = subject.start(*words)
    reader(process.stdout).until(rb"ready")
    return process


def test_how_it_stands_is_told(as_user: Sigwrap) -> None:
    policy = as_user.folder / "asks.yaml"
    policy.write_text(ASKS)
    policy.chmod(0o644)
    words = ("-p", str(policy), "--no-report", "--approvals", "control", "--")
    text = "sleep 1000 & (printf ready; exec id) & wait"
    process = started(as_user, *words, "sh", "-c", text)
    as_user.await_event("approval_requested")
    sent(as_user, "SIGUSR1", "--reason", "a look")
    (event,) = as_user.events("diagnostic")
    commands = " ".join(map(str, event.payload["processes"]))
    assert "sleep 1000" in commands
    assert "id" in str(event.payload["approvals"])
    assert "max_processes" in str(event.payload["limits"])
    process.kill()
    said = process.communicate()[1].decode()
    assert "sleep 1000" in said
    assert all(line.startswith("sigwrap: ") for line in said.splitlines())


def test_a_copy_of_the_log_is_saved_and_can_be_read(as_user: Sigwrap) -> None:
    process = started(as_user, *OBSERVE, "sh", "-c", "echo ready; read line; exit 3")
    said = sent(as_user, "SIGUSR2")
    document = json.loads(sent(as_user, "SIGUSR2", "--json"))
    paths = [Path(each.payload["path"]) for each in as_user.events("checkpoint")]
    assert f"SIGUSR2: the checkpoint is {paths[0]} (session" in said
    assert document["checkpoint"] == str(paths[1])
    assert len(set(paths)) == 2
    for path in paths:
        assert path.parent == as_user.store / "checkpoints"
        assert path.stat().st_mode & 0o777 == 0o600
        assert as_user.run("verify", str(path)).returncode in (0, 1)
        report = as_user.run("report", str(path))
        assert report.returncode == 0
        assert b"1 audited" in report.stdout
    process.say(b"\n")
    assert process.wait() == 3
    assert os.listdir(as_user.store / "checkpoints") != []


def test_a_stopped_session_is_seen_to_be_one(as_user: Sigwrap) -> None:
    process = started(as_user, *OBSERVE, "sh", "-c", "echo ready; read line; exit 3")

    def shown() -> tuple[str, str, str]:
        words = (("sessions",), ("report",), ("why",))
        sessions, report, why = (as_user.run(*each).stdout for each in words)
        return sessions.decode(), report.decode().splitlines()[0], why.decode()

    sent(as_user, "SIGSTOP", "--reason", "lunch")
    as_user.await_event("tree_frozen")
    sessions, report, why = shown()
    assert "  stopped  " in sessions
    assert report.startswith("running for ") and "stopped since" in report and "lunch" in report
    assert why.startswith("stopped since") and "agent signal SIGSTOP from uid" in why
    listed = json.loads(as_user.run("sessions", "--json").stdout)
    assert listed["sessions"][-1]["stopped"] is True
    sent(as_user, "SIGUSR1")
    assert as_user.events("diagnostic")[-1].payload["stopped"]["held"] == 0
    assert sent(as_user, "SIGCONT").startswith("SIGCONT: goes on: 1 process (session")
    assert not any("stopped" in each for each in shown())
    process.say(b"\n")
    assert process.wait() == 3
