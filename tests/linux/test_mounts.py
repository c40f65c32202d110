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


def test_the_file_system_of_processes_is_local_and_what_has_no_mount_is_not() -> None:
    proc = os.open("/proc", os.O_PATH)
    in_memory = os.memfd_create("x")
    try:
        assert is_of_local_type(os.getpid(), os.getpid(), proc)
        assert not is_of_local_type(os.getpid(), os.getpid(), in_memory)
        assert lies_on_a_disk(in_memory)
    finally:
        os.close(proc)
        os.close(in_memory)
