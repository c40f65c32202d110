"""Numbers of the calls that the filter mediates, by ABI (x86_64 and its i386 sibling)."""

from __future__ import annotations

AUDIT_ARCH_X86_64 = 0xC000003E
AUDIT_ARCH_I386 = 0x40000003
X32_BIT = 0x40000000

NUMBERS: dict[int, dict[str, int]] = {
    AUDIT_ARCH_X86_64: {
        "execve": 59,
        "execveat": 322,
        "kill": 62,
        "tkill": 200,
        "tgkill": 234,
        "rt_sigqueueinfo": 129,
        "rt_tgsigqueueinfo": 297,
        "pidfd_send_signal": 424,
        "ptrace": 101,
        "fcntl": 72,
        "ioctl": 16,
        "prctl": 157,
    },
    AUDIT_ARCH_I386: {
        "execve": 11,
        "execveat": 358,
        "kill": 37,
        "tkill": 238,
        "tgkill": 270,
        "rt_sigqueueinfo": 178,
        "rt_tgsigqueueinfo": 335,
        "pidfd_send_signal": 424,
        "ptrace": 26,
        "fcntl": 55,
        "fcntl64": 221,
        "ioctl": 54,
        "prctl": 172,
    },
}

EXECS = frozenset(numbers[name] for numbers in NUMBERS.values() for name in ("execve", "execveat"))

# Mediated where the policy's limits are to hold at forks.
BIRTH_NUMBERS: dict[int, dict[str, int]] = {
    AUDIT_ARCH_X86_64: {"fork": 57, "vfork": 58, "clone": 56, "clone3": 435},
    AUDIT_ARCH_I386: {"fork": 2, "vfork": 190, "clone": 120, "clone3": 435},
}

CLONE_PARENT = 0x00008000
CLONE_THREAD = 0x00010000

F_SETOWN = 8
F_SETSIG = 10
F_SETOWN_EX = 15
FIOSETOWN = 0x8901
SIOCSPGRP = 0x8902

# They type into a terminal: an answer to a question, or a command for the shell that waits.
TIOCSTI = 0x5412
TIOCLINUX = 0x541C
REFUSED_IOCTLS = (TIOCSTI, TIOCLINUX)

# By its memory layout an orphan is known for whose child it is: nobody may move it about.
PR_SET_MM = 35

# Values of a selecting argument that get EPERM from the filter itself.
REFUSED_BY_ARGUMENT = {"ioctl": REFUSED_IOCTLS, "prctl": (PR_SET_MM,)}

PTRACE_KILL = 8
PTRACE_ATTACH = 16
PTRACE_SEIZE = 0x4206

# Position of the signal number among the arguments of each call that carries one.
SIGNAL_ARGUMENT = {
    "kill": 1,
    "tkill": 1,
    "tgkill": 2,
    "rt_sigqueueinfo": 1,
    "rt_tgsigqueueinfo": 2,
    "pidfd_send_signal": 1,
}

# Calls that are mediated for some values of one argument only: (position, values).
SELECTED_BY_ARGUMENT = {
    "ptrace": (0, (PTRACE_KILL, PTRACE_ATTACH, PTRACE_SEIZE)),
    "fcntl": (1, (F_SETOWN, F_SETSIG, F_SETOWN_EX)),
    "fcntl64": (1, (F_SETOWN, F_SETSIG, F_SETOWN_EX)),
    "ioctl": (1, (FIOSETOWN, SIOCSPGRP)),
    "prctl": (0, ()),
}

NAMES: dict[int, dict[int, str]] = {
    arch: {number: name for name, number in (numbers | BIRTH_NUMBERS[arch]).items()}
    for arch, numbers in NUMBERS.items()
}
