"""docs/shell.md: each of its blocks is done as it stands."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.support.harness import IS_BINARY, UNDER_TEST, Sigwrap
from tests.support.programs import needs
from tests.support.waiting import await_that

TEXT = (Path(__file__).parents[2] / "docs" / "shell.md").read_text(encoding="utf-8")


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    (found,) = [each for each in blocks if containing in each]
    return str(found)


@pytest.fixture
def subject(subject: Sigwrap) -> Sigwrap:
    """With both names on its PATH."""
    folder = subject.folder / "bin"
    folder.mkdir()
    (folder / "sigwrap").symlink_to(UNDER_TEST)
    beside = Path(UNDER_TEST).with_name("sigwrap-shell")
    (folder / "sigwrap-shell").symlink_to(beside if beside.exists() else UNDER_TEST)
    subject.env["PATH"] = f"{folder}:{subject.env['PATH']}"
    return subject


def said(subject: Sigwrap, script: str, cwd: Path | None = None, **env: str) -> str:
    done = subject.native("sh", "-e", "-c", script, env=env, cwd=cwd or subject.folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_one_session_for_many_commands(subject: Sigwrap) -> None:
    found = said(subject, block("sh", "--join-name"))
    assert found.startswith("stopped\nrunning for ")
    assert "joined   2 commands" in found


def test_by_the_variables_of_agents(subject: Sigwrap) -> None:
    by_shell = block("sh", "export SHELL")
    assert said(subject, f"{by_shell}\n$SHELL -c 'echo by $0'") == f"by {shutil.which('bash')}\n"
    prefix = block("sh", "CLAUDE_CODE_SHELL_PREFIX")
    assert said(subject, f"{prefix}\n$CLAUDE_CODE_SHELL_PREFIX 'echo one; echo 2'") == "one\n2\n"


@pytest.mark.tier("all")
@needs("npm")
def test_npm_and_make(subject: Sigwrap) -> None:
    package = {"name": "x", "version": "1.0.0", "scripts": {"say": "echo said"}}
    project = subject.folder / "project"  # not the home folder: its .npmrc is another
    project.mkdir(mode=0o777)
    project.chmod(0o777)
    (project / "package.json").write_text(json.dumps(package))
    (project / "Makefile").write_text(f"{block('make', 'SHELL')}all:\n\t@echo made; :\n")
    agent = {"SIGWRAP_OPTIONS": "--join-name agent", "npm_config_update_notifier": "false"}
    npm = f"{block('sh', 'npm config')}\nnpm run --silent say"
    assert said(subject, npm, project, **agent) == "said\n"
    assert said(subject, "make", project, **agent) == "made\n"
    calls = [event.payload["command"][-1] for event in subject.events("command_joined")]
    assert calls == ["echo said", "echo made; :"]


@pytest.mark.tier("all")
@needs("tmux")
def test_a_window_of_tmux(subject: Sigwrap) -> None:
    given = block("tmux", "default-shell")
    shell = subject.folder / "bin" / "sigwrap-shell"
    (subject.folder / "tmux.conf").write_text(
        given.replace("/usr/local/bin/sigwrap-shell", str(shell))
    )
    tmux = ("tmux", "-S", "socket", "-f", "tmux.conf")
    subject.env["TERM"] = "xterm"
    assert subject.native(*tmux, "new-session", "-d").returncode == 0
    assert subject.native(*tmux, "send-keys", "echo $0 > said; exit 0", "Enter").returncode == 0
    found = subject.folder / "said"
    await_that(lambda: found.exists() and found.read_text().endswith("bash\n"))
    await_that(lambda: not subject.alive())
    # As a script it doesn't see the name that it was called by.
    login = ["-l"] if IS_BINARY else []
    assert subject.sealed_events("session_started")[0].payload["command"][1:] == login


def test_a_terminal_of_vs_code() -> None:
    found = json.loads(block("json", "terminal"))
    name = found["terminal.integrated.defaultProfile.linux"]
    assert found["terminal.integrated.profiles.linux"][name] == {"path": "sigwrap-shell"}
