from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

from sigwrap.errors import KernelError

libc = ctypes.CDLL(None, use_errno=True)
_syscall = libc.syscall
_syscall.restype = ctypes.c_long


def syscall(name: str, number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    """Make a system call. Integers are widened to long: variadic C would pass 32 bits."""
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result: int = _syscall(ctypes.c_long(number), *wide)
    if result < 0:
        raise failure(name)
    return result


def failure(name: str) -> KernelError:
    code = ctypes.get_errno()
    return KernelError(f"{name}: {os.strerror(code)}", code)


def strings(values: Iterable[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(listed := list(values)) + 1))(*listed)


def execve(
    program: bytes,
    words: ctypes.Array[ctypes.c_char_p],
    environment: ctypes.Array[ctypes.c_char_p],
) -> int:
    """Return the errno of a failed exec. Unlike Python's, it allocates no memory."""
    libc.execve(program, words, environment)
    return ctypes.get_errno()


_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


def _prctl(name: str, option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    if libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero) != 0:
        raise failure(f"prctl({name})")


def set_parent_death_signal(signal_number: int) -> None:
    _prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal_number)


def set_child_subreaper() -> None:
    _prctl("PR_SET_CHILD_SUBREAPER", _PR_SET_CHILD_SUBREAPER, 1)


def set_no_new_privileges() -> None:
    _prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)


def set_undumpable() -> None:
    """Forbid processes of this user to trace us or to open our /proc/PID/mem and /proc/PID/fd."""
    _prctl("PR_SET_DUMPABLE", _PR_SET_DUMPABLE, 0)


def set_dumpable() -> None:
    _prctl("PR_SET_DUMPABLE", _PR_SET_DUMPABLE, 1)


def set_process_name(name: bytes) -> None:
    if libc.prctl(_PR_SET_NAME, ctypes.c_char_p(name)) != 0:
        raise failure("prctl(PR_SET_NAME)")
