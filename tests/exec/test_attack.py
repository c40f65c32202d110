"""What was judged is what runs, against callers that change what they asked for meanwhile.

SIGWRAP_ATTACK_S lengthens each attack (60 for a thorough run; -rP shows the counts)."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S

ATTACK_S = os.environ.get("SIGWRAP_ATTACK_S", "0.5")
WITHIN_S = PATIENCE_S + float(ATTACK_S)

DENY_BAD = """
  - {name: no-bad, commands: [bad], decision: deny}
  - {name: no-word, commands: ["*"], args_patterns: [^denied], decision: deny}
"""
DENY_COPY = """
  - {name: no, commands: [bad], decision: deny}
  - {name: no-copy, commands: [program], sha256: ["%s"], decision: deny}
"""
PIN = """
  - {name: pin, commands: [program, bad], not_sha256: ["%s"], decision: deny}
"""
RACES = [
    ("thread", "path"),
    ("thread", "word"),
    ("thread", "both"),
    ("thread", "pointer"),
    ("thread", "hidden"),
    ("process", "word"),
    ("file", "path"),
    ("parent", "path"),
    ("parent", "word"),
    ("process", "path"),
    ("process", "both"),
    ("file", "word"),
    ("file", "both"),
]


def _place(program: Path, folder: Path, *names: str) -> None:
    for name in names:
        shutil.copy(program, folder / name)
        (folder / name).chmod(0o755)


def _attack(
    name: str, subject: Sigwrap, rules: str, line: Sequence[str]
) -> tuple[list[str], dict[str, int]]:
    """What the programs that ran have said, and how the execs ended."""
    given = ("-p", policy(subject.folder, rules), "--no-report", "--")
    done = subject.run(*given, *line, within_s=WITHIN_S)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.decode().splitlines()
    words = [line for line in lines if not line.startswith("sigwrap: ")][-1].split()
    counts = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    sys.stdout.write(f"{name}, user {subject.user or 0}, {ATTACK_S} s: {' '.join(words)}\n")
    return done.stdout.decode().splitlines(), counts


@pytest.mark.parametrize(("sharer", "what"), RACES)
def test_memory_that_is_flipped_all_the_while(
    as_user: Sigwrap, compiled: Path, sharer: str, what: str
) -> None:
    """A denied program never runs one instruction: its first one would leave a mark."""
    _place(compiled / "first", as_user.folder, "ok", "bad")
    ok, bad = str(as_user.folder / "ok"), str(as_user.folder / "bad")
    race = str(compiled / "race")
    line = [race, sharer, what, ATTACK_S, ok, bad]
    said, counts = _attack(f"{sharer} {what}", as_user, DENY_BAD, line)
    assert counts["ran"] > 0 and counts["denied"] > 0
    assert len(said) == counts["ran"]
    assert {line.split()[0] for line in said} == {"ok"}
    assert not any(line.split()[1].startswith("denied") for line in said)
    assert len(as_user.sealed_events("exec_verification_failed")) == counts["killed"]


def test_an_allowed_program_that_nobody_may_read(as_user: Sigwrap, compiled: Path) -> None:
    """It can't be compared with what was judged; but the denied one that takes its place can."""
    _place(compiled / "first", as_user.folder, "ok", "bad")
    (as_user.folder / "ok").chmod(0o711)
    ok, bad = str(as_user.folder / "ok"), str(as_user.folder / "bad")
    line = [str(compiled / "race"), "thread", "path", ATTACK_S, ok, bad]
    said, counts = _attack("unreadable", as_user, DENY_BAD, line)
    assert counts["ran"] > 0 and counts["denied"] > 0
    assert set(said) == {"ok allowed-word"}
    assert len(as_user.sealed_events("exec_verification_failed")) == counts["killed"]


@pytest.mark.parametrize("swap", ["rename", "symlink", "overwrite"])
@pytest.mark.parametrize(("pinned", "rules"), [("bad", DENY_COPY), ("good", PIN)])
def test_a_file_that_is_swapped_for_another(
    as_user: Sigwrap, compiled: Path, swap: str, pinned: str, rules: str
) -> None:
    """Another process puts `bad` under the name of `good`, or its content into that file, and back,
    while programs/swap.py execs that name: `bad` never runs, and what is pinned does."""
    folder = as_user.folder
    _place(Path("/bin/true"), folder, "good")
    _place(compiled / "first", folder, "bad")
    if as_user.user is not None:
        for name in ("good", "bad"):
            os.chown(folder / name, as_user.user, as_user.user)
    digest = hashlib.sha256((folder / pinned).read_bytes()).hexdigest()
    line = [*PYTHON, str(compiled / "swap.py"), swap, str(folder), ATTACK_S]
    said, counts = _attack(f"{swap}, {pinned}", as_user, rules % digest, line)
    assert said == []
    assert counts["denied"] > 0
    assert counts["ran"] > 0 or pinned == "bad"
    assert len(as_user.sealed_events("exec_verification_failed")) == counts["killed"]
