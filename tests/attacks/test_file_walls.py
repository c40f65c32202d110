"""What file rules deny is neither read nor changed, by whatever way."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sigwrap.kernel import landlock
from tests.support.harness import PYTHON, Sigwrap

pytestmark = pytest.mark.skipif(not landlock.holds_files(), reason=f"needs {landlock.FILES_NEED}")

SECRET = "echo the secret\n"
NOTES = "notes\n"
RULES = """
version: 1
name: of-a-test
defaults: {{command: audit, signal: allow}}
file_rules:
  - {{name: secrets, paths: ["{home}/.ssh"], operations: [read], decision: deny}}
  - name: mine
    paths: ["{work}", /dev, /proc]
    operations: [write, create, delete]
    decision: allow
  - {{name: elsewhere, paths: [/**], operations: [write, create, delete], decision: deny}}
"""
# By these nobody gets there, not every user, or not on every machine.
NOT_EVERYWHERE = {
    "by_a_handle",
    "as_i386",
    "by_a_ring",
    "mounted_here",
    "by_chroot",
    "by_an_overlay",
    "copied_by_the_kernel",
    "mapped",
    "its_name_given_to_a_nameless_file",
    "emptied_by_a_descriptor",
    "made_writable_by_its_flags",
    "replaced_by_a_name",
    "a_device_here",
    "a_nameless_file_there",
}


class Home:
    def __init__(self, subject: Sigwrap, name: str = "home") -> None:
        self.folder = subject.folder / name
        self.work = subject.folder / f"{name}-work"
        self.secret = self.folder / ".ssh" / "id"
        self.notes = self.folder / "notes"
        for folder in (self.folder, self.work, self.secret.parent):
            folder.mkdir()
        self.secret.write_text(SECRET)
        self.notes.write_text(NOTES)
        for path in (self.folder, self.work, self.secret.parent, self.secret, self.notes):
            if subject.user is not None:
                os.chown(path, subject.user, subject.user)

    def tries(self, *ways: str) -> list[object]:
        return [str(self.folder), str(self.work), ways]

    def is_untouched(self) -> bool:
        return (
            sorted(os.listdir(self.folder)) == [".ssh", "notes"]
            and sorted(os.listdir(self.secret.parent)) == ["id"]
            and self.secret.read_text() == SECRET
            and self.notes.read_text() == NOTES
        )


def _line(programs: Path, *tries: list[object]) -> list[str]:
    words = (programs / "reaches_files.py", programs / "opens_as_others", json.dumps(tries))
    return [*PYTHON, *map(str, words)]


def test_nothing_of_it_is_read_or_changed(as_user: Sigwrap, compiled: Path) -> None:
    home = Home(as_user)
    policy = as_user.folder / "policy.yaml"
    policy.write_text(RULES.format(home=home.folder, work=home.work))
    as_user.policy = str(policy)
    done = as_user.run("--", *_line(compiled, home.tries()), cwd=home.work)
    told = json.loads(done.stdout)
    assert [name for name, came in told.items() if came == "got it"] == [], told
    assert told["a_device_here"] != "done"
    assert home.is_untouched(), told
    (started,) = as_user.sealed_events("session_started")
    assert "file_wall" in started.payload["capabilities"]
    # Each of these ways leads there without rules, else this would say nothing.
    ways = sorted(set(told) - NOT_EVERYWHERE)
    homes = [Home(as_user, way) for way in ways]
    tries = [home.tries(way) for home, way in zip(homes, ways, strict=True)]
    said = as_user.native(*_line(compiled, *tries)).stdout.splitlines()
    for home, way, line in zip(homes, ways, said, strict=True):
        came = json.loads(line)[way]
        assert came == "got it" or not home.is_untouched(), (way, came)
