"""Which loader an ELF file names, as the kernel reads it."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.exec import content
from sigwrap.kernel.file_state import State
from sigwrap.kernel.paths import Caller

WIDE, NARROW = 2, 1
AMD64, I386 = 62, 3


def _file(
    loader: bytes, *, layout: int = WIDE, machine: int = AMD64, class_byte: int = 0, at: int = 300
) -> bytes:
    kinds = (6, 3) if loader else (6, 1)  # PT_PHDR, then PT_INTERP or PT_LOAD
    start = b"\x7fELF" + bytes([class_byte or layout]) + bytes(11) + struct.pack("<HH", 3, machine)
    if layout == WIDE:
        header = start + struct.pack("<12xQ14xHH6x", 64, 56, 2)
        table = b"".join(struct.pack("<I4xQ16xQ16x", kind, at, len(loader)) for kind in kinds)
    else:
        header = start + struct.pack("<8xI10xHH6x", 52, 32, 2)
        table = b"".join(struct.pack("<II8xI12x", kind, at, len(loader)) for kind in kinds)
    return (header + table).ljust(at, b"\0") + loader


class Placed:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()
        self.path.chmod(0o666)  # of root's own, nobody changes what they name
        self.fd = os.open(path, os.O_PATH)

    def named(self, data: bytes) -> bytes:
        self.path.write_bytes(data)
        loader = self.loader()
        return b"" if loader is None else loader.path

    def loader(self) -> content.Loader | None:
        found = content.beginning(self.fd, self.state(), may_wait=False)
        assert found is not None
        return found.loader

    def state(self) -> State:
        return Caller(os.getpid(), os.getpid()).state_of(self.fd)


@pytest.fixture
def placed(tmp_path: Path) -> Iterator[Placed]:
    subject = Placed(tmp_path / "program")
    yield subject
    os.close(subject.fd)


@pytest.mark.parametrize("at", [300, 5000])
@pytest.mark.parametrize(("layout", "machine"), [(WIDE, AMD64), (NARROW, I386), (NARROW, AMD64)])
def test_it_is_found(placed: Placed, layout: int, machine: int, at: int) -> None:
    assert placed.named(_file(b"/x/bad\0", layout=layout, machine=machine, at=at)) == b"/x/bad"


def test_the_class_says_nothing(placed: Placed) -> None:
    """The kernel goes by the machine alone."""
    assert placed.named(_file(b"/x/bad\0", class_byte=NARROW)) == b"/x/bad"


@pytest.mark.parametrize("usual", [b"/lib64/ld-linux-x86-64.so.2\0", b"/lib/ld-linux.so.2\0"])
def test_a_usual_one_is_none(placed: Placed, usual: bytes) -> None:
    assert placed.named(_file(usual)) == b""


def test_what_has_none(placed: Placed) -> None:
    whole = _file(b"/x/bad\0")
    assert placed.named(_file(b"")) == b""
    for size in range(0, 176, 7):
        assert placed.named(whole[:size]) == b""
    assert placed.named(b"\x7fELF" + b"\xff" * 400) == b""


def test_one_that_was_changed_since_is_noticed(placed: Placed) -> None:
    placed.path.write_bytes(_file(b"/x/bad\0"))
    found = placed.loader()
    assert found is not None
    assert content.beginning_now(placed.fd).loader == found
    placed.path.write_bytes(_file(b"/x/not\0"))
    assert content.beginning_now(placed.fd).loader != found


def test_what_is_mapped(placed: Placed) -> None:
    python = os.open("/proc/self/exe", os.O_PATH)
    placed.path.write_bytes(b"x")
    assert content.is_mapped(os.getpid(), python)
    assert not content.is_mapped(os.getpid(), placed.fd)
    os.close(python)
