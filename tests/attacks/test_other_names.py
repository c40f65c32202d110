"""A denying rule knows the files that it names: under another name they are the same programs. What
an allowing rule names is what runs: no link's name, and no code loaded into it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.programs import COMPILER, needs

BUSYBOX = shutil.which("busybox")
RULES = """
  - {name: no-tool, commands: [tool], decision: deny}
  - {name: no-rm, commands: [rm], args_patterns: [^never$], decision: deny}
"""
APPROVED = "\n  - {name: ask-tool, commands: ['tool*'], decision: approve}\n"


@pytest.fixture
def placed(as_user: Sigwrap, compiled: Path) -> Sigwrap:
    """With a program on PATH, which rules call `tool`."""
    folder = as_user.folder / "bin"
    folder.mkdir()
    shutil.copy(compiled / "stays", folder / "tool")
    if as_user.user is not None:
        for path in (folder, folder / "tool"):
            os.chown(path, as_user.user, as_user.user)
    as_user.env["PATH"] += f":{folder}"
    return as_user


def _run(subject: Sigwrap, command: str, rules: str = RULES) -> tuple[bytes, list[str]]:
    options = ("--approvals", "deny", "-p", policy(subject.folder, rules))
    line = (*options, "--", "sh", "-c", f"{command}; echo $?")
    done = subject.run(*line, cwd=str(subject.folder))
    assert done.stdout, done.stderr
    return done.stdout, [each.payload["rule_name"] for each in subject.events("exec_denied")]


MADE = (
    "ln bin/tool x",
    "ln bin/tool y; mv y x",
    "ln bin/tool y; ln -s y x",
    "ln bin/tool y; printf '#!%s\\n' $PWD/y > x; chmod +x x",
    "ln bin/tool x; chmod 111 x",
    "mv bin/tool x",
)


def test_under_another_name(placed: Sigwrap) -> None:
    """Also one that was made before the run."""
    os.link(placed.folder / "bin" / "tool", placed.folder / "link")
    each = "; ".join(f"{made}; ./x; echo $?; rm -f x y" for made in MADE)
    said, rules = _run(placed, f"./link; echo $?; {each}; :")
    assert said.split() == [b"126"] * (1 + len(MADE)) + [b"0"], said
    assert rules == ["no-tool"] * (1 + len(MADE))


def test_what_asks_for_approval_asks_for_its_link_and_the_event_says_what_it_is(
    placed: Sigwrap,
) -> None:
    assert _run(placed, "ln bin/tool x; ./x", APPROVED) == (b"126\n", ["ask-tool"])
    (event,) = placed.sealed_events("exec_denied")
    own, original = event.payload["programs"]
    assert own["path"] == str(placed.folder / "x")
    tool = str(placed.folder / "bin" / "tool")
    assert (original["path"], original["counts_by_name"]) == (tool, True)


@pytest.mark.skipif(BUSYBOX is None, reason="needs busybox")
def test_a_file_of_many_names_goes_by_the_one_that_it_is_called(placed: Sigwrap) -> None:
    """`ls` of a linked busybox is not `rm`, which the original may be as well."""
    assert BUSYBOX is not None
    own = placed.folder / "bin" / "busybox"
    shutil.copy(BUSYBOX, own)
    if placed.user is not None:
        os.chown(own, placed.user, placed.user)
    (placed.folder / "bin" / "rm").symlink_to(own)
    os.link(own, placed.folder / "ls")
    assert _run(placed, "./ls never 2>/dev/null") == (b"1\n", [])
    _, rules = _run(placed, "ln ls rm; ./rm never; echo $?; exec -a busybox ./ls rm never")
    assert rules[:1] == ["no-rm"]


def test_a_loader_still_wraps(placed: Sigwrap) -> None:
    """It runs the other program without an exec, so that has to be seen here."""
    loader = os.path.realpath("/lib64/ld-linux-x86-64.so.2")
    assert _run(placed, f"ln bin/tool x; {loader} ./x") == (b"126\n", ["no-tool"])


# An ELF file names a program that the kernel starts in its place, its loader.

NO_FIRST = "\n  - {name: no-first, commands: [first], decision: deny}\n"
USUAL = b"/lib64/ld-linux-x86-64.so.2\0"


@pytest.fixture
def starts(as_user: Sigwrap, compiled: Path, first: Path) -> Sigwrap:
    """`x`, whose loader is `f/first`."""
    (as_user.folder / "f").mkdir()
    shutil.copy(first, as_user.folder / "f" / "first")
    _with_loader(compiled / "stays", as_user.folder / "x", b"f/first")
    assert as_user.native("./x", "w").stdout == b"x w\n"
    return as_user


def _with_loader(program: Path, into: Path, loader: bytes) -> None:
    data = program.read_bytes()
    assert data.count(USUAL) == 1
    into.write_bytes(data.replace(USUAL, loader.ljust(len(USUAL), b"\0")))
    into.chmod(0o755)


def test_a_denied_program_as_a_loader_and_one_that_is_not_there(starts: Sigwrap) -> None:
    line = "./x w; echo $?"
    (starts.folder / "away").mkdir(mode=0o777)
    shutil.copy(starts.folder / "x", starts.folder / "away" / "x")
    both = f"{line}; cd away; {line}"
    done = starts.run("-p", policy(starts.folder, NO_FIRST), "--", "sh", "-c", both)
    (starts.folder / "f" / "first").unlink()
    assert done.stdout == b"126\n127\n"
    assert starts.native("sh", "-c", line).stdout == b"127\n"
    (event,) = starts.sealed_events("exec_denied")
    assert event.payload["programs"][-1]["path"] == str(starts.folder / "f" / "first")


def test_one_that_no_rule_names(starts: Sigwrap) -> None:
    """A default of deny, and a rule for everything, speak of the program alone."""
    rules = """
  - {name: x, commands: [sh, x, "/bin/*", "/usr/bin/*"], decision: allow}
  - {name: rest, commands: ["*"], decision: deny}
"""
    done = starts.run("-p", policy(starts.folder, rules), "--", "sh", "-c", "./x w; :")
    assert done.stdout == b"x w\n"
    programs = starts.sealed_events("exec_allowed")[-1].payload["programs"]
    assert programs[-1]["path"] == str(starts.folder / "f" / "first")


# What is allowed by its name

NOT_RUN = 126
READERS = """
  - {name: readers, commands: [ls, cat, "ca*", sh, awk, id], decision: allow}
  - {name: rest, commands: ["*"], decision: deny}
"""
CLEAN = """
  - {name: starters, commands: [execs_with, env], decision: allow}
  - {name: clean, commands: [cat], loads_code: false, system_file: true, decision: allow}
  - {name: rest, commands: ["*"], decision: deny}
"""


@pytest.fixture
def foreign(as_user: Sigwrap, compiled: Path) -> str:
    path = as_user.folder / "x.so"
    line = [str(COMPILER), "-shared", "-fPIC", "-o", str(path), str(compiled / "says_ran.c")]
    subprocess.run(line, check=True)
    path.chmod(0o755)
    return str(path)


def _ran(subject: Sigwrap, rules: str, *words: str, **options: object) -> tuple[int, str]:
    chosen = rules if rules.startswith("agent-") else policy(subject.folder, rules)
    done = subject.run("-p", chosen, "--approvals", "deny", "--", *words, **options)
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize(("rules", "name"), [("agent-strict", "ls"), (READERS, "cab")])
def test_a_link_with_an_allowed_name_allows_nothing(
    as_user: Sigwrap, rules: str, name: str
) -> None:
    link = as_user.folder / name
    link.symlink_to("/bin/bash")
    assert _ran(as_user, rules, str(link), "-c", "echo ran") == (NOT_RUN, "")
    assert as_user.sealed_events("exec_denied")


def test_a_link_is_denied_by_its_name_and_by_its_file(as_user: Sigwrap) -> None:
    rules = """
  - {name: neither, commands: [id, secret], decision: deny}
"""
    for name, target in (("harmless", "/usr/bin/id"), ("secret", "/usr/bin/true")):
        link = as_user.folder / name
        link.symlink_to(target)
        assert _ran(as_user, rules, str(link)) == (NOT_RUN, "")


@pytest.mark.parametrize("rules", ["agent-strict", CLEAN])
def test_a_file_of_the_users_own_is_not_the_systems(as_user: Sigwrap, rules: str) -> None:
    shutil.copy("/bin/bash", as_user.folder / "cat")
    assert _ran(as_user, rules, str(as_user.folder / "cat"), "-c", "echo ran") == (
        NOT_RUN,
        "",
    )
    assert _ran(as_user, rules, "cat", "/dev/null") == (0, "")


def test_what_loads_code_into_an_allowed_program_is_not_allowed(
    as_user: Sigwrap, compiled: Path, foreign: str
) -> None:
    loads = f"LD_PRELOAD={foreign}"
    assert _is_denied(as_user, "agent-strict", "env", loads, "cat", "/dev/null")
    for way in ("native", "i386"):
        start = (str(compiled / "execs_with"), way)
        assert _ran(as_user, CLEAN, *start, "LANG=C", "/bin/cat", "/dev/null") == (0, "")
        assert _is_denied(as_user, CLEAN, *start, loads, "/bin/cat"), way


def _is_denied(subject: Sigwrap, rules: str, *line: str) -> bool:
    code, out = _ran(subject, rules, *line)
    (*_, denied) = subject.sealed_events("exec_denied")
    return code != 0 and "foreign" not in out and denied.payload["argv"][0].endswith("cat")


def test_what_the_user_has_in_the_environment_anyway_is_no_news(
    as_user: Sigwrap, foreign: str
) -> None:
    own = {"LD_LIBRARY_PATH": "/nowhere", "LANG": "C"}
    assert _ran(as_user, CLEAN, "env", "cat", "/dev/null", env=own) == (0, "")
    code, _ = _ran(as_user, CLEAN, "env", "LD_LIBRARY_PATH=/else", "cat", "/dev/null", env=own)
    assert code == NOT_RUN
    code, _ = _ran(as_user, CLEAN, "env", "LD_LIBRARY_PATH=", "cat", "/dev/null", env=own)
    assert code == 0


@needs("busybox")
def test_an_applet_counts_by_its_name_where_busybox_is_the_systems(as_user: Sigwrap) -> None:
    rules = """
  - {name: applets, commands: [busybox, echo], system_file: true, decision: allow}
  - {name: rest, commands: ["*"], decision: deny}
"""
    assert _ran(as_user, rules, "busybox", "echo", "ran") == (0, "ran\n")
    shutil.copy(shutil.which("busybox") or "", as_user.folder / "busybox")
    own = str(as_user.folder / "busybox")
    assert _ran(as_user, rules, own, "echo", "ran") == (NOT_RUN, "")
