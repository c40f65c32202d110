"""sigwrap hook, as an agent's program runs it: a call on standard input, an answer on standard
output, and whatever goes wrong is a denial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import PYTHON, UNDER_TEST, Sigwrap
from tests.support.killswitch import switch

pytestmark = pytest.mark.tier("ci")


def bash(folder: Path, line: str, **given: Any) -> bytes:
    call = {
        "session_id": "s1",
        "cwd": str(folder),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": line},
    }
    return json.dumps({**call, **given}).encode()


def hook(sigwrap: Sigwrap, text: bytes, *words: str, **env: str) -> tuple[int, str, str]:
    done = sigwrap.run("hook", *words, input=text, env=env)
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.promise("hooks")
def test_an_agents_call_is_answered(as_user: Sigwrap) -> None:
    folder = as_user.folder
    assert hook(as_user, bash(folder, "git status"), "claude-code") == (0, "", "")
    status, out, err = hook(as_user, bash(folder, "cd x && git push --force"), "claude-code")
    assert (status, err) == (0, "")
    said = json.loads(out)["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny"
    assert said["permissionDecisionReason"].startswith(
        "sigwrap: denied: git push --force: forced pushes are left to people (rule force-push, "
    )
    status, out, _ = hook(as_user, bash(folder, "npm install x"), "claude-code")
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "ask"


def test_where_nobody_is_asked_a_question_is_a_denial(sigwrap: Sigwrap) -> None:
    given = {"permission_mode": "bypassPermissions"}
    _, out, _ = hook(sigwrap, bash(sigwrap.folder, 'eval "$x"', **given), "claude-code")
    said = json.loads(out)["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny"
    assert "cannot ask its user" in said["permissionDecisionReason"]


def test_files_and_connections_are_judged_by_their_rules(sigwrap: Sigwrap) -> None:
    (sigwrap.folder / "policy.yaml").write_text(
        "version: 1\nname: mine\ndefaults: {command: allow, signal: allow, file: allow,"
        " network: deny}\nfile_rules:\n  - {name: secrets, paths: ['${PROJECT_ROOT}/secret'],"
        " operations: [read, write], decision: deny}\nnetwork_rules:\n"
        "  - {name: docs, destinations: [docs.example.com], decision: allow}\n"
    )
    (sigwrap.folder / "secret").touch()
    (sigwrap.folder / "link").symlink_to("secret")

    def answer(tool: str, **given: str) -> str:
        text = bash(sigwrap.folder, "", tool_name=tool, tool_input=given)
        status, out, err = hook(sigwrap, text, "claude-code", "-p", "policy.yaml")
        assert (status, err) == (0, "")
        return str(json.loads(out)["hookSpecificOutput"]["permissionDecision"]) if out else ""

    folder = str(sigwrap.folder)
    assert answer("Read", file_path=f"{folder}/secret") == "deny"
    assert answer("Read", file_path="link") == "deny"
    assert answer("Edit", file_path=f"{folder}/../{sigwrap.folder.name}/secret") == "deny"
    assert answer("Read", file_path=f"{folder}/policy.yaml") == ""
    assert answer("WebFetch", url="https://docs.example.com/x") == ""
    assert answer("WebFetch", url="https://example.org/") == "deny"
    assert answer("Read", file_path="/proc/1/exe") == ""  # a link that not every user can follow
    assert answer("Glob", pattern="secret") == ""
    assert answer("Grep", pattern="x", path=f"{folder}/secret") == "deny"
    assert answer("Grep", pattern="x") == "ask"  # beneath the project is a secret


def test_whatever_keeps_it_from_judging_is_a_denial(sigwrap: Sigwrap) -> None:
    call = bash(sigwrap.folder, "ls")
    (sigwrap.folder / "bad.yaml").write_text("version: 1\nname: [")
    for words in (("-p", "none.yaml"), ("-p", "bad.yaml"), ("-p",), ("--store", "")):
        status, out, err = hook(sigwrap, call, "claude-code", *words)
        assert (status, out) == (2, ""), words
        assert err.startswith("sigwrap: "), words
    status, out, err = hook(sigwrap, b"nonsense", "cursor")
    assert (status, out) == (2, "")
    assert err.startswith("sigwrap: denied: hook cursor: the call is not valid JSON: ")
    assert hook(sigwrap, call)[0] == hook(sigwrap, call, "other")[0] == 2
    status, out, err = hook(sigwrap, b" " * (17 << 20), "claude-code")
    assert (status, out, err) == (
        2,
        "",
        "sigwrap: denied: hook claude-code: the call is longer than 16 MiB"
        ". Do not work around this; tell the user.\n",
    )
    assert hook(sigwrap, b"", "--help")[0] == 0
    closed = sigwrap.native("/bin/sh", "-c", '"$0" hook gemini <&-', UNDER_TEST)
    assert (closed.returncode, closed.stdout) == (2, b"")
    assert closed.stderr.startswith(
        b"sigwrap: denied: hook gemini: standard input is closed. Do not"
    )


def test_the_kill_switch_denies_everything(alone: Sigwrap) -> None:
    assert switch(alone, "on", "--reason", "enough")[0] == 0
    status, out, err = hook(alone, bash(alone.folder, "ls"), "claude-code")
    assert (status, out) == (2, "")
    assert "the kill switch is on" in err and "enough" in err
    assert switch(alone, "off", "--yes")[0] == 0
    assert hook(alone, bash(alone.folder, "ls"), "claude-code") == (0, "", "")


def test_each_conversation_has_a_log_to_which_any_number_of_hooks_append(
    as_user: Sigwrap,
) -> None:
    folder = as_user.folder
    calls = [
        bash(folder, line, session_id=conversation, tool_use_id=f"toolu_{number}")
        for number, line in enumerate(["git status", "cat ~/.ssh/id_rsa", "npm install x"] * 4)
        for conversation in ("one", "two")
    ]
    running = [as_user.start("hook", "claude-code") for _ in calls]
    for process, call in zip(running, calls, strict=True):
        process.say(call)
        process.stdin.close()
    assert [process.wait() for process in running] == [0] * len(calls)

    listed = as_user.run("sessions", "--json")
    sessions = json.loads(listed.stdout)["sessions"]
    assert [each["command"] for each in sessions] == [["sigwrap", "hook", "claude-code"]] * 2
    assert not any(each["running"] or each["recoverable"] for each in sessions)
    for each in sessions:
        verified = as_user.run("verify", each["session_id"]).stdout
        assert verified.startswith(f"{each['session_id']}: 13 events, hash chain int".encode())
    said = b"Hooks judged 12 tool calls of one conversation: 4 denied, 4 left to the user."
    assert said in as_user.run("report").stdout.splitlines()
    assert as_user.run("sessions", "recover").stdout == b"nothing to recover\n"
    sql = (
        "select conversation, answer, rule, what, count(distinct call_id) as calls"
        " from tool_calls group by conversation, answer order by conversation, answer"
    )
    rows = json.loads(as_user.run("query", "--all", "--json", sql).stdout)
    found = [(each["answer"], each["rule"], each["what"], each["calls"]) for each in rows]
    assert found == 2 * [
        ("ask", "pkg-install", "npm install x", 4),
        ("deny", "secrets", "cat ~/.ssh/id_rsa", 4),
        ("no opinion", "", "git status", 4),
    ]


def test_secrets_in_a_line_are_not_written_down(sigwrap: Sigwrap) -> None:
    for line in (
        "deploy --token hunter2secret",
        "cd x && curl -u me:hunter2secret http://169.254.169.254",
        "API_TOKEN=hunter2secret  npm publish",
    ):
        hook(sigwrap, bash(sigwrap.folder, line), "claude-code")
    (log,) = (sigwrap.store / "sessions").iterdir()
    assert b"*  npm publish" in log.read_bytes() and b"hunter2secret" not in log.read_bytes()


def test_a_call_that_cannot_be_recorded_is_denied(sigwrap: Sigwrap) -> None:
    sigwrap.store.write_text("no directory")
    status, out, err = hook(sigwrap, bash(sigwrap.folder, "ls"), "claude-code")
    assert (status, out) == (2, "")
    assert "can't write the event log hook-" in err and "choose a writable directory" in err


def test_a_hook_in_a_session_is_recorded_there(as_user: Sigwrap) -> None:
    """Whatever else processes in the session send there is dropped."""
    call = bash(as_user.folder, "cat ~/.ssh/id_rsa", tool_use_id="toolu_7")
    (as_user.folder / "call").write_bytes(call)
    send = (
        "import glob, socket, sys; end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM);"
        "(name,) = glob.glob(sys.argv[1]);"
        "[end.sendto(each, name) for each in (b'', b'[1]', b'[' * 9999, b'{\"answer\": \"x\"}',"
        " b'\xff', b'x' * 60000)]"
    )
    name = f"{as_user.store}/control/*.calls"
    line = f"{PYTHON[0]} -I -c '{send}' '{name}'; {UNDER_TEST} hook claude-code < call"
    done = as_user.run("--", "sh", "-c", line)
    assert done.returncode == 0, done.stderr
    (event,) = as_user.events("tool_call_judged")
    assert event.payload["call_id"] == "toolu_7"
    assert (event.payload["answer"], event.payload["rule_name"]) == ("deny", "secrets")
    assert event.payload["what"] == "cat ~/.ssh/id_rsa"
    assert event.payload["reason"] == (
        f"read {as_user.folder}/.ssh/id_rsa: not allowed (rule secrets, policy agent-default)"
    )
    as_user.verify(ended=True)
    assert len(list((as_user.store / "sessions").iterdir())) == 1
    assert not list((as_user.store / "control").iterdir())


def test_inside_a_session_the_rest_is_left_to_it(sigwrap: Sigwrap) -> None:
    """A variable alone is no session."""
    (sigwrap.folder / "unknown").write_bytes(bash(sigwrap.folder, 'eval "$x"'))
    (sigwrap.folder / "denied").write_bytes(bash(sigwrap.folder, "git push --force"))
    line = f"for f in unknown denied; do {UNDER_TEST} hook claude-code < $f; echo =; done"
    done = sigwrap.run("--", "sh", "-c", line)
    assert done.returncode == 0, done.stderr
    unknown, denied, _ = done.stdout.decode().split("=\n")
    assert unknown == ""
    assert json.loads(denied)["hookSpecificOutput"]["permissionDecision"] == "deny"
    sigwrap.verify(ended=True)
    assert len(list((sigwrap.store / "sessions").glob("*.db"))) == 1

    text = bash(sigwrap.folder, 'eval "$x"')
    _, out, _ = hook(sigwrap, text, "claude-code", SIGWRAP_SESSION="forged")
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "ask"


def test_the_project_is_what_the_program_says(sigwrap: Sigwrap) -> None:
    """Not where the agent has gone to since."""
    project, elsewhere = sigwrap.folder / "project", sigwrap.folder / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    policy = sigwrap.folder / "policy.yaml"
    policy.write_text(
        "version: 1\nname: mine\ndefaults: {command: allow, signal: allow}\ncommand_rules:\n"
        "  - {name: keep, commands: [rm], paths: ['${PROJECT_ROOT}'], decision: deny}\n"
    )
    text = bash(elsewhere, "rm -r ../project")
    words = ("claude-code", "-p", str(policy))
    assert hook(sigwrap, text, *words, CLAUDE_PROJECT_DIR=str(elsewhere))[1] == ""
    assert "deny" in hook(sigwrap, text, *words, CLAUDE_PROJECT_DIR=str(project))[1]
    assert "deny" in hook(sigwrap, text, *words, "--root", str(project))[1]


def test_explain_shows_what_is_in_a_line(sigwrap: Sigwrap) -> None:
    line = 'cd / && git push --force; git "$x" > "$y"'
    words = ("policy", "explain", "--", "bash", "-c", line)
    done = sigwrap.native(UNDER_TEST, *words)
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    for expected in (
        "/usr/bin/git push --force: deny\n  Why: rule force-push matches (",
        "/usr/bin/git …: ",
        '> "$y": the file that it opens is not known in advance',
        "As an agent hook, sigwrap denies the line.",
    ):
        assert expected in text, text
    done = sigwrap.native(UNDER_TEST, *words[:2], "--json", *words[2:])
    found = json.loads(done.stdout)
    assert found["decision"]["action"] == "allow"
    assert found["line"]["hook"] == "deny"
    actions = [each["decision"]["action"] for each in found["line"]["commands"]]
    assert actions[0] == "deny"
    given = ("policy", "explain", "--", "curl", "-o", "/etc/x", "http://169.254.169.254")
    text = sigwrap.native(UNDER_TEST, *given).stdout.decode()
    for expected in (
        "create /etc/x: not allowed (rule elsewhere, policy agent-default)\n",
        "connect to 169.254.169.254:80: not allowed (rule cloud-credentials, policy agent-d",
        "As an agent hook, sigwrap denies the line.",
    ):
        assert expected in text, text
    plain = sigwrap.native(UNDER_TEST, "policy", "explain", "--", "git", "status").stdout
    assert b"hook" not in plain
