from __future__ import annotations

import ctypes
import faulthandler
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.linux import own_pages, unfiled
from tests.support.installation import overwrite, truncate_and_overwrite
from tests.support.programs import COMPILER

SOURCE = b"int answer(void){return 1;} int data = 1; const int constant = 1;"

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "a\rlibrary.so"  # /proc writes it as it is
    line = [str(COMPILER), "-O1", "-shared", "-fPIC", "-xc", "-", "-o", str(path)]
    subprocess.run(line, input=SOURCE, check=True)
    return path


def _says_after(change: Callable[[Path], None], library: Path, own: Callable[[], object]) -> bytes:
    """What it is in a process of its own, which dies of it where it runs what was written."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        try:
            loaded = ctypes.CDLL(str(library))
            own()
            change(library)
            values = [loaded.answer()]
            values += [ctypes.c_int.in_dll(loaded, name).value for name in ("data", "constant")]
            os.write(there, bytes(values))
        finally:
            os._exit(0)
    os.close(there)
    os.waitpid(child, 0)
    with open(here, "rb") as said:
        return said.read()


def _own_all() -> None:
    assert own_pages.own_file_pages() == []
    assert own_pages.own_file_pages() == []


def _own_what_can_be(library: Path) -> None:
    assert str(library) in own_pages.own_file_pages()


def test_what_a_library_has_written_stays(library: Path) -> None:
    def own() -> None:
        data = ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "data")
        data.value = 2
        _own_all()
        data.value += 1

    assert _says_after(truncate_and_overwrite, library, own) == b"\1\3\1"


def test_the_file_is_still_named_as_one_that_was_mapped(library: Path) -> None:
    def own() -> None:
        _own_all()
        assert str(library) in own_pages.mapped_files()
        assert str(library) not in Path("/proc/self/maps").read_text(encoding="utf-8")

    assert _says_after(overwrite, library, own) == b"\1\1\1"


@pytest.mark.parametrize("advice", [own_pages._POPULATE_WRITE, 4242])  # Linux before 5.14
def test_where_code_must_be_a_files_an_overwrite_changes_nothing(
    library: Path, monkeypatch: pytest.MonkeyPatch, advice: int
) -> None:
    """And it is named, for a truncation does."""
    monkeypatch.setattr(unfiled, "_READ_EXECUTE", 1 << 20)
    monkeypatch.setattr(own_pages, "_POPULATE_WRITE", advice)
    assert _says_after(overwrite, library, lambda: _own_what_can_be(library)) == b"\1\1\1"


@pytest.mark.parametrize("row", [0, -1])
def test_a_mapping_that_can_not_be_replaced_is_named(
    library: Path, monkeypatch: pytest.MonkeyPatch, row: int
) -> None:
    """Nobody is harmed by it: a protection that the kernel doesn't know, for one of them."""

    def own() -> None:
        spans = []

        def take(given: list[unfiled.Span]) -> list[bool]:
            spans.extend(given)
            spans[row] = spans[row]._replace(protection=1 << 20)
            return unfiled.take_off_their_files(spans)

        monkeypatch.setattr(own_pages, "take_off_their_files", take)
        assert len(own_pages.own_file_pages()) == 1
        assert len(spans) > 1

    assert _says_after(overwrite, library, own) == b"\1\1\1"


def test_nor_is_one_replaced_while_another_thread_runs(library: Path) -> None:
    def own() -> None:
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait)
        thread.start()
        _own_what_can_be(library)
        stop.set()
        thread.join()

    assert _says_after(overwrite, library, own) == b"\1\1\1"


def test_a_file_whose_pages_stay_shared_is_named(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system forbids code that was writable once as well."""
    monkeypatch.setattr(unfiled, "_READ_EXECUTE", 1 << 20)
    monkeypatch.setattr(own_pages, "_protect", lambda *_: False)
    assert _says_after(lambda _: None, library, lambda: _own_what_can_be(library)) == b"\1\1\1"


def test_the_systems_own_libraries_are_left_alone() -> None:
    with open("/proc/self/maps", encoding="utf-8") as maps:
        libc = next(line.split()[5] for line in maps if "/libc.so" in line or "/libc-" in line)
    mapping = own_pages.Mapping(0, 4096, 1, "", Path(libc).stat().st_ino, libc)
    assert not own_pages._can_be_written(mapping)
