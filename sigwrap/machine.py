"""Tell which machine this is, its system call numbers, and its capabilities."""

from __future__ import annotations

import os
import sys

from sigwrap.bare import Enum, Protocol

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


# Capabilities that a platform offers to the mediators.


class Capability(Enum):
    """Capabilities. The log has the values: session_started, `capabilities`."""

    INTERCEPTION = "interception"
    WAITS_THROUGH_SIGNALS = "waits_through_signals"
    VERIFICATION = "verification"
    REPLACEMENT = "replacement"
    RECORDING = "recording"
    DELIVERY = "delivery"
    FORKS = "forks"
    NETWORK = "network"
    SIGNAL_WALL = "signal_wall"
    CGROUP_WALL = "cgroup_wall"
    FILE_WALL = "file_wall"


WITHOUT: dict[Capability, str] = {
    Capability.INTERCEPTION: "no rule is enforced; a run needs --best-effort",
    Capability.WAITS_THROUGH_SIGNALS: (
        "a signal can interrupt a call that sigwrap is deciding; the caller repeats the call"
    ),
    Capability.VERIFICATION: "the loaded program is not compared with the judged one",
    Capability.REPLACEMENT: "rules with `redirect` deny",
    Capability.RECORDING: "rules with `record` deny",
    Capability.DELIVERY: "a signal that sigwrap has to send itself is denied",
    Capability.FORKS: "process limits are checked at execs only",
    Capability.NETWORK: "`network_rules` are not enforced",
    Capability.SIGNAL_WALL: (
        "a signal by a call that is not mediated can leave this session, and processes in the "
        "session can take the memory and descriptors of the user's other processes"
    ),
    Capability.CGROUP_WALL: (
        "a process that may write to a cgroup can stop or kill all processes in it"
    ),
    Capability.FILE_WALL: "`file_rules` are not enforced",
}


class Interception(Protocol):
    """Answers waiting calls by their notification id."""

    def is_waiting(self, notification_id: int) -> bool:
        """Return False if the caller has exited."""

    def resume(self, notification_id: int) -> bool:
        """Let the kernel carry out the call."""

    def fail(self, notification_id: int, error: int) -> bool: ...

    def succeed(self, notification_id: int, value: int) -> bool: ...
