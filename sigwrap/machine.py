"""Tell which machine this is, and its system call numbers.

calls.py has the calls that policies judge. This module has those that sigwrap makes itself, and
those that it looks for in /proc.
"""

from __future__ import annotations

import os
import sys

# The platform that Python was built for: setarch changes uname, but no call number.
PLATFORM: str = getattr(sys.implementation, "_multiarch", "") or os.uname().machine
_NAME = PLATFORM.partition("-")[0]
IS_X86_64 = _NAME == "x86_64"
IS_AARCH64 = _NAME == "aarch64"

_NO_CALL = -1  # no call has this number: ENOSYS

# The numbers on x86_64, and on aarch64, which has the kernel's generic table.
_DIFFERENT = {
    "accept": (43, 202),
    "accept4": (288, 242),
    "capset": (126, 91),
    "close": (3, 57),
    "connect": (42, 203),
    "epoll_pwait": (281, 22),
    "epoll_wait": (232, _NO_CALL),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "io_getevents": (208, 4),
    "io_pgetevents": (333, 292),
    "kcmp": (312, 272),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "poll": (7, _NO_CALL),
    "ppoll": (271, 73),
    "prctl": (157, 167),
    "process_vm_writev": (311, 271),
    "pselect6": (270, 72),
    "read": (0, 63),
    "readv": (19, 65),
    "recvfrom": (45, 207),
    "recvmmsg": (299, 243),
    "recvmsg": (47, 212),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigtimedwait": (128, 137),
    "seccomp": (317, 277),
    "select": (23, _NO_CALL),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "sendmmsg": (307, 269),
    "sendmsg": (46, 211),
    "sendto": (44, 206),
    "setgroups": (116, 159),
    "setresgid": (119, 149),
    "setresuid": (117, 147),
    "statx": (332, 291),
    "timer_create": (222, 107),
    "timer_delete": (226, 111),
    "timer_settime": (223, 110),
}
# From 424 on, call numbers are the same on every machine.
_COMMON = {
    "pidfd_send_signal": 424,
    "io_uring_enter": 426,
    "open_tree": 428,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "close_range": 436,
    "openat2": 437,
    "pidfd_getfd": 438,
    "faccessat2": 439,
    "epoll_pwait2": 441,
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
    "statmount": 457,
    "listmount": 458,
}


def numbers_on(*, aarch64: bool) -> dict[str, int]:
    return _COMMON | {name: both[aarch64] for name, both in _DIFFERENT.items()}


NUMBERS = numbers_on(aarch64=not IS_X86_64)
if _NAME not in ("x86_64", "aarch64", "riscv64", "loongarch64"):
    # A call with another number here fails with ENOSYS, instead of being another call.
    NUMBERS |= dict.fromkeys(_DIFFERENT, _NO_CALL)


def numbers_of(*names: str) -> frozenset[int]:
    """Return the numbers of those calls that this machine has."""
    return frozenset(NUMBERS[name] for name in names) - {_NO_CALL}
