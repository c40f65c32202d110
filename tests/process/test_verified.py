"""What a real session has decided, `sigwrap verify` decides again."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest

from sigwrap.errors import SigwrapError
from sigwrap.events import Event
from sigwrap.report.check.whatever_words import TOO_LONG
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import await_that

RULES = """
  - {name: replaced, commands: [cat], decision: redirect,
     redirect_to: {command: "true", append_args: true}}
  - {name: stubbed, commands: [uname], decision: redirect,
     redirect_to: {command: echo, args: [x], via: stub, record: true}}
  - {name: asked, commands: [date], decision: approve}
  - {name: loads, commands: [id], loads_code: true, decision: deny}
  - {name: systems, commands: [sleep], system_file: true, decision: audit}
  - {name: pinned, commands: [tool], not_sha256: [DIGEST], decision: deny}
  - {name: long, commands: [rm], truncated: true, decision: deny}
  - {name: shallow, commands: [setsid], depth: {max: 1}, decision: deny}
  - {name: all, commands: ["*"], decision: allow}
""".replace("DIGEST", "0" * 64)
MORE = """
signal_rules:
  - {name: handled, signals: [CONT], target: session, handled: true, decision: deny}
  - {name: inside, signals: ["@all"], target: session, decision: allow}
limits: {max_children: 50, max_depth: 6, max_execs: 500}
"""


def verified(subject: Sigwrap) -> tuple[int, int, dict[str, int]]:
    """Decisions, those that came out the same, and those of which nobody can say."""
    done = subject.run("verify", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["problem"]) == (0, "")
    decisions = document["decisions"]
    return decisions["count"], decisions["reproduced"], decisions["not_judged"]


@pytest.mark.parametrize(
    "name",
    [
        "own",
        *(
            pytest.param(name, marks=pytest.mark.tier("all"))
            for name in ("agent-default", "agent-strict", "agent-observe", "ci")
        ),
    ],
)
def test_all_of_it_comes_out_the_same(sigwrap: Sigwrap, programs: Path, name: str) -> None:
    chosen = policy(sigwrap.folder, RULES, MORE) if name == "own" else name
    script = str(programs / "many_ways.sh")
    sigwrap.run("-p", chosen, "--", "bash", script, str(sigwrap.folder), within_s=60)
    count, reproduced, not_judged = verified(sigwrap)
    # One of them has 10,000 arguments.
    assert not_judged in ({}, {TOO_LONG: 1})
    assert reproduced + sum(not_judged.values()) == count
    assert count > 30 or name == "agent-strict"  # which asks about bash


@pytest.mark.promise("verify")
def test_what_was_approved_comes_out_the_same(sigwrap: Sigwrap) -> None:
    """A script as well, with what runs it."""
    script = sigwrap.folder / "task"
    script.write_text("#!/usr/bin/env sh\nexit 0\n")
    script.chmod(0o755)
    rules = RULES.replace("commands: [date]", "commands: [date, task]")
    chosen = policy(sigwrap.folder, rules, MORE)
    line = ("sh", "-c", f"date; date -u; env date; exec {script}")
    run = sigwrap.start("-p", chosen, "--approvals", "control", "--", *line)
    for count, said in enumerate(("approve", "deny", "approve", "approve"), start=1):
        answer(sigwrap, said, count)
    run.communicate()
    assert run.returncode == 0
    assert len(sigwrap.events("approval_granted")) == 3
    count, reproduced, not_judged = verified(sigwrap)
    assert (reproduced, not_judged) == (count, {})


def answer(subject: Sigwrap, said: str, count: int) -> None:
    """The latest question, once so many were asked."""
    asked: list[Event] = []

    def is_asked() -> bool:
        with contextlib.suppress(SigwrapError):  # the log is just being made
            asked[:] = subject.events("approval_requested")
        return len(asked) >= count

    await_that(is_asked)
    done = subject.run(said, asked[-1].payload["approval_id"])
    assert done.returncode == 0, done.stderr


@pytest.mark.promise("replay")
def test_another_policy_is_tried_without_running_anything(sigwrap: Sigwrap) -> None:
    chosen = policy(sigwrap.folder, RULES, MORE)
    sigwrap.run("-p", chosen, "--", "sh", "-c", "ls /dev/null; ls /dev/null; id; true")
    same = sigwrap.run("replay", "--policy", chosen)
    assert (same.returncode, same.stderr) == (0, b"")
    assert re.match(rb"Under \S+, nothing would differ: \d+ decisions\n", same.stdout)
    rules = "\n  - {name: no-lists, commands: [ls], decision: deny}\n" + RULES
    (sigwrap.folder / "other").mkdir()
    other = policy(sigwrap.folder / "other", rules, MORE)
    differs = sigwrap.run("replay", "--policy", other)
    assert differs.returncode == 1
    assert b"2 execs of ls by rule no-lists (was let through by all; first at " in differs.stdout
    assert sigwrap.run("replay", "-p", other, "--exit-zero").returncode == 0
    assert len(sigwrap.events("session_started")) == 1


def test_the_project_of_another_policy_is_the_sessions(sigwrap: Sigwrap) -> None:
    """Wherever it is tried, unless --root says otherwise."""
    project, elsewhere = sigwrap.folder / "project", sigwrap.folder / "elsewhere"
    for folder in (project, elsewhere):
        folder.mkdir()
    chosen = policy(sigwrap.folder, RULES, MORE)
    sigwrap.run("-p", chosen, "--", *PYTHON, "-c", "open('x', 'w')", cwd=project)
    sigwrap.run("-p", chosen, "--", "ls", str(project / "x"), cwd=project)
    rules = '\n  - {name: here, commands: [ls], paths: ["${PROJECT_ROOT}/**"], decision: deny}\n'
    (sigwrap.folder / "other").mkdir()
    line = ["replay", "--policy", policy(sigwrap.folder / "other", rules + RULES, MORE)]
    assert sigwrap.run(*line, cwd=elsewhere).returncode == 1
    moved = sigwrap.run(*line, "--root", str(elsewhere), cwd=project)
    assert moved.returncode == 0
