"""sigwrap hook install and uninstall, as a user runs them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.harness import NOBODY, REFUSED, UNDER_TEST, Sigwrap

pytestmark = pytest.mark.tier("ci")

OWN = b'{\n    "model": "opus",\n    "hooks": {\n        "Stop": []\n    }\n}\n'


def settings(sigwrap: Sigwrap, *words: str) -> subprocess.CompletedProcess[bytes]:
    done = sigwrap.run(*words)
    assert b"Traceback" not in done.stderr
    return done


def test_the_hook_goes_in_and_out(as_user: Sigwrap) -> None:
    file = as_user.folder / ".claude" / "settings.local.json"
    done = settings(as_user, "hook", "install", "claude-code", "--dry-run")
    assert done.returncode == 0 and b'+            "command": ' in done.stdout
    assert not file.exists()
    done = settings(as_user, "hook", "install", "claude-code")
    assert (done.returncode, file.exists()) == (REFUSED, False)
    assert b"no terminal to ask for confirmation (use --yes to skip it)" in done.stderr

    assert settings(as_user, "hook", "install", "claude-code", "--yes").returncode == 0
    (entry,) = json.loads(file.read_bytes())["hooks"]["PreToolUse"]
    line = entry["hooks"][0]["command"]
    assert line.endswith("sigwrap hook run claude-code || exit 2")
    again = settings(as_user, "hook", "install", "claude-code", "--yes")
    assert again.stdout.decode() == f"{file} already has the hook\n"
    assert settings(as_user, "hook", "uninstall", "claude-code", "--yes").returncode == 0
    assert not file.exists()
    said = settings(as_user, "hook", "uninstall", "claude-code").stdout
    assert said.endswith(b" does not have the hook\n")


def test_shared_settings_are_named_and_uninstall_finds_both(sigwrap: Sigwrap) -> None:
    folder = sigwrap.folder / ".claude"
    for words in ((), ("--shared",)):
        assert settings(sigwrap, "hook", "install", "claude-code", "--yes", *words).returncode == 0
    assert {each.name for each in folder.iterdir()} == {"settings.json", "settings.local.json"}
    done = settings(sigwrap, "hook", "uninstall", "claude-code", "--yes")
    assert done.stdout.count(b"removed ") == 2 and not list(folder.iterdir())
    said = settings(sigwrap, "hook", "uninstall", "claude-code").stdout.decode()
    assert said.count("does not have the hook") == 2


def test_the_line_that_it_writes_is_a_hook(sigwrap: Sigwrap) -> None:
    """Run as the programs do it; and where sigwrap is gone, the call is denied all the same."""
    policy = sigwrap.folder / "it's mine.yaml"
    policy.write_text("version: 1\nname: mine\ndefaults: {command: deny, signal: deny}\n")
    words = ("hook", "install", "gemini", "--user", "--yes", "--policy", policy.name)
    assert settings(sigwrap, *words).returncode == 0
    file = sigwrap.folder / ".gemini" / "settings.json"
    (entry,) = json.loads(file.read_bytes())["hooks"]["BeforeTool"]
    line = entry["hooks"][0]["command"]
    call = {
        "cwd": "/",
        "hook_event_name": "BeforeTool",
        "tool_name": "run_shell_command",
        "tool_input": {"command": "ls"},
    }
    options = {"input": json.dumps(call).encode()}
    done = sigwrap._finish(sigwrap.start_line(["sh", "-c", line]), options)
    assert (done.returncode, json.loads(done.stdout)["decision"]) == (0, "deny")
    gone = line.replace(UNDER_TEST, "/nowhere/sigwrap")
    done = sigwrap._finish(sigwrap.start_line(["sh", "-c", gone]), options)
    assert (done.returncode, done.stdout) == (2, b"")


def test_it_asks_on_a_terminal(sigwrap: Sigwrap) -> None:
    file = sigwrap.folder / ".cursor" / "hooks.json"
    for answer, is_there in (("n\n", False), ("y\n", True)):
        terminal = sigwrap.terminal_for([UNDER_TEST, "hook", "install", "cursor"])
        terminal.output.until(rb"change .*\[y/N\]: ")
        terminal.type(answer)
        terminal.await_status()
        assert file.exists() is is_there


@pytest.mark.tier("all")
def test_each_program_has_its_own_place(sigwrap: Sigwrap) -> None:
    for program, file in (
        ("claude-code", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("cursor", ".cursor/hooks.json"),
        ("gemini", ".gemini/settings.json"),
    ):
        done = settings(sigwrap, "hook", "install", program, "--user", "--dry-run")
        assert f"+++ {sigwrap.folder}/{file}\n" in done.stdout.decode()
    env = {"CODEX_HOME": str(sigwrap.folder / "other")}
    done = sigwrap.native(UNDER_TEST, "hook", "install", "codex", "--user", "--yes", env=env)
    assert (sigwrap.folder / "other" / "hooks.json").exists()
    assert b"after you trust it" in done.stderr


def test_everything_else_in_the_file_stays(sigwrap: Sigwrap) -> None:
    """Its mode too, and where it is a link, that."""
    (sigwrap.folder / ".claude").mkdir()
    kept = sigwrap.folder / "dotfile.json"
    kept.write_bytes(OWN)
    kept.chmod(0o600)
    file = sigwrap.folder / ".claude" / "settings.local.json"
    file.symlink_to(kept)
    done = settings(sigwrap, "hook", "install", "claude-code", "--yes", "-p", "ci")
    assert f"(a link to {kept})" in done.stdout.decode()
    assert file.is_symlink() and stat.S_IMODE(kept.stat().st_mode) == 0o600
    backup = file.with_name("settings.local.json.before-sigwrap")
    assert backup.read_bytes() == OWN and stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert json.loads(kept.read_bytes())["hooks"]["Stop"] == []
    assert settings(sigwrap, "hook", "uninstall", "claude-code", "--yes").returncode == 0
    assert kept.read_bytes() == OWN


def test_a_place_where_it_cannot_be_is_said(sigwrap: Sigwrap) -> None:
    folder = sigwrap.folder / ".claude"
    folder.write_text("")
    assert b"can't" in settings(sigwrap, "hook", "install", "claude-code", "--yes").stderr
    folder.unlink()
    folder.mkdir()
    file = folder / "settings.local.json"
    os.mkfifo(file)
    assert (
        b"is not a regular file"
        in settings(sigwrap, "hook", "install", "claude-code", "--yes").stderr
    )
    file.unlink()
    file.mkdir()
    assert (
        b": Is a directory" in settings(sigwrap, "hook", "install", "claude-code", "--yes").stderr
    )
    file.rmdir()
    file.symlink_to("nowhere")
    assert (
        b"is a broken link" in settings(sigwrap, "hook", "install", "claude-code", "--yes").stderr
    )
    file.unlink()
    file.write_bytes(b"\xff")
    for command in ("install", "uninstall"):
        done = settings(sigwrap, "hook", command, "claude-code", "--yes")
        assert done.returncode == REFUSED and b"is not UTF-8 text" in done.stderr
    assert file.read_bytes() == b"\xff"
    (sigwrap.folder / ".codex").symlink_to("nowhere")
    done = settings(sigwrap, "hook", "install", "codex", "--yes")
    assert b".codex is not a directory (remove it)" in done.stderr
    (sigwrap.folder / ".codex").unlink()
    if os.getuid() == 0:
        file.write_bytes(OWN)
        os.chown(file, NOBODY, NOBODY)
        done = settings(sigwrap, "hook", "install", "claude-code", "--yes")
        assert b"belongs to another user" in done.stderr and file.read_bytes() == OWN
    line = (UNDER_TEST, "hook", "install", "gemini", "--user", "--dry-run")
    assert b"no home directory" in sigwrap.native(*line, env={"HOME": ""}).stderr
    done = settings(sigwrap, "hook", "install", "claude-code", "--project", "--user")
    assert (done.returncode, b"can't be combined" in done.stderr) == (REFUSED, True)
    done = settings(sigwrap, "hook", "install", "codex", "--yes", "-p", "none.yaml")
    assert done.returncode == REFUSED
    assert not (sigwrap.folder / ".codex").exists()


def test_processes_in_a_session_cannot_change_hooks(sigwrap: Sigwrap) -> None:
    assert settings(sigwrap, "hook", "install", "claude-code", "--yes").returncode == 0
    file: Path = sigwrap.folder / ".claude" / "settings.local.json"
    before = file.read_bytes()
    for command in ("install", "uninstall"):
        done = sigwrap.run("--", UNDER_TEST, "hook", command, "claude-code", "--yes")
        assert done.returncode == REFUSED
        assert b"can't change the hooks of an agent" in done.stderr
    assert file.read_bytes() == before


def test_a_file_that_is_read_only_stays(as_user: Sigwrap) -> None:
    folder = as_user.folder / ".claude"
    assert settings(as_user, "hook", "install", "claude-code", "--yes").returncode == 0
    file = folder / "settings.local.json"
    before = file.read_bytes()
    file.chmod(0o444)
    if as_user.user is None and os.getuid() == 0:
        return  # nothing is read-only to root
    done = settings(as_user, "hook", "uninstall", "claude-code", "--yes")
    assert done.returncode == REFUSED and b"is read-only" in done.stderr
    assert file.read_bytes() == before
