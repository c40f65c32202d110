"""What `sigwrap policy …` prints, and its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sigwrap.cli import policy as policy_commands
from sigwrap.cli.policy import app
from sigwrap.errors import SigwrapError
from sigwrap.events import Event
from sigwrap.status import REFUSED

GOOD = "version: 1\nname: good\ndefaults: {command: audit}\n"


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        try:
            status = app(list(words), standalone_mode=False) or 0
        except SigwrapError as error:
            status = error.status
            return status, capfd.readouterr().out, str(error)
        captured = capfd.readouterr()
        return status, captured.out, captured.err

    return run


def test_check_names_every_problem_and_exits_125(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nname: x\ndefalts: {}\nvars: 5\n")
    status, out, _ = run("check", str(bad), "agent-strict", str(tmp_path / "none.yaml"))
    assert status == REFUSED
    assert f"{bad}:3:1: error: unknown key in policy" in out
    assert f"{bad}:4:7: error" in out
    assert "agent-strict: fine" in out


def test_check_is_content_with_warnings(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"{GOOD}unenforced: warn\nfile_rules: []\n")
    status, out, _ = run("check", str(mine))
    assert status == 0
    assert f"{mine}:5:13: warning: file_rules is not enforced yet by this version" in out
    assert f"{mine}: loads, with warnings" in out


@pytest.mark.parametrize("name", ["agent-default", "agent-strict", "agent-observe", "ci"])
def test_check_has_nothing_to_warn_of_in_what_is_shipped_and_says_what_that_goes_without(
    run: Run, tmp_path: Path, name: str
) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"version: 1\nname: mine\nextends: {name}\n")
    for each in (name, str(mine)):
        status, out, err = run("check", each)
        assert status == 0 and out == f"{each}: fine\n"
        assert ("not enforced yet of what is shipped: " in err) is (name != "agent-strict")


def test_check_as_json(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nname: x\ndefalts: {}\n")
    status, out, _ = run("check", "--json", str(bad))
    assert status == REFUSED
    (problem,) = json.loads(out)
    assert problem["place"] == {"file": str(bad), "line": 3, "column": 1}
    assert problem["nearest"] == "defaults" and problem["severity"] == "error"


@pytest.mark.parametrize("name", ["agent-default", "agent-strict", "agent-observe", "ci"])
def test_show_prints_a_policy_that_loads_again(run: Run, tmp_path: Path, name: str) -> None:
    status, out, _ = run("show", name)
    assert status == 0
    copy = tmp_path / "copy.yaml"
    copy.write_text(out)
    assert run("show", str(copy))[1] == out.removeprefix("# ci extends agent-default\n")


def test_show_as_json(run: Run, tmp_path: Path) -> None:
    shown = json.loads(run("show", "--json", "ci", "--root", str(tmp_path))[1])
    assert shown["bases"] == ["agent-default"]
    assert shown["file_rules"][0]["paths"][0] == str(tmp_path)


def test_explain_a_command(run: Run) -> None:
    status, out, _ = run("explain", "--policy", "agent-default", "--", "git", "push", "--force")
    assert status == 0
    assert out.startswith("/usr/bin/git push --force: deny\n  Why: rule force-push matches")
    assert run("explain", "--", "git push --force")[1] == out


def test_explain_a_signal_as_json(run: Run) -> None:
    out = run("explain", "--signal", "SIGKILL", "--target", "external", "--json")[1]
    assert json.loads(out)["decision"]["rule"] == "outside"


@pytest.mark.parametrize(
    "words",
    [
        ["explain"],
        ["explain", "--signal", "KILL", "--", "ls"],
        ["explain", "--signal", "SIGX"],
        ["explain", "--env", "--", "ls"],
        ["explain", "--env", "--signal", "KILL"],
        ["explain", "--", "ls 'x"],
        ["explain", "--policy", "agent-defualt", "--", "ls"],
    ],
)
def test_explain_what_cannot_be_explained(run: Run, words: list[str]) -> None:
    assert run(*words)[0] == REFUSED


def test_test_says_which_case_fails_and_exits_1(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(
        GOOD + "tests:\n  - {command: ls, decision: audit}\n  - {command: ls, decision: deny}\n"
        "  - {signal: TERM, target: self, decision: deny, rule: x}\n"
    )
    status, out, _ = run("test", str(policy))
    assert status == 1
    assert f"{policy}:6:5: ls: FAILED, wanted deny, got audit by builtin:default" in out
    assert "SIGTERM to self, session: FAILED, wanted deny by x, got deny by builtin:default" in out
    assert "1 of 3 cases pass" in out
    assert [each["passed"] for each in json.loads(run("test", "--json", str(policy))[1])] == [
        True,
        False,
        False,
    ]


def test_test_of_a_policy_without_cases_has_tested_nothing(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(GOOD)
    status, out, said = run("test", str(policy))
    assert (status, out) == (REFUSED, "")
    example = "tests: [{command: git push --force, decision: deny}]"
    assert said == f"{policy} has no cases to run (such as {example})"
    policy.write_text(GOOD + example + "\n")
    assert run("test", str(policy))[0] == 1


def test_test_of_a_shipped_policy(run: Run) -> None:
    status, out, _ = run("test", "ci")
    assert status == 0 and "cases pass" in out


def test_generate_prints_one_policy_for_several_sessions(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Session:
        def __init__(self, command: str) -> None:
            payload = {"path": f"/usr/bin/{command}", "argv": [command]}
            self.recorded = Event(
                seq=1, time_ns=0, type="exec_audited", pid=1, payload=payload, hash=""
            )

        def events(self) -> Iterator[Event]:
            yield self.recorded

    monkeypatch.setattr(policy_commands, "open_session", lambda store, selector: Session(selector))
    status, out, _ = run("generate", "make", "cc", "--name", "locked")
    assert status == 0 and "name: locked" in out
    generated = tmp_path / "locked.yaml"
    generated.write_text(out)
    for command, action in (("make", "allow"), ("cc", "allow"), ("ld", "deny")):
        assert f": {action}" in run("explain", "-p", str(generated), "--", command)[1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "explain agent-default -- rm -rf build",
            "agent-default is a policy, not a command "
            "(sigwrap policy explain -p agent-default -- rm -rf build)",
        ),
        (
            "explain ci",
            "ci is a policy, not a command (sigwrap policy explain -p ci -- COMMAND)",
        ),
        (
            "explain rm -- -rf build",
            "rm is neither an option nor behind -- (sigwrap policy explain -- -rf build)",
        ),
        (
            "explain -p ci git push --force",
            "No such option: --force "
            "(the command comes behind --, as in sigwrap policy explain -- git push --force)",
        ),
        (
            "explain -p -- ls",
            "-p needs a value (as in sigwrap policy explain -- git push --force)",
        ),
        (
            "explain --policy= -- ls",
            "no policy or file called '' (shipped: agent-default, agent-strict, agent-observe, ci)",
        ),
        ("show ci --root /no/such", "--root /no/such: there is no such folder"),
    ],
)
def test_a_word_in_the_wrong_place_is_refused_with_the_right_line(
    run: Run, line: str, said: str
) -> None:
    assert run(*line.split()) == (REFUSED, "", said)


def test_explain_names_a_policys_file_as_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(GOOD)
    status, _, said = run("explain", str(tmp_path / "mine.yaml"), "--", "ls")
    assert status == REFUSED
    assert said.endswith(f"(sigwrap policy explain -p {tmp_path}/mine.yaml -- ls)")
    status, _, said = run("explain", str(tmp_path / "mine.yaml"))
    assert status == REFUSED
    assert said.endswith(f"(sigwrap policy explain -p {tmp_path}/mine.yaml -- COMMAND)")


def test_explain_shows_all_that_runs_instead(run: Run, tmp_path: Path) -> None:
    rule = (
        "command_rules:\n  - {name: r, commands: [gh], decision: redirect,\n"
        "     redirect_to: {command: /opt/gh, args: [-q], append_args: true}}\n"
    )
    (tmp_path / "mine.yaml").write_text(GOOD + rule)
    words = ("-p", str(tmp_path / "mine.yaml"), "--", "gh", "pr", "create", "--title", "a b")
    _, out, _ = run("explain", *words)
    assert "Runs instead: /opt/gh -q pr create --title 'a b'\n" in out
