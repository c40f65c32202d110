"""`sigwrap policy try`, its old name `sigwrap replay --policy`, and `sigwrap verify`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sigwrap.log.writer import SessionLog
from tests.cli.conftest import Run

DENIES_LS = """\
version: 1
name: other
command_rules: [{name: no-lists, commands: [ls], decision: deny}]
defaults: {command: allow, signal: allow}
"""


@pytest.fixture(autouse=True)
def log(tmp_path: Path) -> None:
    log = SessionLog.create(str(tmp_path / "store"), "s1")
    log.append("session_started", 1, {"session_id": "s1", "command": ["make"]}, 1)
    for argv in (["ls"], ["make", "x"]):
        payload = {"path": f"/bin/{argv[0]}", "argv": argv, "decision": "allow", "rule_name": "r"}
        log.append("exec_allowed", 2, payload, 2)
    log.close()
    (tmp_path / "other.yaml").write_text(DENIES_LS)


SAYS = "sigwrap: replay --policy is now: sigwrap policy try other.yaml\n"


def test_what_differs_is_said_in_each_form_and_by_the_status(run: Run) -> None:
    text = run("replay", "--policy", "other.yaml")
    assert (text.returncode, text.stderr) == (1, SAYS)
    assert text.stdout.startswith("Under other, 1 of 2 decisions would differ\n")
    md = run("replay", "-p", "other.yaml", "--format", "md", "--exit-zero")
    assert md.returncode == 0
    assert (
        "\n```\nWould be denied\n  1 exec of ls by rule no-lists (was allowed by r; " in md.stdout
    )
    for words in (("--format", "json"), ("--json",)):
        found = run("replay", "--policy", "other.yaml", *words)
        assert found.returncode == 1
        assert json.loads(found.stdout)["schema"] == "sigwrap.what-if/1"


def test_policy_try_says_the_same_as_its_old_name(run: Run) -> None:
    for form in ((), ("--format", "md"), ("--format", "json"), ("--json",)):
        tried = run("policy", "try", "other.yaml", "s1", *form)
        old = run("replay", "s1", "--policy", "other.yaml", *form)
        assert tried.returncode == 1
        assert (tried.returncode, tried.stdout) == (old.returncode, old.stdout)
    assert run("policy", "try", "other.yaml", "--exit-zero").returncode == 0
    for words, complaint in (
        (("nothing.yaml",), "no policy or file called nothing.yaml"),
        (("other.yaml", "--root", "nowhere"), "--root nowhere: no such d"),
    ):
        refused = run("policy", "try", *words)
        assert (refused.returncode, refused.stdout) == (125, "")
        assert refused.stderr.startswith(f"sigwrap: {complaint}")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--policy", "other.yaml", "--instant"), "--policy can't be combined with"),
        (("--policy", "other.yaml", "--until", "2"), "--policy can't be combined with"),
        (("--policy", "nothing.yaml"), "no policy or file called nothing.yaml"),
        (
            ("--policy", "other.yaml", "--root", "nowhere"),
            "--root nowhere: no such d",
        ),
        (("--format", "md"), "--root, --format md and --exit-zero need --policy"),
        (("--exit-zero",), "--root, --format md and --exit-zero need --policy"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    run: Run, words: tuple[str, ...], complaint: str
) -> None:
    refused = run("replay", *words)
    assert (refused.returncode, refused.stdout) == (125, "")
    assert refused.stderr.startswith(f"sigwrap: {complaint}")
    assert refused.stderr.count("\n") == 1


def test_a_log_without_its_policy_is_intact_as_far_as_one_can_say(run: Run) -> None:
    found = run("verify")
    assert found.returncode == 0
    assert "0 of 2 decisions reproduced under the recorded policy" in found.stdout
    assert "2 decisions cannot be reproduced: the log has no policy" in found.stdout
