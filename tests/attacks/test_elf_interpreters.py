"""An ELF file names a program that the kernel starts in its place, its loader: a denied program is
run by no other file's header."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.programs import Library

EXECS = Path(__file__).parents[1] / "exec"
RULES = "\n  - {name: no-first, commands: [first], decision: deny}\n"
USUAL = b"/lib64/ld-linux-x86-64.so.2\0"


@pytest.fixture
def starts(as_user: Sigwrap, compiled: Path, library: Library) -> Sigwrap:
    """`x`, whose loader is `f/first`."""
    (as_user.folder / "f").mkdir()
    shutil.copy(library.compiled_beside(EXECS) / "first", as_user.folder / "f" / "first")
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
    done = starts.run("-p", policy(starts.folder, RULES), "--", "sh", "-c", both)
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
