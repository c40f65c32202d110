"""What `sigwrap report` is asked for, and what it says of a mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sigwrap.log.writer import SessionLog
from tests.cli.conftest import Run

SECOND = 1_000_000_000
STARTED_NS = 1_763_705_000 * SECOND  # 2025-11-21 06:03:20 UTC


@pytest.fixture
def report(run: Run, tmp_path: Path) -> Run:
    """A shell starts make, which starts cc; git and a SIGTERM to another process are refused."""
    log = SessionLog.create(str(tmp_path / "store"), "s1")
    counts: dict[str, int] = {}

    def add(type_name: str, pid: int, **payload: Any) -> None:
        counts[type_name] = counts.get(type_name, 0) + 1
        log.append(type_name, pid, payload, STARTED_NS + log.seq * SECOND)

    def asked(became: str, pid: int, ppid: int, rule: str, *argv: str) -> None:
        path = f"/usr/bin/{argv[0]}"
        add(f"exec_{became}", pid, path=path, argv=argv, ppid=ppid, comm="sh", rule_name=rule)

    add("session_started", 1, session_id="s1", command=["sh"], command_pid=10, policy="p")
    asked("allowed", 10, 1, "shells", "sh", "-c", "make")
    asked("allowed", 11, 10, "tools", "make")
    asked("allowed", 12, 11, "tools", "cc", "-c", "x.c")
    asked("denied", 13, 10, "no-push", "git", "push")
    add(
        "signal_blocked",
        10,
        source_pid=10,
        source_cmd="sh",
        signal_name="SIGTERM",
        target_pid=5,
        target_cmd="sshd",
        target_type="system",
        rule_name="outside",
    )
    add(
        "session_ended",
        1,
        exit_status=0,
        reason="the command ended",
        head=log.head,
        counts=dict(counts),
    )
    log.close()

    return lambda *words, **variables: run("report", *words, TZ="JST-9", **variables)


def document(report: Run, *words: str) -> dict[str, Any]:
    done = report("--json", *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("words", "execs", "signals"),
    [
        ((), {"allowed": 3, "denied": 1}, {"denied": 1}),
        (("--rule", "tools"), {"allowed": 2}, {}),
        (("--process", "make"), {"allowed": 2}, {}),
        (("--only", "denied"), {"denied": 1}, {"denied": 1}),
        (("--only", "asked"), {}, {}),
        (("--since", "+3s"), {"allowed": 1, "denied": 1}, {"denied": 1}),
        (("--since", "15:03:22", "--until", "15:03:23"), {"allowed": 2}, {}),
        (("--utc", "--since", "06:03:24"), {"denied": 1}, {"denied": 1}),
    ],
)
def test_a_part_of_a_session(
    report: Run, words: tuple[str, ...], execs: dict[str, int], signals: dict[str, int]
) -> None:
    found = document(report, *words)
    assert found["outcomes"] == {"exec": execs, "signal": signals, "connection": {}}
    assert found["events"] == 7, "the log is still all of it"
    assert found["verification"]["outcome"] == "intact"


def test_a_selection_without_events_is_said(report: Run) -> None:
    for words in (("--process", "node"), ("--rule", "tools", "--since", "+6s")):
        done = report(*words)
        assert (done.returncode, done.stderr) == (0, "sigwrap: no events match the options\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--only", "denid"), 'did you mean "denied"?'),
        (
            ("--rule", "no-pus"),
            '--rule no-pus: no event has this rule (did you mean "no-push"? '
            "rules with decisions: shells, tools, no-push, outside)",
        ),
        (("--since", "yesterday"), "--since yesterday: not a time (such as +90s, 1h30m, 14:03"),
        (("--until", ""), "--until '': not a time"),
        (("--github",), "$GITHUB_STEP_SUMMARY is not set"),
        (("--follow", "--json"), "--follow prints text"),
        (("-o", "/nowhere/x"), "can't write /nowhere/x: No such file"),
    ],
)
def test_a_mistake_is_one_line(report: Run, words: tuple[str, ...], said: str) -> None:
    done = report(*words)
    assert done.returncode == 125
    assert said in done.stderr and not done.stdout
    assert done.stderr.count("\n") == 1


def test_github_s_summary_gets_the_report_behind_what_it_has(report: Run, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("# Before\n")
    done = report("--github", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 0
    assert "Needs attention" in done.stdout, "the job's own log has it as well"
    text = summary.read_text()
    assert text.startswith("# Before\n## sigwrap: `sh`\n")
    assert "\n```\ndenied  git push  (rule no-push), event 5\n" in text
