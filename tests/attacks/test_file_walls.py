"""What file rules deny is neither read nor changed, by whatever way."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from sigwrap.linux import landlock
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

    def line(self, programs: Path, *only: str) -> list[str]:
        words = (self.folder, self.work, programs / "opens_as_others", *only)
        return [*PYTHON, str(programs / "reaches_files.py"), *map(str, words)]

    def is_untouched(self) -> bool:
        return (
            sorted(os.listdir(self.folder)) == [".ssh", "notes"]
            and sorted(os.listdir(self.secret.parent)) == ["id"]
            and self.secret.read_text() == SECRET
            and self.notes.read_text() == NOTES
        )


def test_nothing_of_it_is_read_or_changed(as_user: Sigwrap, compiled: Path) -> None:
    home = Home(as_user)
    policy = as_user.folder / "policy.yaml"
    policy.write_text(RULES.format(home=home.folder, work=home.work))
    as_user.policy = str(policy)
    done = as_user.run("--", *home.line(compiled), cwd=home.work)
    told = json.loads(done.stdout)
    assert [name for name, came in told.items() if came == "got it"] == [], told
    assert told["a_device_here"] != "done"
    assert home.is_untouched(), told
    (started,) = as_user.sealed_events("session_started")
    assert "file_wall" in started.payload["capabilities"]


def test_each_of_these_ways_leads_there_without_rules(as_user: Sigwrap, compiled: Path) -> None:
    """Else the test above would say nothing."""
    for number, name in enumerate(_ways(compiled) - NOT_EVERYWHERE):
        home = Home(as_user, f"home{number}")
        (came,) = json.loads(as_user.native(*home.line(compiled, name)).stdout).values()
        assert came == "got it" or not home.is_untouched(), (name, came)


def _ways(programs: Path) -> set[str]:
    text = (programs / "reaches_files.py").read_text()
    return set(re.findall(r"^@way\ndef (\w+)", text, re.MULTILINE))
