from __future__ import annotations

import os

from sigwrap.kernel import procfs


def test_all_pids_are_listed_while_a_fork_of_this_process_lists_them() -> None:
    """Both have the same position in the directory that they hold."""
    procfs.hold()
    (held,) = procfs.held()
    with os.scandir(held) as listing:
        next(listing)
        assert os.getpid() in procfs.all_pids()


def test_an_image_is_what_stat_says_of_it() -> None:
    found = procfs.stat(os.getpid())
    assert found is not None
    assert procfs.image(os.getpid()) == found.image != ()
    assert procfs.image(2**22 + 1) is None


def test_a_process_without_memory_has_no_numbers_about_its_core() -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    try:
        assert procfs.numbers(pid, "CoreDumping") == []
        assert procfs.numbers(pid, "TracerPid") == [0]
    finally:
        os.waitpid(pid, 0)


def test_a_stat_file_that_stays_open_is_about_one_process() -> None:
    last, (ready, done) = procfs.LastFigures(), os.pipe()
    before = len(os.listdir("/proc/self/fd"))
    pid = os.fork()
    if not pid:
        os.close(done)
        os.read(ready, 1)
        os._exit(0)
    for each in (pid, pid, os.getpid(), pid):
        found, whole = last.of(each), procfs.stat(each)
        assert found is not None and whole is not None
        assert (int(found[1]), int(found[19])) == (whole.ppid, whole.start_time)
        assert len(os.listdir("/proc/self/fd")) == before + 1
    os.close(done)
    os.waitpid(pid, 0)
    assert last.of(pid) is None
    os.close(ready)
    assert len(os.listdir("/proc/self/fd")) == before - 2
