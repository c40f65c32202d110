"""A traced caller can't be held, so what it loads is compared as soon as it can be seen: a denied
program does not go on running."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S

RULES = """
  - {name: no-bad, commands: [bad], decision: deny}
  - {name: no-push, commands: ["*"], args_patterns: [^push$], decision: deny}
"""


@pytest.mark.parametrize("how", ["path", "word", "path seized", "word seized i386"])
def test_what_a_tracer_flips_meanwhile(as_user: Sigwrap, compiled: Path, how: str) -> None:
    for name in ("good", "bad"):
        shutil.copy(compiled / "stays", as_user.folder / name)
    names = (str(as_user.folder / "good"), str(as_user.folder / "bad"))
    path = policy(as_user.folder, RULES)
    line = ("-p", path, "--", str(compiled / "traced_race"), how, *names)
    done = as_user.run(*line, within_s=2 * PATIENCE_S)
    words = done.stdout.decode().splitlines()[-1].split()
    counts = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert counts["ran"] and counts["killed"], done.stdout
    failed = as_user.sealed_events("exec_verification_failed")
    assert len(failed) == counts["killed"]
    assert all("traced" in event.payload["reason"] for event in failed)
