"""What people fear: an agent that ends itself, its workers, what runs it, or somebody else's work.
None of its steps does, whatever it tries, and all else inside is free."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import PYTHON
from tests.support.programs import needs
from tests.support.signal_lab import Lab

ALL_LIVE = {"step": 0, "ended": [], "handled": []}


def _agent_runs(
    lab: Lab, agent: Path, line: str, *options: str, ends: tuple[str, ...] = ()
) -> tuple[dict[str, Any], str]:
    """What the agent says in the end, and what was said on its standard error."""
    command = [*PYTHON, str(agent), line, *ends]
    done = lab.subject.run(*options, "--", *command)
    said = done.stderr.decode()
    assert done.returncode == 0, said
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told, said


@needs("pkill")
def test_pkill_ends_what_a_step_has_started_and_nobody_else(users_lab: Lab, programs: Path) -> None:
    name = f"agent-{uuid.uuid4().hex[:8]}.py"
    shutil.copy(programs / "agent.py", users_lab.subject.folder / name)
    outside = users_lab.outsider(f"outside-of-{name}")
    told, said = _agent_runs(
        users_lab, users_lab.subject.folder / name, f"pkill -f {name}; true", ends=("server",)
    )
    assert told == ALL_LIVE | {"ended": ["server"]}
    assert outside.lives
    blocked = users_lab.payloads("signal_blocked")
    rules = [each["rule_name"] for each in blocked if each["source_cmd"] == "pkill"]
    # The agent, its workers and the shell that runs pkill; sigwrap's own line has the name as well.
    assert rules.count("agent") == 4
    assert rules.count("outside") >= 1
    assert set(rules) == {"agent", "outside", "builtin:sigwrap"}
    (sent,) = (each for each in users_lab.payloads("signal_sent") if each["source_cmd"] == "pkill")
    assert (sent["rule_name"], sent["target_type"]) == ("session", "session")
    assert said.count("(rule agent, policy agent-default)") == 4
    assert said.count("(rule builtin:sigwrap)") == 1


@pytest.mark.parametrize(
    "line",
    [
        "kill -9 -1; bash -c 'kill -9 -1'",
        "for signal in KILL STOP TERM INT HUP QUIT; do kill -$signal $AGENT $WORKER $FORK; done;"
        "for signal in ALRM PIPE ABRT SEGV USR2 RTMIN RTMAX TSTP TTIN PROF PWR;"
        " do kill -$signal $AGENT; kill -$signal $WORKER; kill -$signal $FORK; done;"
        " kill -STOP $WORKER; kill -CONT $WORKER",
        "(setsid bash -c 'kill -9 $AGENT; kill -9 $WORKER' &) | cat",
        "set -m; (set -m; bash -c 'kill -9 $AGENT; kill -9 $WORKER' & wait)& wait",
    ],
)
def test_no_step_ends_the_agent_or_its_workers(users_lab: Lab, programs: Path, line: str) -> None:
    told, said = _agent_runs(users_lab, programs / "agent.py", f"{line}; true")
    assert told == ALL_LIVE
    assert "sigwrap: denied: SIG" in said


def test_the_agents_own_program_run_by_a_step_is_not_the_agent(
    users_lab: Lab, programs: Path
) -> None:
    kill = 'import os; [os.kill(int(os.environ[n]), 9) for n in ("AGENT",)]'
    python = " ".join(PYTHON)
    steps = (
        f"exec {python} -c '{kill}'",
        f"{python} -c '{kill}'",
        f"({python} -c '{kill}' &)",
        f"exec {python} -c 'import os; os.fork() and os._exit(0); {kill}'",
        f"cp {PYTHON[0]} mine; ./mine -ISc '{kill}'",
        f"exec -a agent.py {python} -c '{kill}'",
    )
    line = "; ".join(f"{{ {step}; }} 2>&1 | cat >&2" for step in steps)
    told, said = _agent_runs(users_lab, programs / "agent.py", f"{line}; true")
    assert told == ALL_LIVE
    assert said.count("sigwrap: denied: SIGKILL to ") == len(steps)


def test_what_it_handles_to_its_harm_does_not_reach_it(users_lab: Lab, programs: Path) -> None:
    """Handlers of a crash end the program, and node's of SIGUSR1 opens its debugger."""
    line = "kill -ABRT $PPID; one=$?; kill -USR1 $PPID; exit $one$?"
    extending = users_lab.subject.folder / "policy.yaml"
    extending.write_text(
        "version: 1\nname: of-a-test\nextends: agent-default\n"
        "command_rules:\n  - {name: every, commands: ['*'], decision: allow}\n"
    )
    told, said = _agent_runs(users_lab, programs / "agent.py", line, "-p", str(extending))
    assert told == ALL_LIVE | {"step": 11}
    denied = [(each["signal_name"], each["rule_name"]) for each in users_lab.payloads()]
    assert ("SIGABRT", "agent") in denied
    assert ("SIGUSR1", "agent-debugger") in denied
    assert "(rule agent, policy of-a-test)" in said
    assert "(rule agent-debugger, policy of-a-test)" in said


def test_a_sender_reads_once_that_it_was_denied(users_lab: Lab, programs: Path) -> None:
    line = "for i in 1 2 3 4 5; do kill $AGENT; bash -c 'kill $AGENT'; done; true"
    _told, said = _agent_runs(users_lab, programs / "agent.py", f"set -m; {line}")
    assert said.count("(rule agent, policy agent-default)") == 1 + 5


@needs("gdb")
def test_nobody_gets_at_the_agent_by_tracing_or_limiting_it(lab: Lab, programs: Path) -> None:
    line = (
        "for p in $AGENT $WORKER $FORK; do gdb -q -batch -p $p -ex 'call (int)kill(0, 9)'; "
        "prlimit --pid $p --cpu=1; renice 19 -p $p; done >/dev/null; "
        "gdb -q -batch -p $SERVER -ex 'info inferiors' >/dev/null"
    )
    told, said = _agent_runs(lab, programs / "agent.py", line)
    assert told == ALL_LIVE
    for what in ("ptrace", "prlimit64", "setpriority"):
        assert said.count(f"sigwrap: denied: {what} aimed at ") == 3
