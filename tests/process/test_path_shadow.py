"""A program with the name of one of the system's, which a search along PATH finds first."""

from __future__ import annotations

import os
import shutil
import subprocess
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
EXECVP = "import os; os.execvp('ls', ['ls'])"
WAYS = {
    "bash": ("bash", "-c", "ls; true"),
    "dash": ("sh", "-c", "ls; true"),
    "execvp": (*PYTHON, "-c", EXECVP),
    "env": ("env", "ls"),
    "nice": ("nice", "-n", "1", "ls"),
    "sh of env": ("env", "sh", "-c", "ls; true"),
    "find": ("find", "/dev/null", "-exec", "ls", ";"),
    "xargs": ("xargs", "ls"),
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
def test_whoever_searches_path_runs_it_and_it_is_marked(
    as_user: Sigwrap, tool: Path, way: str
) -> None:
    out, _ = _run(as_user, *WAYS[way])
    assert "shadow\n" in out
    (found,) = [each for each in _flagged(as_user) if each.payload["path"] == str(tool)]
    assert (found.type, found.payload["rule_name"]) == ("exec_audited", "all")
    assert found.payload["decision"] == "audit"
    assert found.payload["shadows"] == LS
    assert found.payload["reason"].endswith(f"; it shadows {LS}")


@pytest.mark.parametrize("way", WAYS)
def test_under_deny_it_does_not_run(as_user: Sigwrap, tool: Path, way: str) -> None:
    out, err = _run(as_user, *WAYS[way], more=DENY)
    assert "shadow\n" not in out
    denied = _decided(as_user)
    assert denied and {(kind, rule) for kind, _, rule in denied} == {
        ("exec_denied", "trust.path_shadow")
    }
    assert f"denied by rule trust.path_shadow of test: {tool} was found along PATH" in err
    assert f"shadows {LS}: call the one that you mean by its path" in err
    assert f"(commands: [{tool}]) or sha256" in err


def test_a_wrapper_that_will_find_it_is_told_early(as_user: Sigwrap, tool: Path) -> None:
    _run(as_user, "env", "ls")
    assert [path for _, path, _ in _decided(as_user)] == ["/usr/bin/env", str(tool)]


@pytest.mark.parametrize(
    "words",
    [
        ("env", "PATH=/usr/bin:/bin", "ls", "/dev/null"),
        ("env", "-i", "ls", "/dev/null"),
        ("sh", "-c", f"{LS} /dev/null"),
        (LS, "/dev/null"),
    ],
)
def test_who_means_the_systems_own_gets_it(
    as_user: Sigwrap, tool: Path, words: tuple[str, ...]
) -> None:
    out, err = _run(as_user, *words, more=DENY)
    assert (out, err) == ("/dev/null\n", "")
    assert _flagged(as_user) == []


def test_called_by_a_path_it_is_what_was_asked_for(as_user: Sigwrap, tool: Path) -> None:
    out, err = _run(as_user, "sh", "-c", f"{tool}; cd {tool.parent} && ./ls", more=DENY)
    assert (out, err) == ("shadow\nshadow\n", "")
    assert _flagged(as_user) == []


def test_a_name_that_the_system_has_not_shadows_nothing(as_user: Sigwrap, tool: Path) -> None:
    tool.rename(tool.with_name("our-own-tool"))
    assert _run(as_user, "our-own-tool", more=DENY) == ("shadow\n", "")
    assert _flagged(as_user) == []


def test_the_interpreter_of_a_script_is_found_so_too(as_user: Sigwrap, tool: Path) -> None:
    script = as_user.folder / "script"
    script.write_text("#!/usr/bin/env ls\n")
    script.chmod(0o755)
    out, _ = _run(as_user, str(script))
    assert out == "shadow\n"
    assert [path for _, path, _ in _decided(as_user)] == [str(script), str(tool)]
    assert _run(as_user, str(script), more=DENY)[0] == ""


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_a_link_is_found_so_whatever_it_leads_to(
    as_user: Sigwrap, tool: Path, make: object
) -> None:
    tool.rename(tool.parent / "real")
    assert callable(make)
    make(str(tool.parent / "real"), str(tool))
    out, _ = _run(as_user, "sh", "-c", "ls; true")
    assert out == "shadow\n"
    assert _decided(as_user) == [("exec_audited", str(tool), "all")]


def test_a_link_to_another_of_the_systems_commands_too(as_user: Sigwrap, tool: Path) -> None:
    tool.unlink()
    tool.symlink_to("/usr/bin/id")
    assert "uid=" not in _run(as_user, "sh", "-c", "ls; true", more=DENY)[0]
    assert _decided(as_user)[0] == ("exec_denied", str(tool), "trust.path_shadow")


@pytest.mark.parametrize("path", ["bin:/usr/bin:/bin", "./bin:/usr/bin:/bin", "../p/bin:/bin"])
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_folder_of_path_may_be_relative(as_user: Sigwrap, path: str, shell: str) -> None:
    _drop(as_user, as_user.folder / "p" / "bin")
    as_user.env["PATH"] = "/usr/bin:/bin"
    line = f"cd p; PATH={path}; ls; true"
    assert _run(as_user, shell, "-c", line)[0] == "shadow\n"
    ((kind, called, _),) = _decided(as_user)
    assert kind == "exec_audited" and called.endswith("bin/ls") and not called.startswith("/")


@pytest.mark.parametrize("path", [":/usr/bin:/bin", ".:/usr/bin:/bin", "/nowhere::/bin"])
@pytest.mark.parametrize("way", ["bash", "dash", "execvp", "env"])
def test_an_empty_entry_of_path_is_the_callers_folder(
    as_user: Sigwrap, path: str, way: str
) -> None:
    tool = _drop(as_user, as_user.folder / "p")
    start = "import os, sys; os.chdir(sys.argv[1]); os.environ['PATH'] = sys.argv[2]; "
    start += "os.execv(sys.argv[3], sys.argv[3:])"
    words = list(WAYS[way])
    words[0] = shutil.which(words[0]) or words[0]
    out, _ = _run(as_user, *PYTHON, "-c", start, str(tool.parent), path, *words)
    assert out == "shadow\n"
    assert "exec_audited" in {kind for kind, called, _ in _decided(as_user) if "env" not in called}


def test_in_a_folder_of_the_system_a_relative_path_finds_the_systems(as_user: Sigwrap) -> None:
    out, err = _run(as_user, "sh", "-c", "cd /usr; PATH=bin; ls /dev/null", more=DENY)
    assert (out, err) == ("/dev/null\n", "")
    assert _flagged(as_user) == []


def test_a_path_that_leads_out_of_the_systems_folders_is_not_the_systems(
    as_user: Sigwrap, tool: Path
) -> None:
    for folder in (f"/usr/bin/../..{tool.parent}", f"/proc/self/root{tool.parent}"):
        as_user.env["PATH"] = f"{folder}:/usr/bin:/bin"
        assert _run(as_user, "bash", "-c", "ls; true", more=DENY)[0] == ""
        assert _decided(as_user)[0][0] == "exec_denied"


def test_a_rule_that_names_it_by_its_path_or_digest_lets_it_run(
    as_user: Sigwrap, tool: Path
) -> None:
    digest = subprocess.check_output(["sha256sum", tool], text=True).split()[0]
    for rules in (
        f"\n  - {{name: mine, commands: [{tool}], decision: allow}}{ALL}",
        f'\n  - {{name: mine, commands: [ls], sha256: ["{digest}"], decision: allow}}{ALL}',
    ):
        out, err = _run(as_user, "sh", "-c", "ls; true", more=DENY, rules=rules)
        assert (out, err) == ("shadow\n", "")
        assert _flagged(as_user) == []
        assert as_user.events("exec_allowed")[-1].payload["rule_name"] == "mine"


def test_a_glob_chooses_nothing_since_anything_may_be_put_there(
    as_user: Sigwrap, tool: Path
) -> None:
    rules = f"\n  - {{name: mine, commands: [{tool.parent}/*], decision: allow}}{ALL}"
    assert "shadow\n" not in _run(as_user, "sh", "-c", "ls; true", more=DENY, rules=rules)[0]
    assert _decided(as_user)[0] == ("exec_denied", str(tool), "trust.path_shadow")


def test_a_link_is_named_as_it_was_found_and_what_is_said_to_do_lets_only_it_run(
    as_user: Sigwrap, tool: Path
) -> None:
    """As of a virtual environment, whose `python3` leads to an interpreter of another name."""
    file = tool.rename(tool.with_name("interpreter"))
    for name in ("ls", "id"):
        tool.with_name(name).symlink_to(file)
    _, err = _run(as_user, "bash", "-c", "ls; true", more=DENY)
    assert f"of test: {tool} -> {file} was found along PATH and shadows {LS}: " in err
    remedy = f"[{tool}, {file}]"
    assert f"names both the link and its file (commands: {remedy})" in err
    rules = f"\n  - {{name: mine, commands: {remedy}, decision: allow}}{ALL}"
    for line in ("ls; id; true", f"cd {tool.parent}; PATH=.; ls; id"):
        out, _ = _run(as_user, "bash", "-c", line, more=DENY, rules=rules)
        assert out == "shadow\n"
        assert [called.rpartition("/")[2] for _, called, _ in _decided(as_user)] == ["id"]


def test_it_is_not_asked_about_under_deny_and_marked_where_it_is(
    as_user: Sigwrap, tool: Path
) -> None:
    rules = f"\n  - {{name: ask, commands: [ls], decision: approve}}{ALL}"
    _run(as_user, "bash", "-c", "ls; true", more=DENY, rules=rules)
    assert _decided(as_user)[0] == ("exec_denied", str(tool), "trust.path_shadow")
    assert not as_user.events("approval_requested")
    _run(as_user, "bash", "-c", "ls; true", rules=rules)
    assert _decided(as_user) == [("exec_denied", str(tool), "ask")]


def test_agent_strict_denies_it(as_user: Sigwrap, tool: Path) -> None:
    done = as_user.run("-p", "agent-strict", "--", "ls")
    assert done.returncode == 126 and done.stdout == b""
    assert b"denied by rule trust.path_shadow of agent-strict" in done.stderr
    assert _decided(as_user) == [("exec_denied", str(tool), "trust.path_shadow")]
    done = as_user.run("-p", "agent-strict", "--", LS, "/dev/null")
    assert (done.returncode, done.stdout) == (0, b"/dev/null\n")


def test_agent_default_runs_it_and_marks_it(as_user: Sigwrap, tool: Path) -> None:
    done = as_user.run("--", "ls")
    assert (done.returncode, done.stdout) == (0, b"shadow\n")
    assert [kind for kind, *_ in _decided(as_user)] == ["exec_audited"]


def test_the_report_says_what_shadows_what(as_user: Sigwrap, tool: Path) -> None:
    _run(as_user, "sh", "-c", "ls; env ls; true")
    report = as_user.native(*as_user.line("report")).stdout.decode()
    section = report.partition("Found along PATH before the system's\n")[2].partition("\n\n")[0]
    assert section.splitlines() == [
        f"        2  {tool}  shadows {LS}",
        f"        1  what /usr/bin/env runs  shadows {LS}",
    ]


def test_explain_says_it_of_the_path_of_now(as_user: Sigwrap, tool: Path) -> None:
    chosen = policy(as_user.folder, ALL, DENY)
    as_user.policy = ""
    line = as_user.line("policy", "explain", "-p", chosen, "--", "ls", "-l")
    text = as_user.native(*line).stdout.decode()
    assert text.startswith(f"{tool} -l: deny\n")
    assert f"  Found along PATH before {LS}.\n" in text
    assert text.endswith(f"It shadows {LS} (trust.path_shadow): deny, by trust.path_shadow.\n")


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
