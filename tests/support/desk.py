"""A home folder like a user's, with secrets and a project in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness import NOBODY, Sigwrap


class Desk:
    """A home folder beside the temporary ones, with a project in it."""

    def __init__(self, folder: Path, user: int | None) -> None:
        self.home = folder
        self.project = folder / "project"
        self.tmp = folder / "project" / "tmp"
        for path in (self.project, self.tmp, folder / ".ssh", folder / ".local/state"):
            path.mkdir(parents=True)
        (folder / ".ssh/id_ed25519").write_text("the secret\n")
        (folder / ".ssh/id_ed25519.pub").write_text("ssh-ed25519 AAAA\n")
        (folder / ".bashrc").write_text("# mine\n")
        if user is not None:
            subprocess.run(["chown", "-R", f"{user}:{user}", str(folder)], check=True)
        self.subject = Sigwrap(self.project, folder / ".local/state/sigwrap", user)
        self.subject.env |= {"HOME": str(folder), "TMPDIR": str(self.tmp)}

    def shell(self, script: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        return self.subject.run(*words, "--", "sh", "-c", script)


@pytest.fixture(
    params=[
        "us",
        pytest.param("nobody", marks=pytest.mark.skipif(os.getuid() != 0, reason="needs root")),
    ]
)
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    user = NOBODY if request.param == "nobody" else None
    try:
        folder = Path(tempfile.mkdtemp(prefix="sigwrap-test-", dir="/var"))
    except OSError:
        if Path.home().resolve().is_relative_to("/tmp"):
            pytest.skip("needs a home folder that doesn't lie below /tmp")
        folder = Path(tempfile.mkdtemp(prefix="sigwrap-test-", dir=Path.home()))
    subject = Desk(folder, user)
    yield subject
    subject.subject.clean_up()
    shutil.rmtree(folder)
