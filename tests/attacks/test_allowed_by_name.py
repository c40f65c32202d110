"""What an allowing rule names is what runs: no link's name, and no code loaded into it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.programs import COMPILER, needs

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


def _run(subject: Sigwrap, rules: str, *words: str, **options: object) -> tuple[int, str]:
    chosen = rules if rules.startswith("agent-") else policy(subject.folder, rules)
    done = subject.run("-p", chosen, "--approvals", "deny", "--", *words, **options)
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize(("rules", "name"), [("agent-strict", "ls"), (READERS, "cab")])
def test_a_link_with_an_allowed_name_allows_nothing(
    as_user: Sigwrap, rules: str, name: str
) -> None:
    link = as_user.folder / name
    link.symlink_to("/bin/bash")
    assert _run(as_user, rules, str(link), "-c", "echo ran") == (NOT_RUN, "")
    assert as_user.sealed_events("exec_denied")


def test_a_name_that_the_systems_own_link_has_counts(as_user: Sigwrap) -> None:
    assert _run(as_user, READERS, "/bin/sh", "-c", "echo ran") == (0, "ran\n")
    assert _run(as_user, READERS, "awk", "BEGIN {print 5}") == (0, "5\n")


def test_a_link_is_denied_by_its_name_and_by_its_file(as_user: Sigwrap) -> None:
    rules = """
  - {name: neither, commands: [id, secret], decision: deny}
"""
    for name, target in (("harmless", "/usr/bin/id"), ("secret", "/usr/bin/true")):
        link = as_user.folder / name
        link.symlink_to(target)
        assert _run(as_user, rules, str(link)) == (NOT_RUN, "")


@pytest.mark.parametrize("rules", ["agent-strict", CLEAN])
def test_a_file_of_the_users_own_is_not_the_systems(as_user: Sigwrap, rules: str) -> None:
    shutil.copy("/bin/bash", as_user.folder / "cat")
    assert _run(as_user, rules, str(as_user.folder / "cat"), "-c", "echo ran") == (NOT_RUN, "")
    assert _run(as_user, rules, "cat", "/dev/null") == (0, "")


def test_what_loads_code_into_an_allowed_program_is_not_allowed(
    as_user: Sigwrap, compiled: Path, foreign: str
) -> None:
    loads = f"LD_PRELOAD={foreign}"
    assert _is_denied(as_user, "agent-strict", "env", loads, "cat", "/dev/null")
    for way in ("native", "i386"):
        start = (str(compiled / "execs_with"), way)
        assert _run(as_user, CLEAN, *start, "LANG=C", "/bin/cat", "/dev/null") == (0, "")
        assert _is_denied(as_user, CLEAN, *start, loads, "/bin/cat"), way


def _is_denied(subject: Sigwrap, rules: str, *line: str) -> bool:
    code, out = _run(subject, rules, *line)
    (*_, denied) = subject.sealed_events("exec_denied")
    return code != 0 and "foreign" not in out and denied.payload["argv"][0].endswith("cat")


def test_what_the_user_has_in_the_environment_anyway_is_no_news(
    as_user: Sigwrap, foreign: str
) -> None:
    own = {"LD_LIBRARY_PATH": "/nowhere", "LANG": "C"}
    assert _run(as_user, CLEAN, "env", "cat", "/dev/null", env=own) == (0, "")
    code, _ = _run(as_user, CLEAN, "env", "LD_LIBRARY_PATH=/else", "cat", "/dev/null", env=own)
    assert code == NOT_RUN
    code, _ = _run(as_user, CLEAN, "env", "LD_LIBRARY_PATH=", "cat", "/dev/null", env=own)
    assert code == 0


@needs("busybox")
def test_an_applet_counts_by_its_name_where_busybox_is_the_systems(as_user: Sigwrap) -> None:
    rules = """
  - {name: applets, commands: [busybox, echo], system_file: true, decision: allow}
  - {name: rest, commands: ["*"], decision: deny}
"""
    assert _run(as_user, rules, "busybox", "echo", "ran") == (0, "ran\n")
    shutil.copy(shutil.which("busybox") or "", as_user.folder / "busybox")
    own = str(as_user.folder / "busybox")
    assert _run(as_user, rules, own, "echo", "ran") == (NOT_RUN, "")
