"""What SIGUSR1 and SIGUSR2 tell of real processes; this process is their supervisor."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.errors import StoreError
from sigwrap.mediate.log_budget import LogBudget
from sigwrap.policy.judge.rules import Limits
from sigwrap.report.check.verify import Outcome, verify_session
from sigwrap.run.diagnostic import Diagnostic
from sigwrap.run.loop import Loop
from sigwrap.run.processes import Processes
from sigwrap.run.recorder import Recorder
from sigwrap.store.catalog import open_session
from sigwrap.store.writer import SessionLog


class Stage:
    def __init__(self, folder: Path) -> None:
        self.store = str(folder)
        self.said: list[str] = []
        self.log = SessionLog.create(self.store, "s1")
        self.recorder = Recorder(self.log, self.said.append, LogBudget(1 << 20, ends_run=True))
        self.recorder.record("session_started", 1, {"session_id": "s1", "keyed": False})
        self.processes = Processes(Loop(), lambda process, status: None)
        question = SimpleNamespace(masked="", what="git push")
        approvals: Any = SimpleNamespace(open=(SimpleNamespace(id="a1", question=question),))
        self.diagnostic = Diagnostic(
            recorder=self.recorder,
            processes=self.processes,
            approvals=approvals,
            limits=Limits(max_execs=9),
            used={},
            stopped=lambda: None,
            meanwhile=lambda: None,
        )

    def last(self) -> dict[str, Any]:
        payload: dict[str, Any] = list(open_session(self.store, "s1").events())[-1].payload
        return payload


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    subject = Stage(tmp_path)
    yield subject
    subject.log.close()


@pytest.fixture
def shell() -> Iterator[subprocess.Popen[bytes]]:
    line = ["sh", "-c", "sh -c 'echo ready; read x; exit'; exit"]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.communicate(b"\n")


def test_the_tree_the_limits_and_the_questions(
    stage: Stage, shell: subprocess.Popen[bytes]
) -> None:
    command = stage.processes.adopt_command(shell.pid)
    command.argv = ("sh", "-c", "--token=abcdefgh")
    stage.diagnostic.tell()
    payload = stage.last()
    tree = {each["pid"]: each for each in payload["processes"]}
    assert tree[shell.pid]["command"] == "sh -c '--token=***'"
    assert (tree[shell.pid]["ppid"], tree[shell.pid]["depth"]) == (os.getpid(), 0)
    [child] = [each for each in tree.values() if each["ppid"] == shell.pid]
    assert (child["command"], child["depth"]) == ("[sh]", 1)
    assert payload["approvals"] == [{"id": "a1", "what": "git push"}]
    assert payload["limits"]["max_execs"] == [0, 9]
    assert payload["counts"] == {"session_started": 1}
    assert "waits for approval: a1  git push" in stage.said
    assert all("\n" not in line for line in stage.said)
    assert len(stage.processes) == 1  # nobody was adopted for it


def test_a_checkpoint_can_be_verified(stage: Stage, shell: subprocess.Popen[bytes]) -> None:
    stage.processes.adopt_command(shell.pid)
    head = stage.log.head
    path = stage.diagnostic.save()
    payload = stage.last()
    assert path == payload["path"]
    assert (payload["head"], payload["seq"], payload["error"]) == (head, 1, "")
    assert shell.pid in payload["processes"]
    found = verify_session(open_session(stage.store, payload["path"]), None, expected_head=head)
    assert (found.outcome, found.problem) == (Outcome.INTACT, "")
    assert stage.said == [f"checkpoint: {payload['path']}, 1 events, head {head}"]


def test_where_there_can_be_none_an_event_and_a_line_say_why(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file")
    with pytest.raises(StoreError, match="can't write the checkpoint"):
        stage.diagnostic.save()
    assert "can't write the checkpoint s1-1.db: " in stage.last()["error"]
    assert stage.said == [stage.last()["error"]]
    assert stage.recorder.record("process_exited", 1, {})
