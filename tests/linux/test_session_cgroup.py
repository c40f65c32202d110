"""Control groups of a session's own, in those that the test has made."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.linux import cgroups
from sigwrap.linux.session_cgroup import SessionCgroup
from tests.support.waiting import await_that

SESSION = "20260102-030405-abcdef"
MIB = 1 << 20


@pytest.fixture(params=["", "cpuacct", "memory"])
def above(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """As if there were no other."""
    controller: str = request.param
    own = cgroups.own_folders().get(controller)
    if own is None:
        pytest.skip(f"needs the control groups of {controller or 'version 2'}")
    mount = max(filter(own.startswith, cgroups.mount_points()), key=len)
    folder = Path(mount, f"sigwrap-test-{uuid.uuid4().hex}")
    try:
        folder.mkdir()
    except OSError as why:
        pytest.skip(f"needs to make a control group: {why}")
    monkeypatch.setattr(cgroups, "own_folders", lambda: {controller: str(folder)})
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
    subject = SessionCgroup(SESSION)
    subject.take(child, counts_time=True, memory_bytes=64 * MIB)
    own = above / f"sigwrap-{SESSION}"
    if not own.exists():
        pytest.skip("nothing is counted in these groups")
    (own / "a" / "b").mkdir(parents=True)
    (own / "a" / "c").mkdir()
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    subject.remove()
    assert not own.exists()


def test_where_none_can_be_made_it_goes_without(
    tmp_path: Path, child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "own_folders", lambda: {"": str(tmp_path / "none"), "memory": "/"})
    subject = SessionCgroup(SESSION)
    subject.take(child, counts_time=True, memory_bytes=MIB)
    assert (subject.counts_time, subject.counts_memory) == (False, False)
    assert (subject.time_ms(), subject.memory_bytes()) == (0, 0)
    assert not subject.ran_out_of_memory()
    subject.remove()
    assert not Path(f"/sigwrap-{SESSION}").exists()
