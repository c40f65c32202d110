"""What people report most: an agent's `pkill -f` that matches itself, its neighbours and somebody's
server. Everybody lives but what it started itself, and the log names both sides."""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from pathlib import Path

import pytest

from sigwrap.linux import procfs
from tests.support.signal_lab import Lab
from tests.support.waiting import PATIENCE_S, await_that

pytestmark = pytest.mark.skipif(not shutil.which("pkill"), reason="needs pkill (procps)")


def _run(lab: Lab, command: Path, agent: str) -> tuple[list[str], dict[str, list[str]], bool]:
    """What was said; whose signals were blocked and sent, by name; whether the server lives."""
    mark = f"mark{uuid.uuid4().hex[:6]}"
    line = ["bash", "-c", f"exec -a server-{mark} sleep 1000"]
    server = lab.subject.start_line([*lab.subject.as_user(), *line])
    process = lab.subject.start("--", "bash", str(command), agent, mark)
    names = [f"{name}-{mark}" for name in ("server", "neighbour", "child")]

    def known() -> set[str]:
        lines = (procfs.command_line(pid) for pid in procfs.all_pids())
        return {line.split()[0] for line in lines if mark in line}

    await_that(lambda: known() >= set(names))
    out, err = process.communicate(b"go\n", PATIENCE_S)
    assert (process.returncode, err) == (0, b"")
    pkills = [each for each in lab.payloads() if each["source_cmd"] == "pkill"]
    by_type: dict[str, list[str]] = {"signal_blocked": [], "signal_sent": []}
    for each in pkills:
        by_type[each["type"]].append(each["target_type"])
        assert each["target_cmd"] and each["source_pid"] and each["syscall"] == "kill"
    return out.decode().splitlines(), by_type, server.poll() is None


def test_pkill_reaches_nobody_but_children_of_its_own(users_lab: Lab, programs: Path) -> None:
    said, by_type, server_lives = _run(users_lab, programs / "neighbours.sh", "agent_runs_pkill.sh")
    assert said == [
        "pkill 1",  # it could signal none of those that it found
        "child lives",
        "child 143",
        "agent 0",
        "neighbour lives",
        "neighbour 143",
    ]
    assert server_lives
    assert by_type["signal_sent"] == []
    blocked = Counter(by_type["signal_blocked"])
    # The agent, COMMAND, the child, the neighbour and the server; and sigwrap, whose line has the
    # mark as well: the front process, and the supervisor, its copy.
    assert (blocked["ancestors"], blocked["root"], blocked["siblings"]) == (1, 1, 1)
    assert (blocked["session"], blocked["user"], blocked["children"]) == (1, 1, 0)
    assert blocked["parent"] >= 2


def test_an_agent_that_becomes_pkill_reaches_its_children(users_lab: Lab, programs: Path) -> None:
    said, by_type, server_lives = _run(
        users_lab, programs / "neighbours.sh", "agent_becomes_pkill.sh"
    )
    assert said == ["agent 0", "neighbour lives", "neighbour 143"]
    assert server_lives
    assert by_type["signal_sent"] == ["children"]
    blocked = Counter(by_type["signal_blocked"])
    assert (blocked["root"], blocked["siblings"], blocked["user"]) == (1, 1, 1)
    assert blocked["parent"] >= 2
