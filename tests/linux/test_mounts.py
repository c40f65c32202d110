"""Which mounts are local."""

from __future__ import annotations

import os

import pytest

from sigwrap.kernel import file_state
from sigwrap.kernel.file_state import (
    LocalMounts,
    is_on_local_device,
    lies_on_a_disk,
    note_first_devices,
)


def test_the_kernels_list_and_the_one_of_procfs_have_the_same_types() -> None:
    listed = file_state._listed()  # empty where the kernel can't be asked
    told = file_state._mountinfo("self")
    assert not listed or sorted(kind for _, kind in listed) == sorted(each.kind for each in told)


def test_what_is_not_in_the_list_is_not_local() -> None:
    assert not LocalMounts().are_local(0)


def test_processes_and_memory_are_local_and_what_lies_on_no_mount_of_the_tree_is_not() -> None:
    ours = os.getpid()
    proc, in_memory = os.open("/proc", os.O_PATH), os.memfd_create("x")
    reading, writing = os.pipe()
    try:
        assert is_on_local_device(ours, ours, proc)
        assert is_on_local_device(ours, ours, in_memory)
        assert not is_on_local_device(ours, ours, reading)
        assert lies_on_a_disk(in_memory) and not lies_on_a_disk(reading)
    finally:
        for fd in (proc, in_memory, reading, writing):
            os.close(fd)


def test_a_disk_is_local_where_it_was_there_when_the_session_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever lies on another file system can lie on what somebody serves."""
    ours = os.getpid()
    disk = file_state.MountLine(2, b"8:1", b"/", b"ext4")
    for kind in (b"ext4", b"overlay"):
        monkeypatch.setattr(file_state, "_first_devices", frozenset())
        assert not file_state._is_local(disk._replace(kind=kind))
        monkeypatch.setattr(file_state, "_first_devices", frozenset({b"8:1"}))
        assert file_state._is_local(disk._replace(kind=kind))
    assert not file_state._is_local(disk._replace(kind=b"fuse"))
    assert file_state._is_local(disk._replace(device=b"0:9", kind=b"tmpfs"))
    note_first_devices()
    fd = os.open(__file__, os.O_PATH)
    assert is_on_local_device(ours, ours, fd)
    os.close(fd)
