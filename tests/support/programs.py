"""Programs that tests run: those in the folder `programs` beside a test, and scripts of its own."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from sigwrap.machine import IS_X86_64

COMPILER = shutil.which("cc") or shutil.which("gcc")
HEADERS = ("-I", str(Path(__file__).parent))
FLAGS = {
    "first": ["-static", "-nostdlib", "-fno-stack-protector", "-fno-pie", "-no-pie"],
    "sees_mark": ["-static"],
    "other_clock": ["-shared", "-fPIC"],
}


class Library:
    """Copies of the programs, where every user may run them: a checkout may lie in a home."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="sigwrap-programs-"))
        self._root.chmod(0o755)
        self._compiled: set[Path] = set()

    def beside(self, tests: Path) -> Path:
        folder = self._root / tests.name
        if not folder.exists():
            shutil.copytree(
                tests / "programs", folder, ignore=shutil.ignore_patterns("__pycache__")
            )
            for path in (folder, *folder.iterdir()):
                path.chmod(0o755)
        return folder

    def compiled_beside(self, tests: Path) -> Path:
        """Each `name.c` is `name` as well."""
        folder = self.beside(tests)
        if folder not in self._compiled:
            for source in folder.glob("*.c"):
                _compile(source)
            self._compiled.add(folder)
        return folder

    def remove(self) -> None:
        shutil.rmtree(self._root)


def _compile(source: Path) -> None:
    flags = FLAGS.get(source.stem, ["-pthread"])
    line = [str(COMPILER), "-O1", *HEADERS, *flags, "-o", str(source.with_suffix(""))]
    done = subprocess.run([*line, str(source)], capture_output=True, text=True, check=False)
    # What is about i386 calls alone is for x86_64 alone.
    assert done.returncode == 0 or not IS_X86_64, done.stderr


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(program), reason=f"needs {program}")


def may_unshare() -> bool:
    """A user namespace with a mount namespace."""
    child = os.fork()
    if child == 0:
        os._exit(bool(ctypes.CDLL(None).unshare(0x10000000 | 0x20000)))
    return os.waitpid(child, 0)[1] == 0


def compile_go(source: Path) -> str:
    program = source.with_suffix("")
    if not program.exists():
        cache = os.environ.get("GOCACHE") or str(Path.home() / ".cache" / "go-build")
        environment = {**os.environ, "GOCACHE": cache, "GOTOOLCHAIN": "local", "GO111MODULE": "off"}
        line = ["go", "build", "-o", str(program), str(source)]
        built = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
        program.chmod(0o755)
    return str(program)


def script(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)
