"""Numbers of another pid namespace in ours."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path

import pytest

from sigwrap.kernel import process as linux_process
from sigwrap.kernel import procfs

# A process in a namespace of its own, and one more of another group, which says that it is there.
PROGRAM = ["sh", "-c", 'setsid sh -c "echo ready; exec sleep 1000" & wait']
NOBODY = 30_000


@pytest.fixture
def first() -> Iterator[int]:
    """Of the namespace."""
    options = ["--user", "--pid", "--fork", "--kill-child"]
    with subprocess.Popen(["unshare", *options, *PROGRAM], stdout=subprocess.PIPE) as unshare:
        assert unshare.stdout is not None
        if unshare.stdout.readline() != b"ready\n":
            pytest.skip("needs user namespaces")
        (child,) = linux_process.children(unshare.pid)
        yield child
        unshare.kill()


@pytest.mark.parametrize("searched", [False, True])
def test_numbers_are_translated(
    first: int, searched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the kernel, which looks at nobody else; where it can't, by a search."""
    (second,) = linux_process.children(first)
    if searched:
        monkeypatch.setattr(linux_process, "_NS_GET_PID_FROM_PIDNS", 0xB7FF)
    else:
        _skip_where_the_kernel_cannot()
        monkeypatch.setattr(linux_process, "_is_within", None)  # what a search would need
    number = next(reversed(procfs.numbers(second, "NSpid")))
    assert linux_process.pid_for(first, 1) == first
    assert linux_process.pid_for(first, number) == second
    assert linux_process.pid_for(second, 1) == first
    assert linux_process.group_for(first, number) == second
    assert linux_process.pid_for(first, NOBODY) is None
    assert linux_process.group_for(first, NOBODY) is None


def _skip_where_the_kernel_cannot() -> None:
    with Path("/proc/self/ns/pid").open("rb") as namespace:
        try:
            assert (
                ioctl(namespace, linux_process._NS_GET_PID_FROM_PIDNS, os.getpid()) == os.getpid()
            )
        except OSError:
            pytest.skip("needs Linux 6.11")
