"""What a look sees of memory that is not resident."""

from __future__ import annotations

import mmap
import os

import pytest

from sigwrap.linux import procfs, usage
from sigwrap.mediate.usage_limits import ProcessUse

MIB = 1 << 20
COVERED_BY_A_PAGE_TABLE = 2 * MIB


def ourselves() -> ProcessUse:
    return ProcessUse(os.getpid(), 0, os.getppid(), 0, 0, memory_bytes=0)


def status_is(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(procfs, "contents", lambda path: text if "status" in path else None)


def test_what_is_swapped_out_counts_with_page_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    status_is(monkeypatch, b"Name:\tx\nVmPTE:\t    1024 kB\nVmSwap:\t    2048 kB\n")
    assert usage.beyond_resident([ourselves(), ourselves()]) == 6 * MIB


def test_of_who_has_swapped_out_all_a_closer_look_finds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    status_is(monkeypatch, b"Name:\tx\nVmPTE:\t    1024 kB\nVmSwap:\t    2048 kB\n")
    assert usage.shared_out_memory(ourselves(), ()) == 3 * MIB


def test_who_has_ended_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "contents", lambda path: None)
    assert usage.beyond_resident([ourselves()]) == usage.shared_out_memory(ourselves(), ()) == 0


@pytest.mark.parametrize("look", ["at first", "closer"])
def test_page_tables_count_where_nothing_else_does(look: str) -> None:
    def used() -> int:
        if look == "closer":
            return usage.shared_out_memory(ourselves(), ())
        return usage.beyond_resident([ourselves()])

    size = 16 * MIB // mmap.PAGESIZE * COVERED_BY_A_PAGE_TABLE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ) as mapped:
        mapped.madvise(mmap.MADV_NOHUGEPAGE)
        before = used()
        assert not any(mapped[at] for at in range(0, size, COVERED_BY_A_PAGE_TABLE))
        assert 15 * MIB < used() - before < 20 * MIB
