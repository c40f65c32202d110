"""Which mounts are local."""

from __future__ import annotations

import os

from sigwrap.linux import mounts
from sigwrap.linux.mounts import Mounts, is_of_local_type, lies_on_a_disk


def test_the_kernels_list_and_the_one_of_procfs_have_the_same_types() -> None:
    listed = mounts._listed()  # empty where the kernel can't be asked
    told = mounts._told_by_procfs("self")
    assert not listed or sorted(kind for _, kind in listed) == sorted(kind for _, kind in told)


def test_what_is_not_in_the_list_is_not_local() -> None:
    assert not Mounts().are_local(0)


def test_processes_and_memory_are_local_and_what_lies_on_no_mount_of_the_tree_is_not() -> None:
    ours = os.getpid()
    proc, in_memory = os.open("/proc", os.O_PATH), os.memfd_create("x")
    reading, writing = os.pipe()
    try:
        assert is_of_local_type(ours, ours, proc)
        assert is_of_local_type(ours, ours, in_memory)
        assert not is_of_local_type(ours, ours, reading)
        assert lies_on_a_disk(in_memory) and not lies_on_a_disk(reading)
    finally:
        for fd in (proc, in_memory, reading, writing):
            os.close(fd)
