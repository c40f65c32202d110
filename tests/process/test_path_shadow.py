"""A program with a system command's name that a search along PATH finds first, and that the session
put there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
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


STRICT = """\
version: 1
name: strict
extends: agent-strict
command_rules:
  - {name: shells, commands: [sh], decision: allow, overrides: [everything-else]}
"""
CHANGED = 'echo >> "$0"; exec "$@"'


@pytest.fixture
def tool(as_user: Sigwrap) -> Path:
    """An `ls` at the front of PATH, which says so."""
    return _drop(as_user, as_user.folder / ".local" / "bin")


OLD = ("old", "old2", "old3")
ATTACKS = {
    "written": "cat old/ls > bin/ls; /bin/chmod +x bin/ls",
    "moved": "mv old/ls bin",
    "hard link": "ln old/ls bin",
    "new link": "ln -s ../old/ls bin/ls",
    "other time": "cp old/ls bin; touch -d 2000-01-01 bin/ls",
    "folder moved": "rmdir bin; mv old bin",
    "folder linked": "rmdir bin; ln -s old bin",
    "folder above moved": "rmdir bin; mkdir new; mv old new/bin; mv new/bin .",
    "link in the way changed": "ln -sfn ../old2 linked/to; PATH=$PWD/linked/to:$PATH",
    "mode": "chmod +x old3/ls; PATH=$PWD/old3:$PATH",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_old_file_in_a_new_place_shadows(as_user: Sigwrap, attack: str) -> None:
    _stands(as_user)
    text = f"{ATTACKS[attack]}; ls; true"
    assert _run(as_user, "bash", "-c", text)[0] == "shadow\n"
    assert [kind for kind, _, _ in _decided(as_user)] == ["exec_audited"]
    _stands(as_user)
    out, err = _run(as_user, "bash", "-c", text, more=DENY)
    assert (out, "(rule trust.path_shadow, policy test)" in err) == ("", True)


def _stands(subject: Sigwrap) -> None:
    """Prepare folders as they are before a session, with an empty one at the front of PATH."""
    folder = subject.folder
    subprocess.run(["rm", "-rf", *OLD, "bin", "linked", "new"], cwd=folder, check=True)
    for each in OLD:
        _drop(subject, folder / each)
    (folder / "old3" / "ls").chmod(0o644)
    (folder / "linked").mkdir()
    (folder / "linked" / "to").symlink_to("../bin")
    (folder / "bin").mkdir()
    _own(subject, folder / "linked", folder / "linked" / "to", folder / "bin")
    subject.env["PATH"] = f"{folder}/bin:/usr/bin:/bin"


def test_what_stood_there_before_the_session_or_is_the_systems_own_shadows_nothing(
    as_user: Sigwrap, not_in_memory: Path
) -> None:
    tool = _drop(as_user, not_in_memory / "tools")
    (not_in_memory / "bin").mkdir()
    (not_in_memory / "bin" / "ls").symlink_to("../tools/ls")
    _own(as_user, not_in_memory / "bin")
    as_user.env["PATH"] = f"{not_in_memory}/bin:/usr/bin:/bin"
    text = f"""
        ls; env ls; PATH={tool.parent}:$PATH; ls
        mkdir own; ln -s {os.path.realpath(LS)} own/ls; touch {not_in_memory}/bin/other
        PATH=$PWD/own:$PATH; hash -r; ls -d own
    """
    assert _run(as_user, "bash", "-c", text, more=DENY) == ("shadow\n" * 3 + "own\n", "")
    assert _flagged(as_user) == []


@pytest.fixture
def not_in_memory(as_user: Sigwrap) -> Iterator[Path]:
    """A folder of the user, where a file's change time tells of each change: not on tmpfs."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        _own(as_user, Path(folder))
        yield Path(folder)


def _drop(subject: Sigwrap, folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "ls"
    path.write_text("#!/bin/sh\necho shadow\n")
    path.chmod(0o755)
    _own(subject, folder, path)
    subject.env["PATH"] = f"{folder}:/usr/bin:/bin"
    return path


def _own(subject: Sigwrap, *paths: Path) -> None:
    owner = subject.folder.stat()
    for each in paths:
        os.chown(each, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _run(
    subject: Sigwrap, *words: str, more: str = "", changed: Path | None = None
) -> tuple[str, str]:
    """Run the words in a session, which first changes that file."""
    if changed is not None:
        words = ("/bin/sh", "-c", CHANGED, str(changed), *words)
    done = subject.run("-p", policy(subject.folder, ALL, more), "--", *words)
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
    out, _ = _run(as_user, *words, changed=tool)
    assert "shadow\n" in out
    (found,) = [each for each in _flagged(as_user) if each.payload["path"] == str(tool)]
    assert (found.type, found.payload["rule_name"]) == ("exec_audited", "all")
    assert found.payload["decision"] == "audit"
    assert found.payload["shadows"] == LS
    assert found.payload["reason"].endswith(f"; it shadows {LS}")

    out, err = _run(as_user, *words, more=DENY, changed=tool)
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
        assert _run(as_user, *words, changed=tool)[0] == "shadow\n"
        assert [path for _, path, _ in _decided(as_user)] == [words[0], str(tool)]


def test_who_means_another_gets_it(as_user: Sigwrap, tool: Path) -> None:
    """By a path, by another PATH, or by a name that the system has not."""
    (tool.parent / "our-own-tool").symlink_to("ls")
    text = f"""
        env PATH=/usr/bin:/bin ls /dev/null; env -i ls /dev/null; {LS} /dev/null
        (cd /usr; PATH=bin; ls /dev/null)
        {tool}; (cd {tool.parent}; ./ls); our-own-tool
    """
    out, err = _run(as_user, "sh", "-c", text, more=DENY, changed=tool)
    assert (out, err) == ("/dev/null\n" * 4 + "shadow\n" * 3, "")
    assert _flagged(as_user) == []


def test_a_folder_of_path_may_be_relative_or_the_callers(as_user: Sigwrap) -> None:
    tool = _drop(as_user, as_user.folder / "p" / "bin")
    as_user.env["PATH"] = "/usr/bin:/bin"
    text = """
        cd p; for PATH in bin:/usr/bin:/bin ./bin:/usr/bin:/bin ../p/bin:/bin; do ls; done
        cd bin; for PATH in :/usr/bin:/bin .:/usr/bin:/bin /nowhere::/bin; do ls; done
    """
    assert _run(as_user, "bash", "-c", text, changed=tool)[0] == "shadow\n" * 6
    decided = _decided(as_user)
    assert [kind for kind, _, _ in decided] == ["exec_audited"] * 6
    assert not any(called.startswith("/") for _, called, _ in decided)


def test_a_path_that_leads_out_of_the_systems_folders_is_not_the_systems(
    as_user: Sigwrap, tool: Path
) -> None:
    for folder in (f"/usr/bin/../..{tool.parent}", f"/proc/self/root{tool.parent}"):
        as_user.env["PATH"] = f"{folder}:/usr/bin:/bin"
        assert _run(as_user, "bash", "-c", "ls; true", more=DENY, changed=tool)[0] == ""
        assert _decided(as_user)[0][0] == "exec_denied"


@pytest.mark.promise("path shadowing")
def test_the_shipped_policies_mark_or_deny_it_and_the_report_says_so(sigwrap: Sigwrap) -> None:
    tool = _drop(sigwrap, sigwrap.folder / "bin")
    changing = ("sh", "-c", CHANGED, str(tool))
    strict = sigwrap.folder / "strict.yaml"
    strict.write_text(STRICT)
    done = sigwrap.run("-p", str(strict), "--", *changing, "ls")
    assert b"shadow\n" not in done.stdout
    assert b"(rule trust.path_shadow, policy strict)" in done.stderr
    assert _decided(sigwrap) == [("exec_denied", str(tool), "trust.path_shadow")]
    done = sigwrap.run("--", *changing, "sh", "-c", "ls; env ls; true")
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
    (systems_folder / "ls").touch()
    await_that(is_marked_now)
    process.stdin.close()
    assert process.wait() == 0
    assert _marked(as_user)[-1] == str(systems_folder / "ls")


def _marked(subject: Sigwrap) -> list[str]:
    found = subject.events(*EXECS)
    return [each.payload["path"] for each in found if "shadows" in each.payload]
