"""What a look sees of memory that is not resident, and the session's own control groups."""

from __future__ import annotations

import mmap
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.control import usage
from sigwrap.control.usage import ProcessUse
from sigwrap.kernel import limits, procfs
from tests.support.waiting import await_that

SESSION = "20260102-030405-abcdef"
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


# Control groups, in those that the test has made


@pytest.fixture(params=["", "cpuacct", "memory"])
def above(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """As if there were no other."""
    controller: str = request.param
    own = limits.own_folders().get(controller)
    if own is None:
        pytest.skip(f"needs the control groups of {controller or 'version 2'}")
    mount = max(filter(own.startswith, limits.mount_points()), key=len)
    folder = Path(mount, f"sigwrap-test-{uuid.uuid4().hex}")
    try:
        folder.mkdir()
    except OSError as why:
        pytest.skip(f"needs to make a control group: {why}")
    monkeypatch.setattr(limits, "own_folders", lambda: {controller: str(folder)})
    yield folder
    await_that(lambda: not list(filter(Path.is_dir, folder.iterdir())))
    folder.rmdir()


@pytest.fixture
def child() -> Iterator[int]:
    pid = os.fork()
    if pid == 0:
        signal.pause()
    yield pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_groups_made_below_are_removed_too(above: Path, child: int) -> None:
    groups = usage.make_groups(SESSION, child, 64 * MIB)
    own = above / f"sigwrap-{SESSION}"
    if not own.exists():
        pytest.skip("nothing is counted in these groups")
    (own / "a" / "b").mkdir(parents=True)
    (own / "a" / "c").mkdir()
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    for group in groups:
        group.remove()
    assert not own.exists()


def test_where_none_can_be_made_it_goes_without(
    tmp_path: Path, child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "own_folders", lambda: {"": str(tmp_path / "none"), "memory": "/"})
    assert usage.make_groups(SESSION, child, MIB) == []
    assert not Path(f"/sigwrap-{SESSION}").exists()
