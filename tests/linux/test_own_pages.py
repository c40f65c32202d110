from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

from sigwrap.linux import own_pages
from tests.support.programs import COMPILER

SOURCE = b"int answer(void){return 1;} int data = 1; const int constant = 1;"
THEIRS = b"\xcc"

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.so"
    line = [str(COMPILER), "-O1", "-shared", "-fPIC", "-xc", "-", "-o", str(path)]
    subprocess.run(line, input=SOURCE, check=True)
    return path


def _says_after_an_overwrite(library: Path, *, owned: bool) -> bytes:
    """What it is in a process of its own, which dies of it where it runs what was written."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            loaded = ctypes.CDLL(str(library))
            if owned:
                assert own_pages.own_file_pages() == []
            size = library.stat().st_size
            with library.open("r+b") as file:
                file.write(THEIRS * size)
            values = [loaded.answer()]
            values += [ctypes.c_int.in_dll(loaded, name).value for name in ("data", "constant")]
            os.write(there, bytes(values))
        finally:
            os._exit(0)
    os.close(there)
    os.waitpid(child, 0)
    with open(here, "rb") as said:
        return said.read()


def test_a_write_to_the_file_changes_nothing_any_more(library: Path) -> None:
    assert _says_after_an_overwrite(library, owned=True) == b"\1\1\1"


def test_it_would_otherwise(library: Path) -> None:
    assert _says_after_an_overwrite(library, owned=False) != b"\1\1\1"


def test_nor_on_a_kernel_without_madv_populate_write(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_pages, "_POPULATE_WRITE", 4242)
    assert _says_after_an_overwrite(library, owned=True) == b"\1\1\1"


def test_a_file_whose_pages_stay_shared_is_named(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system forbids code that was writable once."""
    loaded = ctypes.CDLL(str(library))
    monkeypatch.setattr(own_pages, "_protect", lambda *_: False)
    assert str(library) in own_pages.own_file_pages()
    assert loaded.answer() == 1


def test_the_systems_own_libraries_are_left_alone() -> None:
    with open("/proc/self/maps", encoding="utf-8") as maps:
        libc = next(line.split()[5] for line in maps if "/libc.so" in line or "/libc-" in line)
    mapping = own_pages.Mapping(0, 4096, 1, "", Path(libc).stat().st_ino, libc)
    assert not own_pages._can_be_written(mapping)
