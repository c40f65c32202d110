"""The requests themselves, on a child that sleeps in a pipe."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from sigwrap.errors import KernelError
from sigwrap.linux import mounts, ptrace
from sigwrap.linux.registers import LAYOUT
from sigwrap.machine import NUMBERS

_STOPPED_BY_US = signal.SIGTRAP | ptrace.EVENT_STOP << 8


@pytest.fixture
def child() -> Iterator[int]:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write_end)
        while os.read(read_end, 1):
            os.execv("/bin/true", ["true"])
        os._exit(7)
    os.close(read_end)
    while not _reads(pid):
        os.sched_yield()
    yield pid
    os.close(write_end)


def _reads(pid: int) -> bool:
    with open(f"/proc/{pid}/syscall") as file:
        return file.read().startswith(f"{NUMBERS['read']} ")


def _await_stop(pid: int) -> int:
    waited, status = os.waitpid(pid, ptrace.WALL)
    assert (waited, os.WIFSTOPPED(status)) == (pid, True)
    return status >> 8


def test_interrupted_looked_at_and_let_go(child: int) -> None:
    ptrace.seize(child)
    ptrace.interrupt(child)
    assert _await_stop(child) == _STOPPED_BY_US
    registers = ptrace.registers(child)
    assert registers[LAYOUT.number] == NUMBERS["read"]
    data = ptrace.read_memory(child, registers[LAYOUT.stack], 16)
    ptrace.write_memory(child, registers[LAYOUT.stack] - 4096, b"x" * 16)
    assert ptrace.read_memory(child, registers[LAYOUT.stack] - 4096, 16) == b"x" * 16
    assert ptrace.read_memory(child, registers[LAYOUT.stack], 16) == data
    ptrace.set_registers(child, registers)
    ptrace.detach(child)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0) == (child, signal.SIGKILL)


def test_a_tracee_is_killed_with_a_signal_that_is_passed_on(child: int) -> None:
    ptrace.seize(child)
    os.kill(child, signal.SIGTERM)
    assert _await_stop(child) == signal.SIGTERM
    ptrace.detach(child, signal.SIGTERM)
    assert os.waitpid(child, 0) == (child, signal.SIGTERM)


def test_who_is_traced_already_or_gone_can_not_be_seized(child: int) -> None:
    ptrace.seize(child)
    with pytest.raises(ptrace.NotTraceable):
        ptrace.seize(child)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with pytest.raises(ptrace.Gone):
        ptrace.seize(child)
    with pytest.raises(ptrace.Gone):
        ptrace.detach(child)


def test_memory_that_is_not_there(child: int) -> None:
    with pytest.raises((OSError, KernelError)):
        ptrace.write_memory(child, 0, b"x")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_descriptor_is_taken_with_its_offset(tmp_path: os.PathLike[str]) -> None:
    read_end, write_end = os.pipe()
    file = os.open(os.path.join(tmp_path, "f"), os.O_RDWR | os.O_CREAT)
    os.write(file, b"four")
    pid = os.fork()
    if pid == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    mounts.note_first_devices()
    taken = ptrace.take_descriptor(pid, file)
    assert os.lseek(taken, 0, os.SEEK_CUR) == 4
    with pytest.raises(OSError):
        ptrace.take_descriptor(pid, 1000)
    for fd in (taken, file, read_end, write_end):
        os.close(fd)
    os.waitpid(pid, 0)
