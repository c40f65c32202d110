"""The table of mediated system calls.

The filter (kernel/seccomp.py), the dispatch (session/mediation.py), the names in events and
docs/calls.md are derived from it. sigwrap refuses a call that the filter hands over and that is not
listed here, and logs an event.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping

from sigwrap.bare import Any, Enum, NamedTuple
from sigwrap.machine import IS_AARCH64, NUMBERS_BY_ARCH, numbers_of

X86_64 = 0xC000003E  # AUDIT_ARCH_X86_64
I386 = 0x40000003  # AUDIT_ARCH_I386, which a 64-bit program reaches through int 0x80
AARCH64 = 0xC00000B7  # AUDIT_ARCH_AARCH64; calls of 32-bit ARM programs get no answer
X32_BIT = 0x40000000  # in the number of a call of the x32 ABI, which reports itself as X86_64

F_SETFL = 4
F_SETOWN = 8
F_SETSIG = 10
F_SETOWN_EX = 15
O_ASYNC = 0x2000
FIOASYNC = 0x5452
FIOSETOWN = 0x8901
SIOCSPGRP = 0x8902
TIOCSCTTY = 0x540E
TIOCSPGRP = 0x5410
TIOCSTI = 0x5412
PR_SET_MM = 35
PTRACE_TRACEME = 0
PTRACE_KILL = 8
PTRACE_ATTACH = 16
PTRACE_SEIZE = 0x4206
FAN_CLASSES_THAT_DECIDE = 0x0C  # FAN_CLASS_CONTENT and FAN_CLASS_PRE_CONTENT
UFFD_USER_MODE_ONLY = 1
PERF_FLAG_PID_CGROUP = 4
NEGATIVE = 0x80000000  # this bit of an int
# setpriority's and ioprio_set's
PRIO_PROCESS, PRIO_PGRP, PRIO_USER = 0, 1, 2
IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP, IOPRIO_WHO_USER = 1, 2, 3
O_WRONLY, O_RDWR, O_CREAT, O_TRUNC = 0o1, 0o2, 0o100, 0o1000
O_TMPFILE = 0o20000000  # this bit alone
O_CHANGES = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_TMPFILE
CLONE_PARENT = 0x00008000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
FD_NSFS_ROOT = -10003 & 0xFFFFFFFF  # Linux 6.18: all namespaces, by their handles
CLONE_THREAD = 0x00010000

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_ALG = 1, 2, 10, 16, 38
SOCK_STREAM, SOCK_DGRAM = 1, 2
SOCK_TYPE_MASK = 0xF
IPPROTO_IP, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_IPV6 = 0, 1, 6, 17, 41
IPPROTO_ICMPV6, IPPROTO_UDPLITE, IPPROTO_MPTCP = 58, 136, 262
IP_OPTIONS, IP_RETOPTS = 4, 7
IPV6_2292RTHDR, IPV6_2292PKTOPTIONS, IPV6_RTHDR = 5, 6, 57
MSG_FASTOPEN = 0x20000000
SYS_SOCKET, SYS_CONNECT, SYS_LISTEN, SYS_SENDTO, SYS_SENDMSG, SYS_SENDMMSG = 1, 3, 4, 11, 16, 20


class Family(Enum):
    """The handler that gets a call."""

    EXEC = "exec"
    SIGNAL = "signal"
    FORK = "fork"
    MOUNT = "mount"
    FILE = "file"
    NETWORK = "network"
    NONE = "-"  # the filter refuses the call itself


# Conditions for handing a call over. The filter sees the low 32 bits of each argument register.


class Always(NamedTuple):
    pass


class OfSignal(NamedTuple):
    """The argument is a signal number. Signals that the policy does not log pass, and so does
    signal 0 without a Landlock domain (which would answer it wrongly)."""

    argument: int


class WithBits(NamedTuple):
    """At least one of these bits is set in the argument."""

    argument: int
    bits: int


class WithoutBits(NamedTuple):
    """None of these bits is set in the argument."""

    argument: int
    bits: int


class NonZero(NamedTuple):
    """None of these arguments is 0. `pointers` are compared in all 64 bits."""

    numbers: tuple[int, ...]
    pointers: tuple[int, ...] = ()


_NOTHING: Mapping[str, Any] = {}


class OneOf(NamedTuple):
    """The argument has one of these values. A `narrowed` value also needs its condition.
    `refused` values fail with EPERM in the filter."""

    argument: int
    values: Mapping[str, int] = _NOTHING
    refused: Mapping[str, int] = _NOTHING
    narrowed: Mapping[str, tuple[int, WithBits | NonZero]] = _NOTHING


class AnyOf(NamedTuple):
    conditions: tuple[WithBits | NonZero, ...]


class Never(NamedTuple):
    """The filter fails the call with this errno."""

    errno: int


class Both(NamedTuple):
    """The first argument has this value, and the second one of those."""

    first: tuple[int, int]
    second: tuple[int, tuple[int, ...]]


class Refused(NamedTuple):
    """The filter fails the call if one of these conditions holds."""

    where: tuple[WithBits | WithoutBits | NonZero | Both, ...]
    errno: int = errno.EPERM


class OfOtherSockets(NamedTuple):
    """Matches other kinds of socket(2): neither one of `families`, nor one of `with_address` with a
    listed type and protocol."""

    families: tuple[int, ...]
    with_address: tuple[int, ...]
    types: tuple[int, ...]
    protocols: tuple[int, ...]


Condition = (
    Always
    | OfSignal
    | OneOf
    | AnyOf
    | WithBits
    | WithoutBits
    | NonZero
    | Never
    | Refused
    | OfOtherSockets
)


class Under(Enum):
    """The policies under which the filter checks a call."""

    EVERY_POLICY = ""
    NO_TRACING = "`session: {tracing: deny}`, the default"
    AT_FORK = "`limits.at_fork`"
    NETWORK_RULES = "`network_rules`"
    DATAGRAM_RULES = "`network_rules` that deny datagrams"
    FILE_AUDIT = "`file_rules` that audit"


class Call(NamedTuple):
    name: str
    x86_64: int | None
    i386: int | None
    aarch64: int | None
    family: Family
    handed_over: Condition
    meaning: str
    under: Under = Under.EVERY_POLICY


_OWNERS = OneOf(
    1,
    {"F_SETOWN": F_SETOWN, "F_SETSIG": F_SETSIG, "F_SETOWN_EX": F_SETOWN_EX},
    narrowed={"F_SETFL with O_ASYNC": (F_SETFL, WithBits(2, O_ASYNC))},
)
_OWNER_MEANING = (
    "chooses the process for a descriptor, judged as SIGKILL to it, or the signal, judged as such"
)
_SLOWS = "judged as SIGSTOP"
_SIGNALS = "signals processes; the members of a group are judged one by one, `kill(-1)` is denied"
_USES_MEMORY = "reads or writes memory of a process"
_MOUNTS = "mounts a file system; noted and left to the kernel"
_CHANGES = "changes directory entries or a file's size"

_EVENTS_OF_OTHERS = AnyOf((NonZero((1,)), WithBits(4, PERF_FLAG_PID_CGROUP)))


def _call(
    name: str,
    family: Family,
    handed_over: Condition,
    meaning: str,
    under: Under = Under.EVERY_POLICY,
) -> Call:
    x86_64, i386, aarch64 = NUMBERS_BY_ARCH[name]
    return Call(name, x86_64, i386, aarch64, family, handed_over, meaning, under)


TABLE: tuple[Call, ...] = (
    # These rows come first: the filter takes the first row of a call.
    *(
        _call(name, Family.NONE, condition, meaning, under=Under.NO_TRACING)
        for name, condition, meaning in (
            ("ptrace", Never(errno.EPERM), "traces a process"),
            ("process_vm_readv", Never(errno.EPERM), _USES_MEMORY),
            ("process_vm_writev", Never(errno.EPERM), _USES_MEMORY),
            (
                "perf_event_open",
                Refused(_EVENTS_OF_OTHERS.conditions),
                "watches a process, can signal it",
            ),
        )
    ),
    _call("execve", Family.EXEC, Always(), "runs a program"),
    _call("execveat", Family.EXEC, Always(), "runs a program"),
    # After a mount, memory of a process may be a file that another process serves.
    _call("mount", Family.MOUNT, Always(), _MOUNTS),
    _call("fsmount", Family.MOUNT, Always(), _MOUNTS),
    _call("kill", Family.SIGNAL, OfSignal(1), _SIGNALS),
    _call("tkill", Family.SIGNAL, OfSignal(1), _SIGNALS),
    _call("tgkill", Family.SIGNAL, OfSignal(2), _SIGNALS),
    _call("rt_sigqueueinfo", Family.SIGNAL, OfSignal(1), _SIGNALS),
    _call("rt_tgsigqueueinfo", Family.SIGNAL, OfSignal(2), _SIGNALS),
    _call("pidfd_send_signal", Family.SIGNAL, OfSignal(1), _SIGNALS),
    _call(
        "ptrace",
        Family.SIGNAL,
        # Only a tracee that was seized can run on after an exec, without a stop.
        OneOf(
            0,
            {
                "PTRACE_TRACEME": PTRACE_TRACEME,
                "PTRACE_KILL": PTRACE_KILL,
                "PTRACE_ATTACH": PTRACE_ATTACH,
            },
            refused={"PTRACE_SEIZE": PTRACE_SEIZE},
        ),
        "traces or kills a process; judged as tracing. Debuggers fall back to `PTRACE_ATTACH`",
    ),
    _call("process_vm_readv", Family.SIGNAL, NonZero((0,)), f"{_USES_MEMORY}; judged as tracing"),
    _call("process_vm_writev", Family.SIGNAL, NonZero((0,)), f"{_USES_MEMORY}; judged as tracing"),
    _call("pidfd_getfd", Family.NONE, Never(errno.EPERM), "copies a descriptor of a process"),
    _call(
        "perf_event_open",
        Family.SIGNAL,
        _EVENTS_OF_OTHERS,
        "watches a process, can signal it; judged as tracing",
    ),
    _call(
        "prlimit64",
        Family.SIGNAL,
        NonZero(numbers=(0,), pointers=(2,)),  # another process, and new limits
        "sets limits of another process; judged as SIGKILL",
    ),
    _call(
        "setpriority",
        Family.SIGNAL,
        OneOf(
            0,
            {"PRIO_PGRP": PRIO_PGRP, "PRIO_USER": PRIO_USER},
            narrowed={"PRIO_PROCESS of another": (PRIO_PROCESS, NonZero((1,)))},
        ),
        f"priority; {_SLOWS}",
    ),
    _call(
        "ioprio_set",
        Family.SIGNAL,
        OneOf(
            0,
            {"IOPRIO_WHO_PGRP": IOPRIO_WHO_PGRP, "IOPRIO_WHO_USER": IOPRIO_WHO_USER},
            narrowed={"IOPRIO_WHO_PROCESS of another": (IOPRIO_WHO_PROCESS, NonZero((1,)))},
        ),
        f"priority; {_SLOWS}",
    ),
    *(
        _call(name, Family.SIGNAL, NonZero((0,)), f"scheduling; {_SLOWS}")
        for name in ("sched_setparam", "sched_setscheduler", "sched_setattr", "sched_setaffinity")
    ),
    *(
        _call(name, Family.SIGNAL, NonZero((0,)), f"moves memory between NUMA nodes; {_SLOWS}")
        for name in ("migrate_pages", "move_pages")
    ),
    _call(
        "process_madvise",
        Family.NONE,
        # A negative number is the caller itself, Linux 6.15.
        Refused((WithoutBits(0, NEGATIVE),)),
        "slows a process by page-out advice",
    ),
    _call(
        "setpgid",
        Family.SIGNAL,
        NonZero((1,)),
        "joins a process group; groups from outside this session are denied",
    ),
    _call("fcntl", Family.SIGNAL, _OWNERS, _OWNER_MEANING),
    _call("fcntl64", Family.SIGNAL, _OWNERS, _OWNER_MEANING),
    _call(
        "ioctl",
        Family.SIGNAL,
        OneOf(
            1,
            {
                "FIOSETOWN": FIOSETOWN,
                "SIOCSPGRP": SIOCSPGRP,
                "FIOASYNC": FIOASYNC,
                "TIOCSPGRP": TIOCSPGRP,
            },
            refused={
                # These type into a terminal: an approval, or a command for a shell.
                "TIOCSTI": TIOCSTI,
                "TIOCLINUX": 0x541C,
                # These take a terminal from its other users.
                "TIOCCONS": 0x541D,
                "TIOCSETD": 0x5423,
                "TIOCVHANGUP": 0x5437,
                "TIOCSLCKTRMIOS": 0x5457,
                # These block a file system, perhaps that of the log.
                "FIFREEZE": 0xC0045877,
                "FS_IOC_SHUTDOWN": 0x8004587D,
                # On /dev/userfaultfd; it makes readers of the caller's memory wait.
                "USERFAULTFD_IOC_NEW": 0xAA00,
            },
            narrowed={"TIOCSCTTY by force": (TIOCSCTTY, NonZero((2,)))},
        ),
        "signals of descriptors, as with fcntl; a terminal's foreground group or session; the "
        "refused ones type into or take over terminals, freeze file systems, or delay readers",
    ),
    _call(
        "prctl",
        Family.NONE,
        # An orphan's memory layout identifies its parent, so no process may change its own.
        OneOf(0, refused={"PR_SET_MM": PR_SET_MM}),
        "changes the memory layout by which sigwrap recognizes orphans",
    ),
    _call("vhangup", Family.NONE, Never(errno.EPERM), "ends all users of a terminal"),
    _call(
        "keyctl",
        Family.NONE,
        OneOf(0, refused={"KEYCTL_SESSION_TO_PARENT": 18}),
        "changes the parent's keyring; the parent may be sigwrap",
    ),
    _call(
        "bpf",
        Family.NONE,
        OneOf(0, refused={"BPF_RAW_TRACEPOINT_OPEN": 17, "BPF_LINK_CREATE": 28}),
        "runs a program in every process, which can signal it",
    ),
    _call(
        "fanotify_init",
        Family.NONE,
        Refused((WithBits(0, FAN_CLASSES_THAT_DECIDE),)),
        "makes every opener of a file wait for the caller",
    ),
    _call(
        "userfaultfd",
        Family.NONE,
        Refused((WithoutBits(0, UFFD_USER_MODE_ONLY),)),
        "makes every reader of the caller's memory wait for the caller",
    ),
    _call("reboot", Family.NONE, Never(errno.EPERM), "restarts the machine"),
    _call("kexec_load", Family.NONE, Never(errno.EPERM), "restarts the machine"),
    _call("kexec_file_load", Family.NONE, Never(errno.EPERM), "restarts the machine"),
    _call(
        "setns",
        Family.NONE,
        # In another pid namespace a process would leave the tree: an orphan there becomes a child
        # of that namespace's init. 0 stands for any type of descriptor.
        Refused((WithBits(1, CLONE_NEWPID | CLONE_NEWUSER), WithoutBits(1, 0xFFFFFFFF))),
        "joins a pid or user namespace, where a process would leave the tree",
    ),
    _call(
        "open_by_handle_at",
        Family.NONE,
        OneOf(0, refused={"FD_NSFS_ROOT": FD_NSFS_ROOT}),
        "opens any namespace, past Landlock",
    ),
    _call("fork", Family.FORK, Always(), "makes a process", under=Under.AT_FORK),
    _call("vfork", Family.FORK, Always(), "makes a process", under=Under.AT_FORK),
    _call(
        "clone", Family.FORK, WithoutBits(0, CLONE_THREAD), "makes a process", under=Under.AT_FORK
    ),
    _call(
        "clone3",
        Family.FORK,
        # Its flags are in memory, where another thread can change them after the check. C libraries
        # then fall back to clone, as on an old kernel.
        Never(errno.ENOSYS),
        "makes a process or thread; libraries fall back to `clone`",
        under=Under.AT_FORK,
    ),
    *(
        _call(name, Family.FILE, condition, "opens a file", under=Under.FILE_AUDIT)
        for name, condition in (
            ("open", WithBits(1, O_CHANGES)),
            ("openat", WithBits(2, O_CHANGES)),
            ("openat2", Always()),
        )
    ),
    *(
        _call(name, Family.FILE, Always(), _CHANGES, under=Under.FILE_AUDIT)
        for name in (
            *("creat", "truncate", "truncate64", "unlink", "unlinkat", "rmdir", "rename"),
            *("renameat", "renameat2", "mkdir", "mkdirat", "link", "linkat", "symlink"),
            *("symlinkat", "mknod", "mknodat"),
        )
    ),
    # With network_rules the row below replaces this one and refuses the call.
    _call(
        "io_uring_setup",
        Family.FILE,
        Always(),
        "makes a queue that can open files",
        under=Under.FILE_AUDIT,
    ),
    _call("connect", Family.NETWORK, Always(), "connects a socket", under=Under.NETWORK_RULES),
    _call(
        "sendto",
        Family.NETWORK,
        NonZero(numbers=(), pointers=(4,)),
        "sends a datagram to an address",
        under=Under.NETWORK_RULES,
    ),
    # The address is in memory, where the filter cannot see it. So it hands over all of these calls,
    # or none.
    *(
        _call(
            name,
            Family.NETWORK,
            Always(),
            "sends, perhaps to an address",
            under=Under.DATAGRAM_RULES,
        )
        for name in ("sendmsg", "sendmmsg")
    ),
    *(
        _call(
            name,
            Family.NETWORK,
            # The errno is that of a system without TCP fast open.
            Refused((WithBits(flags_at, MSG_FASTOPEN),), errno.EOPNOTSUPP),
            "connects a socket",
            under=Under.NETWORK_RULES,
        )
        for name, flags_at in (("sendmsg", 2), ("sendmmsg", 3))
    ),
    _call(
        "socket",
        Family.NETWORK,
        OfOtherSockets(
            families=(AF_UNIX, AF_NETLINK, AF_ALG),
            with_address=(AF_INET, AF_INET6),
            types=(SOCK_STREAM, SOCK_DGRAM),
            protocols=(
                IPPROTO_IP,
                IPPROTO_TCP,
                IPPROTO_UDP,
                IPPROTO_ICMP,
                IPPROTO_ICMPV6,
                IPPROTO_UDPLITE,
                IPPROTO_MPTCP,
            ),
        ),
        "makes a socket",
        under=Under.NETWORK_RULES,
    ),
    _call(
        "setsockopt",
        Family.NETWORK,
        Refused(
            (
                Both((1, IPPROTO_IP), (2, (IP_OPTIONS,))),
                Both((1, IPPROTO_IPV6), (2, (IPV6_RTHDR, IPV6_2292RTHDR, IPV6_2292PKTOPTIONS))),
            )
        ),
        "routes packets over other hosts",
        under=Under.NETWORK_RULES,
    ),
    _call(
        "io_uring_setup",
        Family.NETWORK,
        Always(),
        "makes a queue that connects without a call; refused with an event",
        under=Under.NETWORK_RULES,
    ),
    _call(  # The queue may be inherited.
        "io_uring_enter",
        Family.NETWORK,
        Never(errno.EPERM),
        "uses an inherited queue",
        under=Under.NETWORK_RULES,
    ),
    _call(
        "socketcall",
        Family.NETWORK,
        OneOf(
            0,
            {
                "SYS_SOCKET": SYS_SOCKET,
                "SYS_CONNECT": SYS_CONNECT,
                "SYS_LISTEN": SYS_LISTEN,
                "SYS_SENDTO": SYS_SENDTO,
                "SYS_SENDMSG": SYS_SENDMSG,
                "SYS_SENDMMSG": SYS_SENDMMSG,
            },
        ),
        "the i386 form of the calls above",
        under=Under.NETWORK_RULES,
    ),
    _call("listen", Family.NETWORK, Always(), "listens on a socket", under=Under.NETWORK_RULES),
)


OF_X86_64 = (X86_64, I386)
OF_AARCH64 = (AARCH64,)
ARCHES = OF_AARCH64 if IS_AARCH64 else OF_X86_64  # the ABIs of this machine's kernel


def number(call: Call, arch: int) -> int | None:
    if arch == X86_64:
        return call.x86_64
    return call.i386 if arch == I386 else call.aarch64


def number_of(name: str, arch: int) -> int:
    return next(found for found, call in BY_NUMBER[arch].items() if call.name == name)


def by_number(
    table: Iterable[Call], arches: tuple[int, ...] = ARCHES
) -> dict[int, dict[int, Call]]:
    """Return the calls of each ABI by number; the last row of a call wins."""
    return {
        arch: {found: call for call in table if (found := number(call, arch)) is not None}
        for arch in arches
    }


BY_NUMBER = by_number(TABLE)

EXECS = frozenset(
    found
    for numbers in BY_NUMBER.values()
    for found, call in numbers.items()
    if call.family is Family.EXEC
)

# Without sigwrap these never fail with EINTR, so sigwrap restarts them after a signal.
_ON_SOCKETS = ("connect", "sendto", "sendmsg", "sendmmsg", "socketcall")
_ON_PIPES = ("open", "openat", "openat2", "creat")
_MAY_WAIT = frozenset(("fcntl", "fcntl64", "ioctl", "mount", "fsmount", *_ON_SOCKETS, *_ON_PIPES))
NEVER_BROKEN_OFF: dict[int, frozenset[int]] = {
    arch: frozenset(found for found, call in row.items() if call.name not in _MAY_WAIT)
    for arch, row in BY_NUMBER.items()
}

_EXITS_OF_I386 = frozenset({1, 252})
EXITS = numbers_of("exit", "exit_group") | (_EXITS_OF_I386 if I386 in ARCHES else frozenset())
PTRACE_CALLS = frozenset(number_of("ptrace", arch) for arch in BY_NUMBER)
