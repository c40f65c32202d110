"""The folders and the user of a run, and what is set up once."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.programs.program import Program, User
from tests.support.harness import NOBODY, Sigwrap

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("SIGWRAP_PROGRAMS_CACHE") or ROOT / ".work" / "programs" / "cache")
AGENT = Path(__file__).parent / "programs" / "agent.py"

_FOLDERS = ("work", "home", "tmp", "store")


class Missing(Exception):
    """The program isn't here, or not for this user: the reason."""


@dataclass(frozen=True, slots=True)
class Place:
    """Every run of a program has the same paths, so what it says about them is the same."""

    folder: Path
    user: int | None
    cache: Path

    @classmethod
    def make(cls, user: User, name: str) -> Place:
        folder = Path(tempfile.mkdtemp(prefix="sw-", dir="/tmp"))
        folder.chmod(0o755)
        shutil.copy(AGENT, folder / "agent.py")
        (folder / "agent.py").chmod(0o644)
        cache = CACHE.absolute() / re.sub(r"\W+", "-", name)
        return cls(folder, NOBODY if user is User.ORDINARY else None, cache)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def agent(self) -> Path:
        return self.folder / "agent.py"

    def subject(self) -> Sigwrap:
        """With empty folders."""
        for name in _FOLDERS:
            path = self.folder / name
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
            path.chmod(0o700 if name == "home" else 0o755)
            if self.user is not None:
                os.chown(path, self.user, self.user)
        subject = Sigwrap(self.folder / "work", self.folder / "store", self.user)
        subject.env.update(self._environment())
        return subject

    def _environment(self) -> dict[str, str]:
        path = os.environ.get("PATH", "/usr/bin:/bin").split(":")
        path += [name for name in ("/usr/sbin", "/sbin") if name not in path]
        if self.user is not None:
            path = [name for name in path if _is_open_to_all(Path(name))]
        return {
            "PATH": ":".join(path),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "CACHE": str(self.cache),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "TZ": "UTC",
        }

    def require(self, program: Program) -> None:
        """All that the program needs, set up; or Missing."""
        if self.user is not None and os.getuid() != 0:
            raise Missing("takes root to become somebody else")
        for name in program.needs:
            self._ask(f'command -v {name} >/dev/null || {{ echo "needs {name}"; exit 1; }}')
        if program.setup:
            self._set_up(program)
        if program.there:
            self._ask(program.there)

    def _ask(self, text: str) -> None:
        subject = self.subject()
        done = subject.native("sh", "-c", text)
        if done.returncode != 0:
            said = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
            raise Missing(said[-1] if said else "not here")

    def _set_up(self, program: Program) -> None:
        text = hashlib.blake2b(program.setup.encode(), digest_size=8).hexdigest()
        done = self.cache / ".set-up"
        if not done.exists() or done.read_text() != text:
            shutil.rmtree(self.cache, ignore_errors=True)
            self.cache.mkdir(parents=True)
            made = subprocess.run(
                ["sh", "-euc", program.setup],
                cwd=self.cache,
                env={**os.environ, "CACHE": str(self.cache)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            if made.returncode != 0:
                said = (made.stdout + made.stderr).strip().splitlines()
                raise Missing(f"can't be set up: {said[-1] if said else 'setup failed'}")
            subprocess.run(["chmod", "-R", "a+rX", self.cache], check=True)
            done.write_text(text)
        self._ask(f"ls {self.cache} >/dev/null")

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_open_to_all(folder: Path) -> bool:
    """A shell stops at a program that it finds and may not run."""
    folders = [folder.resolve(), *folder.resolve().parents]
    return all(path.exists() and path.stat().st_mode & 1 for path in folders)
