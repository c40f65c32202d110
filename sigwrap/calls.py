"""The one table of mediated calls.

The filter (linux/bpf.py), the dispatch (run/mediation.py), the names in events and docs/calls.md
are derived from it. A call that the filter hands over and that isn't here is refused, with an
event.
"""

from __future__ import annotations

import errno
from enum import Enum

from sigwrap.tuples import NamedTuple

X86_64 = 0xC000003E  # AUDIT_ARCH_X86_64
I386 = 0x40000003  # AUDIT_ARCH_I386, which a 64-bit program reaches by int 0x80
X32_BIT = 0x40000000  # in the number of a call of the x32 ABI, which reports itself as X86_64

F_SETOWN = 8
F_SETSIG = 10
F_SETOWN_EX = 15
FIOSETOWN = 0x8901
SIOCSPGRP = 0x8902
TIOCSTI = 0x5412
TIOCLINUX = 0x541C
PR_SET_MM = 35
PTRACE_KILL = 8
PTRACE_ATTACH = 16
PTRACE_SEIZE = 0x4206
CLONE_PARENT = 0x00008000
CLONE_THREAD = 0x00010000


class Family(Enum):
    """Which mediator decides."""

    EXEC = "exec"
    SIGNAL = "signal"
    FORK = "fork"
    MOUNT = "mount"


# When the filter hands a call over. It sees registers only, and of an argument the low 32 bits.


class Always(NamedTuple):
    pass


class OfSignal(NamedTuple):
    """The argument is a signal number; signal 0 and what the policy leaves unlogged pass."""

    argument: int


class OneOf(NamedTuple):
    """The argument has one of these values. `refused` ones fail with EPERM in the filter."""

    argument: int
    values: dict[str, int]
    refused: dict[str, int]


class WithoutBits(NamedTuple):
    """None of these bits is set in the argument."""

    argument: int
    bits: int


class NonZero(NamedTuple):
    """None of these arguments is 0. `pointers` are compared in all their bits."""

    numbers: tuple[int, ...]
    pointers: tuple[int, ...]


class Never(NamedTuple):
    """The filter itself fails the call with this errno."""

    errno: int


Condition = Always | OfSignal | OneOf | WithoutBits | NonZero | Never


class Call(NamedTuple):
    name: str
    x86_64: int | None
    i386: int | None
    family: Family
    handed_over: Condition
    meaning: str
    at_fork: bool = False  # only under a policy with limits.at_fork


_OWNERS = OneOf(
    1, {"F_SETOWN": F_SETOWN, "F_SETSIG": F_SETSIG, "F_SETOWN_EX": F_SETOWN_EX}, refused={}
)
_OWNER_MEANING = "who gets the signals of a descriptor, and which signal"

TABLE: tuple[Call, ...] = (
    Call("execve", 59, 11, Family.EXEC, Always(), "runs a program"),
    Call("execveat", 322, 358, Family.EXEC, Always(), "runs a program"),
    # From the first of these on, the memory of a process may be a file that somebody serves.
    Call("mount", 165, 21, Family.MOUNT, Always(), "mounts a file system"),
    Call("fsmount", 432, 432, Family.MOUNT, Always(), "mounts a file system"),
    Call("kill", 62, 37, Family.SIGNAL, OfSignal(1), "signals a process or a group"),
    Call("tkill", 200, 238, Family.SIGNAL, OfSignal(1), "signals a thread"),
    Call("tgkill", 234, 270, Family.SIGNAL, OfSignal(2), "signals a thread"),
    Call("rt_sigqueueinfo", 129, 178, Family.SIGNAL, OfSignal(1), "signals a process"),
    Call("rt_tgsigqueueinfo", 297, 335, Family.SIGNAL, OfSignal(2), "signals a thread"),
    Call(
        "pidfd_send_signal", 424, 424, Family.SIGNAL, OfSignal(1), "signals what a pidfd stands for"
    ),
    Call(
        "ptrace",
        101,
        26,
        Family.SIGNAL,
        OneOf(
            0,
            {
                "PTRACE_KILL": PTRACE_KILL,
                "PTRACE_ATTACH": PTRACE_ATTACH,
                "PTRACE_SEIZE": PTRACE_SEIZE,
            },
            refused={},
        ),
        "traces or kills a process; judged as SIGKILL to it",
    ),
    Call(
        "prlimit64",
        302,
        340,
        Family.SIGNAL,
        NonZero(numbers=(0,), pointers=(2,)),  # a process that it names, and limits to be set
        "changes the resource limits of a process; judged as SIGKILL to it",
    ),
    Call("fcntl", 72, 55, Family.SIGNAL, _OWNERS, _OWNER_MEANING),
    Call("fcntl64", None, 221, Family.SIGNAL, _OWNERS, _OWNER_MEANING),
    Call(
        "ioctl",
        16,
        54,
        Family.SIGNAL,
        # The refused two type into a terminal: an answer to a question, a command for a shell.
        OneOf(
            1,
            {"FIOSETOWN": FIOSETOWN, "SIOCSPGRP": SIOCSPGRP},
            refused={"TIOCSTI": TIOCSTI, "TIOCLINUX": TIOCLINUX},
        ),
        "who gets the signals of a descriptor",
    ),
    Call(
        "prctl",
        157,
        172,
        Family.SIGNAL,
        # An orphan's memory layout tells which process forked it, so no process may change its own.
        OneOf(0, {}, refused={"PR_SET_MM": PR_SET_MM}),
        "moves parts of the caller's memory image",
    ),
    Call("fork", 57, 2, Family.FORK, Always(), "makes a process", at_fork=True),
    Call("vfork", 58, 190, Family.FORK, Always(), "makes a process", at_fork=True),
    Call(
        "clone",
        56,
        120,
        Family.FORK,
        WithoutBits(0, CLONE_THREAD),
        "makes a process",
        at_fork=True,
    ),
    Call(
        "clone3",
        435,
        435,
        Family.FORK,
        # Its flags lie in memory, where another thread can change them after they were looked at.
        # The C libraries use clone then, as on a kernel that hasn't got it.
        Never(errno.ENOSYS),
        "makes a process or a thread",
        at_fork=True,
    ),
)


def number(call: Call, arch: int) -> int | None:
    return call.x86_64 if arch == X86_64 else call.i386


def number_of(name: str, arch: int) -> int:
    return next(found for found, call in BY_NUMBER[arch].items() if call.name == name)


BY_NUMBER: dict[int, dict[int, Call]] = {
    arch: {found: call for call in TABLE if (found := number(call, arch)) is not None}
    for arch in (X86_64, I386)
}

EXECS = frozenset(
    found
    for numbers in BY_NUMBER.values()
    for found, call in numbers.items()
    if call.family is Family.EXEC
)
