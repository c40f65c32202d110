"""What was judged is what runs, against callers that change what they asked for meanwhile.

SIGWRAP_ATTACK_S lengthens each race (60 for a thorough run)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from harness import PYTHON, Sigwrap

from policies import policy

RACE_S = os.environ.get("SIGWRAP_ATTACK_S", "1")

DENY_BAD = """
  - {name: no-bad, commands: [bad], decision: deny}
  - {name: no-word, commands: ["*"], args_patterns: [^denied], decision: deny}
"""


def _marks(folder: Path) -> set[str]:
    return set((folder / "marks").read_text().split("\n")) - {""}


def _place(compiled: Path, folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes((compiled / "mark").read_bytes())
        (folder / name).chmod(0o755)
    marks = folder / "marks"
    marks.touch()
    marks.chmod(0o666)


@pytest.mark.parametrize("how", ["thread", "process", "file", "argument-thread", "argument-file"])
def test_a_path_or_an_argument_that_is_flipped_all_the_while(
    wrapped: Sigwrap, compiled: Path, how: str
) -> None:
    """A denied program never runs one instruction: it would leave a mark."""
    _place(compiled, wrapped.folder, "ok", "bad")
    ok, bad = str(wrapped.folder / "ok"), str(wrapped.folder / "bad")
    done = wrapped.run(
        "-p",
        policy(wrapped.folder, DENY_BAD),
        "--",
        str(compiled / "race"),
        how,
        RACE_S,
        ok,
        bad,
        env={"MARK": str(wrapped.folder / "marks")},
    )
    assert done.returncode == 0, done
    words = done.stdout.split()
    ran, refused, killed = int(words[1]), int(words[3]), int(words[5])
    assert ran > 0 and refused > 0
    allowed = "ok allowed-word" if how.startswith("argument") else "ok x"
    assert _marks(wrapped.folder) == {allowed}
    failures = wrapped.sealed_events("exec_verification_failed")
    assert len(failures) == killed
    marks = (wrapped.folder / "marks").read_text().splitlines()
    assert len(marks) == ran


SWAP = """
import os, shutil, sys, time
swap, folder, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
os.chdir(folder)
def put(name):
    if swap == "symlink":
        os.symlink(name, "next")
    else:
        shutil.copy(name, "next")
    os.rename("next", "program")
put("good")
flipper = os.fork()
if flipper == 0:
    while True:
        for name in ("bad", "good"):
            put(name)
            for _ in range(hash(time.monotonic()) % 2000): pass
end = time.monotonic() + seconds
while time.monotonic() < end:
    child = os.fork()
    if child == 0:
        try:
            os.execv("program", ["program", "x"])
        finally:
            os._exit(100)
    os.waitpid(child, 0)
os.kill(flipper, 9)
"""


@pytest.mark.parametrize("swap", ["rename", "symlink"])
def test_a_file_that_is_swapped_for_another(wrapped: Sigwrap, compiled: Path, swap: str) -> None:
    """Another process puts the denied program under the allowed one's name, and back."""
    folder = wrapped.folder
    _place(compiled, folder, "good")
    (folder / "bad").write_bytes(Path("/bin/echo").read_bytes())
    (folder / "bad").chmod(0o755)
    digest = hashlib.sha256((folder / "bad").read_bytes()).hexdigest()
    rules = f"""
  - {{name: no, commands: [bad], decision: deny}}
  - {{name: no-copy, commands: [program], sha256: ["{digest}"], decision: deny}}
"""
    line = ("-p", policy(folder, rules), "--", *PYTHON, "-c", SWAP, swap, str(folder), RACE_S)
    done = wrapped.run(*line, env={"MARK": str(folder / "marks")})
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""  # which is where the denied program writes
    assert all(mark.startswith(("good", "program", "next")) for mark in _marks(folder))
    assert wrapped.sealed_events("exec_denied")
