"""A program with the name of one of the system's, which a search along PATH finds first."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.events import Event
from tests.support.harness import EXECS, PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import await_that

SYSTEMS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
LS = next(f"{folder}/ls" for folder in SYSTEMS if os.path.exists(f"{folder}/ls"))
ALL = '\n  - {name: all, commands: ["*"], decision: allow}\n'
DENY = "trust: {path_shadow: deny}"
WAYS = {
    "bash": ("bash", "-c", "ls; true"),
    "execvp": (*PYTHON, "-c", "import os; os.execvp('ls', ['ls'])"),
    "env": ("env", "ls"),
}


@pytest.fixture
def tool(as_user: Sigwrap) -> Path:
    """An `ls` at the front of PATH, which says so."""
    return _drop(as_user, as_user.folder / ".local" / "bin")


def _drop(subject: Sigwrap, folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "ls"
    path.write_text("#!/bin/sh\necho shadow\n")
    path.chmod(0o755)
    subject.env["PATH"] = f"{folder}:/usr/bin:/bin"
    return path


def _run(subject: Sigwrap, *words: str, more: str = "", rules: str = ALL) -> tuple[str, str]:
    done = subject.run("-p", policy(subject.folder, rules, more), "--", *words)
    return done.stdout.decode(), done.stderr.decode()


def _flagged(subject: Sigwrap) -> list[Event]:
    execs = subject.sealed_events(*EXECS, "exec_denied")
    return [event for event in execs if "shadows" in event.payload]


def _decided(subject: Sigwrap) -> list[tuple[str, str, str]]:
    return [
        (event.type, event.payload["path"], event.payload["rule_name"])
        for event in _flagged(subject)
    ]


@pytest.mark.parametrize("way", WAYS)
def test_who_searches_path_runs_it_and_it_is_marked_or_it_is_denied(
    as_user: Sigwrap, tool: Path, way: str
) -> None:
    words = WAYS[way]
    out, _ = _run(as_user, *words)
    assert "shadow\n" in out
    (found,) = [each for each in _flagged(as_user) if each.payload["path"] == str(tool)]
    assert (found.type, found.payload["rule_name"]) == ("exec_audited", "all")
    assert found.payload["decision"] == "audit"
    assert found.payload["shadows"] == LS
    assert found.payload["reason"].endswith(f"; it shadows {LS}")

    out, err = _run(as_user, *words, more=DENY)
    assert "shadow\n" not in out
    denied = _decided(as_user)
    assert denied and {(kind, rule) for kind, _, rule in denied} == {
        ("exec_denied", "trust.path_shadow")
    }
    assert "(rule trust.path_shadow, policy test)" in err
    assert f"{tool} comes before {LS} in PATH: run the intended program by its full path" in err
    assert f"(commands: [{tool}]) or sha256" in err


def test_a_wrapper_and_the_interpreter_of_a_script_are_told_early(
    as_user: Sigwrap, tool: Path
) -> None:
    script = as_user.folder / "script"
    script.write_text("#!/usr/bin/env ls\n")
    script.chmod(0o755)
    for line in ("/usr/bin/env ls", str(script)):
        words = line.split()
        assert _run(as_user, *words)[0] == "shadow\n"
        assert [path for _, path, _ in _decided(as_user)] == [words[0], str(tool)]


def test_who_means_another_gets_it(as_user: Sigwrap, tool: Path) -> None:
    """By a path, by another PATH, or by a name that the system has not."""
    (tool.parent / "our-own-tool").symlink_to("ls")
    text = f"""
        env PATH=/usr/bin:/bin ls /dev/null; env -i ls /dev/null; {LS} /dev/null
        (cd /usr; PATH=bin; ls /dev/null)
        {tool}; (cd {tool.parent}; ./ls); our-own-tool
    """
    out, err = _run(as_user, "sh", "-c", text, more=DENY)
    assert (out, err) == ("/dev/null\n" * 4 + "shadow\n" * 3, "")
    assert _flagged(as_user) == []


def test_a_folder_of_path_may_be_relative_or_the_callers(as_user: Sigwrap) -> None:
    _drop(as_user, as_user.folder / "p" / "bin")
    as_user.env["PATH"] = "/usr/bin:/bin"
    text = """
        cd p; for PATH in bin:/usr/bin:/bin ./bin:/usr/bin:/bin ../p/bin:/bin; do ls; done
        cd bin; for PATH in :/usr/bin:/bin .:/usr/bin:/bin /nowhere::/bin; do ls; done
    """
    assert _run(as_user, "bash", "-c", text)[0] == "shadow\n" * 6
    decided = _decided(as_user)
    assert [kind for kind, _, _ in decided] == ["exec_audited"] * 6
    assert not any(called.startswith("/") for _, called, _ in decided)


def test_a_path_that_leads_out_of_the_systems_folders_is_not_the_systems(
    as_user: Sigwrap, tool: Path
) -> None:
    for folder in (f"/usr/bin/../..{tool.parent}", f"/proc/self/root{tool.parent}"):
        as_user.env["PATH"] = f"{folder}:/usr/bin:/bin"
        assert _run(as_user, "bash", "-c", "ls; true", more=DENY)[0] == ""
        assert _decided(as_user)[0][0] == "exec_denied"


@pytest.mark.promise("path shadowing")
def test_the_shipped_policies_mark_or_deny_it_and_the_report_says_so(sigwrap: Sigwrap) -> None:
    tool = _drop(sigwrap, sigwrap.folder / "bin")
    done = sigwrap.run("-p", "agent-strict", "--", "ls")
    assert (done.returncode, done.stdout) == (126, b"")
    assert b"(rule trust.path_shadow, policy agent-strict)" in done.stderr
    assert _decided(sigwrap) == [("exec_denied", str(tool), "trust.path_shadow")]
    done = sigwrap.run("--", "sh", "-c", "ls; env ls; true")
    assert (done.returncode, done.stdout) == (0, b"shadow\nshadow\n")
    assert {kind for kind, *_ in _decided(sigwrap)} == {"exec_audited"}
    told = [event.payload for event in sigwrap.events("agent_signal")]
    assert {each["signal"] for each in told} == {"SIGTRUST"}
    assert {each["source"] for each in told} == {"trust.path_shadow"}
    report = sigwrap.run("report", "--tree").stdout.decode()
    section = report.partition("Commands that shadow system commands\n")[2].partition("\n\n")[0]
    assert section.splitlines() == [
        f"        2  {tool}  shadows {LS}",
        f"        1  what /usr/bin/env runs  shadows {LS}",
    ]


@pytest.fixture
def systems_folder() -> Iterator[Path]:
    """That of a package below /opt, which only root can change."""
    if os.getuid() != 0:
        pytest.skip("needs root")
    folder = Path(f"/opt/sigwrap-test-{os.getpid()}")
    folder.mkdir(mode=0o755)
    (folder / "ls").write_text("#!/bin/sh\necho package\n")
    (folder / "ls").chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_folder_that_becomes_writable_is_the_systems_no_more(
    as_user: Sigwrap, systems_folder: Path
) -> None:
    as_user.env["PATH"] = f"{systems_folder}:/usr/bin:/bin"
    chosen = policy(as_user.folder, ALL)
    line = "import subprocess, sys\nprint('ready', flush=True)\n"
    line += "for _ in sys.stdin: subprocess.run(['ls'])"
    process, said = as_user.start_ready("-p", chosen, "--", *PYTHON, "-c", line)

    def is_marked_now() -> bool:
        process.say(b"\n")
        said.until(rb"package\n")
        return bool(_marked(as_user))

    assert not is_marked_now()
    systems_folder.chmod(0o777)
    await_that(is_marked_now)
    process.stdin.close()
    assert process.wait() == 0
    assert _marked(as_user)[-1] == str(systems_folder / "ls")


def _marked(subject: Sigwrap) -> list[str]:
    found = subject.events(*EXECS)
    return [each.payload["path"] for each in found if "shadows" in each.payload]
