"""A sigwrap of the user's own: a copy of the package that this user may change."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import sigwrap
from tests.support.harness import Sigwrap

_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from sigwrap.__main__ import main; main()"
)
_PACKAGES = ("yaml", "re2")


@dataclass(frozen=True, slots=True)
class Installation:
    folder: Path
    subject: Sigwrap

    @classmethod
    def copy_to(cls, subject: Sigwrap, *more: str) -> Installation:
        """`more`: extension modules of Python itself."""
        folder = subject.folder / "site-packages"
        package = Path(sigwrap.__file__).parent
        # While another process writes bytecode, its name goes on with a number.
        shutil.copytree(package, folder / "sigwrap", ignore=shutil.ignore_patterns("*.pyc.*"))
        shutil.copytree(package.parent / "policies", folder / "sigwrap" / "policies")
        for name in (*_PACKAGES, *more):
            _copy(name, folder)
        installation = cls(folder, subject)
        for path in (folder, *folder.rglob("*")):
            if subject.user is not None:
                os.chown(path, subject.user, subject.user)
        return installation

    def line(self, *words: str) -> list[str]:
        python = os.path.realpath(sys.executable)
        start = [python, "-I", "-S", "-c", _START, str(self.folder)]
        return [*self.subject.as_user(), *start, "--no-report", *words]

    @property
    def libraries(self) -> list[Path]:
        return sorted(self.folder.rglob("*.so"))

    @property
    def modules(self) -> list[Path]:
        return sorted(self.folder.rglob("*.py"))


def _copy(module: str, folder: Path) -> None:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    if spec.submodule_search_locations:
        shutil.copytree(spec.submodule_search_locations[0], folder / module)
    elif spec.origin and spec.origin.endswith(".so"):  # or it is part of the interpreter
        shutil.copy(spec.origin, folder)


def overwrite(path: Path) -> None:
    """In place, all of it, as whoever has the page cache mapped would see it: `int3`."""
    _write_over(path, path.stat().st_size)


def truncate(path: Path) -> None:
    """Which takes private copies of its pages away from whoever has it mapped."""
    os.truncate(path, 0)


def truncate_and_overwrite(path: Path) -> None:
    size = path.stat().st_size
    os.truncate(path, 0)
    _write_over(path, size)


def _write_over(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.write(b"\xcc" * size)


CHANGES = (overwrite, truncate, truncate_and_overwrite)
