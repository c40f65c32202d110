"""The output of `sigwrap policy …`, and its exit status."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.cli.app import ROOT as COMMANDS
from sigwrap.errors import INTERRUPTED, REFUSED, SigwrapError
from sigwrap.kernel.limits import mount_points
from sigwrap.log.writer import SessionLog
from sigwrap.policy.judge.request import Action
from sigwrap.start.policy_files import SHIPPED, host_variables, load_policy, read_source
from tests.support.terminal import Terminal

ROOT = Path(__file__).parents[2]
GOOD = "version: 1\nname: good\ndefaults: {command: audit}\n"


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        try:
            status = COMMANDS.main(["policy", *words], standalone_mode=False) or 0
        except SigwrapError as error:
            status = error.status
            return status, capfd.readouterr().out, str(error)
        captured = capfd.readouterr()
        return status, captured.out, captured.err

    return run


Record = Callable[..., str]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """The path of a session's log: how it began, and what became of which command by what rule."""

    def record(name: str, started: dict[str, object], *execs: tuple[str, str, str]) -> str:
        log = SessionLog.create(str(tmp_path / "store"), name, key=None)
        log.append("session_started", 1, {"session_id": name, **started}, 1)
        for pid, (kind, line, rule) in enumerate(execs, start=2):
            argv = line.split()
            payload = {"path": f"/usr/bin/{argv[0]}", "argv": argv, "comm": "sh", "rule_name": rule}
            log.append(kind, pid, payload, pid)
        log.close()
        return str(log.path)

    return record


def test_check_names_every_problem_and_exits_125(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nname: x\ndefalts: {}\nvars: 5\n")
    status, out, _ = run("check", str(bad), "agent-strict", str(tmp_path / "none.yaml"))
    assert status == REFUSED
    assert f"{bad}:3:1: unknown key" in out
    assert f"{bad}:4:7: " in out
    assert "agent-strict: ok" in out


def test_check_exits_0_with_warnings(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(f'{GOOD}env_policy: {{remove: ["*"]}}\n')
    status, out, _ = run("check", str(mine))
    assert status == 0
    assert f"{mine}:4:13: warning: remove drops every variable" in out
    assert f"{mine}: ok, with warnings\n" in out


def test_check_as_json(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nname: x\ndefalts: {}\n")
    status, out, _ = run("check", "--json", str(bad))
    assert status == REFUSED
    (problem,) = json.loads(out)
    assert problem["place"] == {"file": str(bad), "line": 3, "column": 1}
    assert problem["nearest"] == "defaults" and problem["severity"] == "error"


ASKS = """\
version: 1
name: asks
extends: agent-default
command_rules:
  - {name: ask-rm-rf, commands: [rm], args_patterns: ['^-(rf|fr)$'], decision: approve}
network: deny
"""


def test_check_names_each_test_of_the_base_that_a_rule_weakens(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(ASKS)
    status, out, err = run("check", str(mine))
    assert status == REFUSED and err.startswith("sigwrap: the base decides these")
    weakens = f"{mine}:5:5: ask-rm-rf weakens destroy-system: deny → approve for `"
    found = [line.removeprefix(weakens) for line in out.splitlines() if line.startswith(weakens)]
    assert len(found) == 11 and "rm -rf /`" in found and "sudo -u root nice -n 5 rm -rf /`" in found
    assert "no server will start" in out and "DNS" in out and ": ok" not in out
    problems = json.loads(run("check", "--json", str(mine))[1])
    assert [each["severity"] for each in problems] == ["error"] * 11 + ["warning"] * 3
    for overrides in ("[destroy-system]", "[]"):
        mine.write_text(ASKS.replace("approve}", f"approve, overrides: {overrides}}}"))
        status, out, _ = run("check", str(mine))
        assert status == 0 and "weakens" not in out


def test_show_prints_a_policy_that_loads_again(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("show", "ci")
    assert status == 0
    copy = tmp_path / "copy.yaml"
    copy.write_text(out)
    assert run("show", str(copy))[1] == out.removeprefix("# ci extends agent-default\n")


def test_show_as_json(run: Run, tmp_path: Path) -> None:
    shown = json.loads(run("show", "--json", "ci", "--root", str(tmp_path))[1])
    assert shown["bases"] == ["agent-default"]
    (workspace,) = (each for each in shown["file_rules"] if each["name"] == "workspace")
    assert workspace["paths"][0] == str(tmp_path)


def test_pin_refuses_a_tool_in_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo", 0o777)
    Path("dangling").symlink_to("nothing")
    Path("plain").touch(0o644)
    Path("a\nb").touch(0o755)
    for tool, why in (
        ("none-such", "none-such: command not found on PATH"),
        ("./dangling", "./dangling: command not found"),
        ("/tmp", "/tmp: is a directory, not a program"),
        ("./fifo", "./fifo: not executable"),
        ("./plain", "./plain: not executable"),
        ("", "the command is empty"),
        ("./a\nb", r"./a\nb can't be pinned: its path has unprintable characters"),
    ):
        status, _, line = run("pin", tool)
        assert status == REFUSED, tool
        assert line.startswith(why) and "\n" not in line, line


def test_pin_prints_a_policy_that_check_accepts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tool = "x # \"y': [z]"
    Path(tool).touch(0o755)
    status, out, _ = run("pin", f"./{tool}", "git")
    assert status == 0
    Path("pinned.yaml").write_text(out)
    assert run("check", "pinned.yaml")[:2] == (0, "pinned.yaml: ok\n")
    rules = load_policy("pinned.yaml", variables=host_variables(".")).command_rules
    assert [rule.commands for rule in rules if rule.not_sha256] == [
        (tool.replace("[", "[[]"),),
        ("git",),
    ]


@pytest.mark.promise("policy tools")
def test_explain_a_command(run: Run) -> None:
    status, out, _ = run("explain", "--policy", "agent-default", "--", "git", "push", "--force")
    assert status == 0
    assert out.startswith("/usr/bin/git push --force: deny\n  Why: rule force-push matches")
    assert run("explain", "--", "git push --force")[1] == out


def test_explain_resolves_the_path_of_a_socket(run: Run, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    policy = tmp_path / "policy.yaml"
    for named in ("there", "link"):
        rule = f'{{name: keep, destinations: ["unix:{tmp_path}/{named}/s"], decision: deny}}'
        policy.write_text(f"version: 1\nname: test\nnetwork_rules:\n  - {rule}\n")
        words = ("explain", "-p", str(policy), "--connect", f"unix:{tmp_path}/link/s")
        assert "rule keep matches" in run(*words)[1]


def test_explain_lists_network_rules_that_do_not_match(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    rule = '{name: one, destinations: ["10.0.0.1"], ports: [80], decision: allow}'
    policy.write_text(f"version: 1\nname: test\nnetwork_rules:\n  - {rule}\n")
    said = run("explain", "-p", str(policy), "--connect", "10.0.0.1:81")[1]
    assert "one  needs ports: 80 (line 4)" in said


def test_explain_a_signal_as_json(run: Run) -> None:
    out = run("explain", "--signal", "SIGKILL", "--target", "external", "--json")[1]
    assert json.loads(out)["decision"]["rule"] == "outside"


def test_explain_refuses_invalid_arguments(run: Run) -> None:
    for words in (
        [],
        ["--signal", "KILL", "--", "ls"],
        ["--signal", "SIGX"],
        ["--env", "--", "ls"],
        ["--env", "--signal", "KILL"],
        ["--", "ls 'x"],
        ["--policy", "agent-defualt", "--", "ls"],
    ):
        assert run("explain", *words)[0] == REFUSED, words


FAILING = (
    "tests:\n  - {command: ls, decision: audit}\n  - {command: ls, decision: deny}\n"
    "  - {signal: TERM, target: self, decision: deny, rule: x}\n"
)


def test_check_runs_the_tests_and_exits_1_if_only_they_fail(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(GOOD + FAILING)
    ls = f"{policy}:6:5: ls: FAILED: expected deny, got audit by builtin:default\n"
    signal = "SIGTERM to self, session: FAILED: expected deny by x, got deny by builtin:default\n"
    status, out, _ = run("check", str(policy))
    assert status == 1 and ls in out and signal in out
    assert out.endswith(f"{policy}: 2 of 3 tests failed\n")
    status, out, _ = run("check", "--json", str(policy))
    assert status == 1
    assert [(each["severity"], each["place"]["line"]) for each in json.loads(out)] == [
        ("error", 6),
        ("error", 7),
    ]
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nname: x\ndefalts: {}\n")
    assert run("check", str(policy), str(bad))[0] == REFUSED
    policy.write_text(GOOD + FAILING.partition("  - {command: ls, decision: deny}")[0])
    assert run("check", str(policy))[:2] == (0, f"{policy}: ok; 1 test passes\n")


def test_learn_new_prints_one_policy_for_several_sessions(
    run: Run, record: Record, tmp_path: Path
) -> None:
    logs = [record(each, {}, ("exec_audited", each, "builtin:default")) for each in ("make", "cc")]
    status, out, _ = run("learn", "--new", *logs, "--name", "locked")
    assert status == 0 and "name: locked" in out
    generated = tmp_path / "locked.yaml"
    generated.write_text(out)
    for command, action in (("make", "allow"), ("cc", "allow"), ("ld", "deny")):
        assert f": {action}" in run("explain", "-p", str(generated), "--", command)[1]


AFTER = "(the command goes after --, as in sigwrap policy explain -p ci -- git push --force)"
NO_PART = f"is not a part of the command {AFTER}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("explain agent-default -- rm -rf build", f"agent-default {NO_PART}"),
        ("explain agent-default rm", f"agent-default {NO_PART}"),
        ("explain rm -- -rf build", f"rm {NO_PART}"),
        ("explain -p ci git push --force", f"unknown option --force {AFTER}"),
        ("show ci --root /no/such", "--root /no/such: no such directory"),
    ],
)
def test_explain_shows_the_right_line_for_a_misplaced_word(run: Run, line: str, said: str) -> None:
    assert run(*line.split()) == (REFUSED, "", said)


@pytest.mark.skipif(not mount_points(), reason="no cgroup file system here")
def test_explain_denies_writing_cgroup_files(run: Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    rule = "{name: all, paths: [/sys/**], operations: [write, read], decision: allow}"
    file = f"{mount_points()[0]}/cgroup.procs"
    for denies in (True, False):
        default = "deny" if denies else "allow"
        mine.write_text(
            f"version: 1\nname: x\ndefaults: {{file: {default}}}\nfile_rules: [{rule}]\n"
        )
        status, out, _ = run("explain", "-p", str(mine), "--file", file, "--write")
        assert status == 0
        if denies:
            assert out == (
                f"write {file}: deny\n"
                "  Why: through cgroup files, a process can stop and kill other processes.\n"
            )
        else:
            assert out.startswith(f"write {file}: allow\n")
        _, out, _ = run("explain", "-p", str(mine), "--file", file, "--read")
        assert out.startswith(f"read {file}: allow\n")


def test_explain_shows_the_replacement(run: Run, tmp_path: Path) -> None:
    rule = (
        "command_rules:\n  - {name: r, commands: [gh], decision: redirect,\n"
        "     redirect_to: {command: /opt/gh, args: [-q], append_args: true}}\n"
    )
    (tmp_path / "mine.yaml").write_text(GOOD + rule)
    words = ("-p", str(tmp_path / "mine.yaml"), "--", "gh", "pr", "create", "--title", "a b")
    _, out, _ = run("explain", *words)
    assert "Runs instead: /opt/gh -q pr create --title 'a b'\n" in out


def test_without_a_command_it_shows_its_help(run: Run) -> None:
    status, out, err = run()
    assert (status, err) == (0, "")
    assert "learn" in out and "explain" in out


def test_list_has_shipped_policies_and_files(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(f"{GOOD}description: Ours. And more.\n")
    (tmp_path / "plain.yaml").write_text(
        f"{GOOD}extends: ./mine.yaml\n"
        "command_rules:\n- {name: a, commands: [x], decision: deny}\n"
        "- {name: b, commands: [y], decision: allow}\n- {name: c, commands: [z], decision: deny}\n"
    )
    (tmp_path / "bad.yaml").write_text(f"{GOOD}defalts: {{}}\n")
    (tmp_path / "compose.yaml").write_text("version: 3\nservices: {}\n")
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "folder.yaml").mkdir()
    out = run("list")[1].splitlines()
    assert [line.split()[0] for line in out] == [*SHIPPED, "bad.yaml", "mine.yaml", "plain.yaml"]
    assert out[-1].endswith(
        "extends good; 3 rules; default: command audit, signal deny; no description"
    )
    assert out[-2].endswith("  file; 0 rules; default: command audit, signal deny; Ours.")
    assert out[-3].endswith("  does not load; see: sigwrap policy check bad.yaml")
    listed = json.loads(run("list", "--json")[1])
    assert [each["shipped"] for each in listed] == [True] * len(SHIPPED) + [False] * 3
    assert listed[-1]["decisions"] == {"deny": 2, "allow": 1}
    assert listed[3]["bases"] == ["agent-default"] and listed[3]["rules"] > listed[0]["rules"]


@pytest.mark.promise("policy tools")
def test_init_writes_a_policy_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Makefile").write_text("deploy:\n\tscp\n")
    status, out, _ = run("init")
    assert status == 0 and "  sigwrap policy check policy.yaml\n" in out
    assert run("check", "policy.yaml")[:2] == (0, "policy.yaml: ok; 4 tests pass\n")
    before = (tmp_path / "policy.yaml").read_text()
    status, _, err = run("init")
    assert status == REFUSED and "policy.yaml already exists" in err
    assert (tmp_path / "policy.yaml").read_text() == before


def test_init_can_extend_a_file_in_another_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.yaml").write_text(GOOD)
    (tmp_path / "sub").mkdir()
    assert run("init", "sub/mine.yaml", "--extends", "base.yaml")[0] == 0
    assert '\nextends: "../base.yaml"\n' in (tmp_path / "sub" / "mine.yaml").read_text()
    assert run("check", "sub/mine.yaml")[0] == 0


@pytest.mark.tier("ci")
def test_init_asks_three_questions_on_a_terminal(tmp_path: Path) -> None:
    environment = {**os.environ, "TERM": "xterm"}
    line = [sys.executable, "-m", "sigwrap", "policy", "init"]
    terminal = Terminal(line, environment, tmp_path)
    try:
        for question, answer in (
            (b"What kind of project", "cobol"),
            (b"'cobol' is not one of 'node', 'python'", "python"),
            (b"Which hosts may its commands reach", "local"),
            (b"May they git push", ""),
        ):
            terminal.output.until(question)
            terminal.type(f"{answer}\n")
        assert terminal.await_status() == 0
        policy = load_policy(str(tmp_path / "policy.yaml"), variables=host_variables(str(tmp_path)))
        assert [rule.name for rule in policy.command_rules if rule.layer] == ["pushes"]
        assert policy.default_network is Action.DENY
    finally:
        terminal.close()
    terminal = Terminal(line, environment, tmp_path)
    try:
        terminal.output.until(b"policy.yaml already exists")
        assert terminal.await_status() == REFUSED
    finally:
        terminal.close()
    terminal = Terminal([*line, "other"], environment, tmp_path)
    try:
        terminal.output.until(b"What kind of project")
        terminal.press("c")
        assert terminal.await_status() == INTERRUPTED
    finally:
        terminal.close()
    assert not (tmp_path / "other.yaml").exists()


def test_init_with_options_asks_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("init", "x", "--network", "listed", "--push", "deny", "--kind", "go")[0] == 0
    assert "proxy.golang.org" in (tmp_path / "x.yaml").read_text()
    assert run("check", "x.yaml")[:2] == (0, "x.yaml: ok; 5 tests pass\n")
    status, _, err = run("init", "y", "--extends", "agent-observe", "--network", "local")
    assert status == REFUSED and "the rules of agent-observe allow every host" in err
    assert not (tmp_path / "y.yaml").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["ci"], "ci is a shipped policy"),
        (["a b"], "is not a valid policy name"),
        (["x", "--extends", "agent-defualt"], 'did you mean "agent-default"?'),
        (["none/x.yaml"], "can't write none/x.yaml: No such file or directory"),
        (["x\0.yaml"], "is not a valid policy name"),
    ],
)
def test_init_refuses_names_and_bases(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = run("init", *words)
    assert status == REFUSED and why in err
    assert list(tmp_path.iterdir()) == []


RULES = (
    "command_rules:\n"
    "- {name: a, commands: [git], subcommands: [push], decision: deny}\n"
    "- {name: b, commands: [git, npm], description: x, decision: allow}\n"
)


def test_diff_exits_1_where_policies_differ(run: Run, tmp_path: Path) -> None:
    good, other = tmp_path / "good.yaml", tmp_path / "other.yaml"
    good.write_text(GOOD + RULES)
    other.write_text(GOOD.replace("good", "other\ndescription: z") + RULES.replace(": x", ": y"))
    assert run("diff", str(good), str(other))[:2] == (0, f"{good} and {other} decide the same\n")
    other.write_text(GOOD + RULES.replace("npm", "yarn"))
    status, out, _ = run("diff", str(good), str(other))
    assert status == 1
    assert out.splitlines()[:2] == [f"--- {good}", f"+++ {other}"]
    assert [line for line in out.splitlines()[2:] if line[0] in "@+-"] == [
        "@@ name: a @@",
        "-  commands: [git, npm]",
        "+  commands: [git, yarn]",
    ]
    status, shown, _ = run("diff", str(good), str(other), "--json")
    document = json.loads(shown)
    assert (status, document["schema"]) == (1, "sigwrap.policy-diff/2")
    assert document["diff"] == out.splitlines()
    assert run("diff", str(good), "agent-defualt")[0] == REFUSED


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_policy_differs_from_all_others_and_not_from_itself(run: Run, name: str) -> None:
    for other in SHIPPED:
        assert run("diff", name, other)[0] == (name != other)


def test_schema_is_the_documented_one(run: Run) -> None:
    out = run("schema")[1]
    assert out == (ROOT / "docs" / "policy.schema.json").read_text()
    assert json.loads(out)["$id"] == "urn:sigwrap:policy:1"


def test_explain_notes_a_program_that_is_not_in_path(run: Run) -> None:
    status, out, err = run("explain", "--", "no-such-program", "x")
    assert status == 0 and out.startswith("/usr/bin/no-such-program x: audit\n")
    assert err == "sigwrap: no-such-program is not in PATH; explained as if in /usr/bin\n"
    assert run("explain", "--", "env", "no-such-program")[2] == err
    assert run("explain", "--", "sh", "-c", "no-such-program")[2] == ""


@pytest.fixture
def denied(record: Record) -> str:
    """A session in which a push was denied and an install asked about."""
    source = read_source("agent-default")
    started = {
        "cwd": "/gone",
        "policy": "agent-default",
        "policy_sources": [{"name": source.name, "text": source.text}],
        "policy_variables": {"PROJECT_ROOT": "/gone", "HOME": "/home/ann"},
    }
    return record(
        "s1",
        started,
        ("exec_denied", "git push --force", "force-push"),
        ("exec_denied", "npm install", "pkg-install"),
        ("exec_audited", "git status", "builtin:default"),
    )


def test_learn_writes_a_policy_that_loads_and_differs_by_its_rules(
    run: Run, tmp_path: Path, denied: str
) -> None:
    written = tmp_path / "s.yaml"
    status, out, _ = run("learn", denied, "-o", str(written), "--name", "mine")
    assert status == 0 and "with 2 rules" in out
    assert run("learn", denied, "--name", "mine")[1] == written.read_text()
    assert run("learn", denied, "-o", str(written))[0] == REFUSED
    assert run("check", str(written))[:2] == (0, f"{written}: ok\n")
    status, out, _ = run("diff", f"session:{denied}", str(written))
    assert status == 1
    added = [line for line in out.splitlines() if line.startswith("+- name: ")]
    assert added == ["+- name: allow-git-push-force", "+- name: allow-npm-install"]


GONE = """\
version: 1
name: gone
extends: agent-default
command_rules:
    - name: no-ship
      commands: [ship]
      decision: deny
"""


@pytest.mark.tier("ci")
@pytest.mark.parametrize("text", [GONE, GONE.replace("agent-default", "../base.yaml")])
def test_learn_contains_the_policy_as_the_log_has_it_if_its_file_is_gone(
    run: Run, record: Record, tmp_path: Path, text: str
) -> None:
    base = read_source("agent-default")
    bases = [{"name": base.name, "text": base.text, "shipped": True}]
    if "../base.yaml" in text:
        bases = [{"name": "../base.yaml", "text": "version: 1\nname: b\n"}]
    started = {
        "cwd": "/gone",
        "policy_sources": [{"name": "gone.yaml", "text": text}, *bases],
        "policy_variables": host_variables(os.getcwd()),
    }
    shipped = ("exec_denied", "ship x", "no-ship")
    log = record("s3", started, shipped, ("exec_allowed", "git x", "builtin:default"))
    written = tmp_path / "s.yaml"
    status, out, err = run("learn", log, "-o", str(written), "--name", "mine")
    assert (status, err) == (
        0,
        "sigwrap: /gone/gone.yaml has changed since; using its text from the log\n",
    )
    assert "with 1 rule" in out
    text = written.read_text()
    assert "# /gone/gone.yaml has changed since. Below is that policy as the log has it" in text
    assert "name: mine\n" in text
    assert run("check", str(written))[0] == 0
    status, out, _ = run("diff", f"session:{log}", str(written))
    assert [line for line in out.splitlines() if line.startswith("+- name: ")] == [
        "+- name: allow-ship-x"
    ]


@pytest.mark.tier("ci")
@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        (GONE.replace("decision: deny", "decision: allow"), False),
        (GONE + "defaults: {command: allow}\n", False),
        ("TOKEN=abc123\n", False),
        (GONE, True),
    ],
)
def test_learn_extends_only_the_file_that_was_recorded(
    run: Run, record: Record, tmp_path: Path, text: str, is_same: bool
) -> None:
    """A log can name any file, so nothing of its text is printed."""
    (tmp_path / "ours.yaml").write_text(text)
    base = read_source("agent-default")
    started = {
        "cwd": str(tmp_path),
        "policy_sources": [
            {"name": "ours.yaml", "text": GONE},
            {"name": base.name, "text": base.text, "shipped": True},
        ],
        "policy_variables": host_variables(os.getcwd()),
    }
    log = record("s3", started, ("exec_denied", "ship x", "no-ship"))
    status, out, err = run("learn", log)
    assert status == 0 and "TOKEN" not in out + err
    if not is_same:
        assert (
            err == f"sigwrap: {tmp_path}/ours.yaml has changed since; using its text from the log\n"
        )
        assert "ours.yaml has changed since. Below is that policy" in out and "name: no-ship" in out
    else:
        assert err == "" and "\nextends:" in out and "name: no-ship" not in out


def test_learn_only_some_outcomes(run: Run, denied: str) -> None:
    out = run("learn", denied, "--only", "asked")[1]
    assert "allow-npm-install" in out and "git" not in out
    status, out, err = run("learn", denied, "--only", "audited")
    assert (status, out) == (0, "") and "nothing was audited in s1" in err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--name", "a b"], "not a valid policy name"),
        (["--only", "audited", "--only", "denied"], "can't be combined with another --only"),
        (["--extends", "none.yaml"], "no policy or file called none.yaml"),
        (["--new", "--extends", "ci"], "--new can't be combined with --only"),
    ],
)
def test_learn_refuses_invalid_options(run: Run, denied: str, words: list[str], why: str) -> None:
    status, _, err = run("learn", denied, *words)
    assert status == REFUSED and why in err


def test_learn_needs_the_policy_of_the_session(run: Run, record: Record) -> None:
    log = record("s2", {})
    status, _, err = run("learn", log)
    assert status == REFUSED
    assert "s2: the log has no policy (name the base with --extends)" in err
    assert run("learn", log, "--extends", "ci")[0] == 0


def test_check_names_old_keys_and_replaces_them(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_bytes(b"# Mine.\r\nversion: 1\nname: old\nunenforced: warn  # why\n")
    file.chmod(0o600)
    status, out, _ = run("check", str(file))
    assert (status, out.splitlines()[1]) == (0, f"{file}: ok, with warnings")
    assert out.startswith(f"{file}:4:1: warning: unenforced is now fallback (sigwrap policy check")
    status, out, _ = run("check", "--write", str(file))
    assert out.splitlines()[-3:] == [
        "-unenforced: warn  # why",
        "+fallback: warn  # why",
        f"{file}: ok",
    ]
    assert file.read_bytes() == b"# Mine.\r\nversion: 1\nname: old\nfallback: warn  # why\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert run("check", "--write", str(file))[1] == f"{file}: ok\n"
