"""Whom the kernel signals for a descriptor, and whether it does."""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import struct
from collections.abc import Callable

from sigwrap.calls import F_SETOWN_EX, F_SETSIG, FIOASYNC, O_ASYNC
from sigwrap.linux import procfs
from sigwrap.linux.libc import libc
from sigwrap.linux.signals.call import SignalCall
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.signal_facts import How

_F_GETOWN_EX = 16
_CLONE_FILES = 0x400


def owner(fd: int) -> tuple[int, int]:
    """What kind it is, and its number; 0 where nobody is signalled."""
    kind, number = struct.unpack("<ii", fcntl.fcntl(fd, _F_GETOWN_EX, bytes(8)))
    return kind, number


def set_async(sender: Process, call: SignalCall) -> None:
    if call.how is How.SIGNAL_OF_OWNER:
        fcntl.fcntl(call.held, F_SETSIG, call.flags)
        return
    if call.target or call.flags & os.O_NOATIME:
        _check_is_our_user(sender)
    if call.target:  # first: the kernel would take who is there by then
        fcntl.fcntl(call.held, F_SETOWN_EX, struct.pack("<ii", call.owner_kind, call.target))
    if call.syscall == "ioctl":
        on = struct.pack("<i", 1 if call.flags & O_ASYNC else 0)
        _as_number(call.held, call.descriptor, lambda fd: fcntl.ioctl(fd, FIOASYNC, on))
    else:
        _as_number(
            call.held, call.descriptor, lambda fd: fcntl.fcntl(fd, fcntl.F_SETFL, call.flags)
        )


def _check_is_our_user(sender: Process) -> None:
    """The kernel remembers who set an owner, and lets later signals through by that one's rights;
    and O_NOATIME is for a file's own user."""
    credentials = procfs.credentials(sender.pid)
    if credentials is None or credentials.effective_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "not the same user")


def _as_number(held: int, number: int, run: Callable[[int], object]) -> None:
    """The kernel remembers the number by which it was told, for the siginfo: it must be the
    caller's. So this is done in a thread that has descriptors of its own."""
    done = _thread.allocate_lock()
    done.acquire()
    failed: list[OSError] = []

    def in_thread() -> None:
        try:
            if libc.unshare(_CLONE_FILES) != 0:
                run(held)  # a container may forbid it: then it is told our number
                return
            os.dup2(held, number)
            run(number)
            for each in {held, number}:  # before the caller goes on: its own close is the last
                os.close(each)
        except OSError as refusal:
            failed.append(refusal)
        finally:
            done.release()

    _thread.start_new_thread(in_thread, ())
    done.acquire()
    if failed:
        raise failed[0]
