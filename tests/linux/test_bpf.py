"""The filter, run by a small interpreter: what becomes of each call."""

from __future__ import annotations

import errno
import itertools

import pytest

from sigwrap.calls import (
    BY_NUMBER,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_PARENT,
    CLONE_THREAD,
    F_SETFL,
    F_SETOWN,
    F_SETOWN_EX,
    F_SETSIG,
    FD_NSFS_ROOT,
    FIOASYNC,
    FIOSETOWN,
    I386,
    O_ASYNC,
    PR_SET_MM,
    PTRACE_ATTACH,
    PTRACE_KILL,
    PTRACE_SEIZE,
    PTRACE_TRACEME,
    SIOCSPGRP,
    TABLE,
    TIOCSCTTY,
    TIOCSPGRP,
    X32_BIT,
    X86_64,
    Always,
    Call,
    Family,
    Under,
    number_of,
)
from sigwrap.kernel.seccomp import ALLOW, NOTIFY, REFUSE, REFUSE_ABI, encode, mediation_filter
from sigwrap.machine import IS_X86_64
from tests.support.filters import ARCHES, SIGNAL_ARGUMENT, Code, verdict

pytestmark = pytest.mark.skipif(not IS_X86_64, reason="about x86_64's filter")

UPPER = 0xDEADBEEF << 32
UPPERS = {X86_64: (0, UPPER), I386: (0,)}
REFUSED_IOCTLS = (
    *(0x5412, 0x541C, 0x541D, 0x5423, 0x5437, 0x5457, 0xAA00),  # of terminals; userfaultfd
    *(0xC0045877, 0x8004587D),  # of file systems
)


@pytest.fixture(scope="module")
def ours() -> Code:
    return mediation_filter()


@pytest.mark.parametrize("arch", ARCHES)
def test_a_signal_is_mediated_and_signal_0_is_not(ours: Code, arch: int) -> None:
    """The kernel takes an int; a filter that compares 64 bits would see another number."""
    for (name, position), upper in itertools.product(SIGNAL_ARGUMENT.items(), UPPERS[arch]):
        arguments = [upper | 123] * 3
        for signal_number in (1, 9, 15, 34, 64, 65, 0xFFFFFFFF):
            arguments[position] = upper | signal_number
            assert verdict(ours, number_of(name, arch), arch, *arguments) == NOTIFY, name
        arguments[position] = 0
        assert verdict(ours, number_of(name, arch), arch, *arguments) == ALLOW, name


Lines = dict[int, list[tuple[int, ...]]]  # of words, by what becomes of a call with them
NAMESPACES = (CLONE_NEWPID, CLONE_NEWUSER)
OTHERS = 0x40000000 | 0x00020000 | 0x80  # namespaces of network, mounts, time
FCNTL: Lines = {
    ALLOW: [(3, command) for command in (0, 1, 2, 3, 4, 9, 11, 1030)]
    + [(3, F_SETFL, 0xFFFFFFFF & ~O_ASYNC)],
    NOTIFY: [(3, F_SETOWN), (3, F_SETSIG), (3, F_SETOWN_EX), (3, F_SETFL, O_ASYNC | 2)],
}
OF_ANOTHER: Lines = {ALLOW: [(0,)], NOTIFY: [(123,)]}
VERDICTS: dict[str, Lines] = {
    "execve": {NOTIFY: [()]},
    "execveat": {NOTIFY: [()]},
    "mount": {NOTIFY: [()]},
    "fsmount": {NOTIFY: [()]},
    "pidfd_getfd": {REFUSE: [()]},
    "fcntl": FCNTL,
    "fcntl64": FCNTL,
    "ioctl": {
        ALLOW: [(3, 0x5401), (3, TIOCSCTTY, 0)],
        NOTIFY: [(3, FIOSETOWN), (3, SIOCSPGRP), (3, FIOASYNC), (3, TIOCSPGRP), (3, TIOCSCTTY, 1)],
        REFUSE: [(3, request) for request in REFUSED_IOCTLS],
    },
    "prctl": {ALLOW: [(38,)], REFUSE: [(PR_SET_MM,)]},
    "ptrace": {
        ALLOW: [(1,), (0x4200,)],  # PTRACE_PEEKTEXT, PTRACE_SETOPTIONS
        NOTIFY: [(PTRACE_TRACEME,), (PTRACE_KILL,), (PTRACE_ATTACH,)],
        REFUSE: [(PTRACE_SEIZE,)],
    },
    # The words by which these name the caller itself are free, those that name another are not.
    "prlimit64": {ALLOW: [(0, 7, 0x7FFF_0000)], NOTIFY: [(123, 7, 0x7FFF_0000)]},
    "process_vm_readv": OF_ANOTHER,
    "process_vm_writev": OF_ANOTHER,
    "perf_event_open": {ALLOW: [(1, 0)], NOTIFY: [(1, 123), (1, 0xFFFFFFFF), (1, 0, 0, 0, 4)]},
    "setpriority": {ALLOW: [(0, 0)], NOTIFY: [(0, 123), (1, 0), (2, 0)]},
    "ioprio_set": {ALLOW: [(1, 0)], NOTIFY: [(1, 123), (2, 0), (3, 0)]},
    "sched_setparam": OF_ANOTHER,
    "sched_setscheduler": OF_ANOTHER,
    "sched_setattr": OF_ANOTHER,
    "sched_setaffinity": OF_ANOTHER,
    "migrate_pages": OF_ANOTHER,
    "move_pages": OF_ANOTHER,
    "setpgid": {ALLOW: [(0, 0), (123, 0)], NOTIFY: [(0, 123), (123, 123)]},
    "process_madvise": {
        ALLOW: [(-10000 & 0xFFFFFFFF,), (-1 & 0xFFFFFFFF,)],
        REFUSE: [(0,), (123,)],
    },
    # What the filter refuses by itself
    "vhangup": {REFUSE: [()]},
    "reboot": {REFUSE: [(1,)]},
    "kexec_load": {REFUSE: [()]},
    "kexec_file_load": {REFUSE: [()]},
    "userfaultfd": {ALLOW: [(1,), (0x801,)], REFUSE: [(0,), (0x800,)]},
    "fanotify_init": {ALLOW: [(0,), (3,)], REFUSE: [(4,), (8,), (0xF,)]},
    "keyctl": {ALLOW: [(1,)], REFUSE: [(18,)]},
    "bpf": {ALLOW: [(5,)], REFUSE: [(17,), (28,)]},
    "setns": {
        ALLOW: [(3, OTHERS)],
        REFUSE: [(3, 0), *((3, flags | more) for flags in NAMESPACES for more in (0, OTHERS))],
    },
    "open_by_handle_at": {ALLOW: [(3,)], REFUSE: [(FD_NSFS_ROOT,)]},
}


@pytest.mark.parametrize("arch", ARCHES)
def test_calls_that_are_mediated_and_refused(ours: Code, arch: int) -> None:
    """The upper half of a register hides nothing: the kernel takes an int of each of these."""
    for number, call in BY_NUMBER[arch].items():
        for expected, lines in VERDICTS.get(call.name, {}).items():
            for upper, words in itertools.product(UPPERS[arch], lines):
                arguments = [upper | word for word in words]
                assert verdict(ours, number, arch, *arguments) == expected, (call.name, words)


@pytest.mark.parametrize("arch", ARCHES)
def test_without_tracing_it_fails_in_the_filter(ours: Code, arch: int) -> None:
    program = mediation_filter(under=frozenset({Under.NO_TRACING}))
    for name in ("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"):
        for word, upper in itertools.product((0, 1, 16, 123, PTRACE_SEIZE), UPPERS[arch]):
            assert verdict(program, number_of(name, arch), arch, upper | word) == REFUSE, name
    events = number_of("perf_event_open", arch)
    assert verdict(program, events, arch, 1, 0) == ALLOW
    for words in ((1, 123), (1, 0xFFFFFFFF), (1, 0, 0, 0, 4)):
        assert verdict(program, events, arch, *words) == REFUSE
    traced = {call.name for call in TABLE if call.under is Under.NO_TRACING}
    for number, call in BY_NUMBER[arch].items():
        if call.name not in traced:
            assert verdict(program, number, arch, 1, 9) == verdict(ours, number, arch, 1, 9)


@pytest.mark.parametrize("arch", ARCHES)
def test_no_other_call_is_touched(ours: Code, arch: int) -> None:
    of_every_policy = {call.name for call in TABLE if call.under is Under.EVERY_POLICY}
    assert of_every_policy == VERDICTS.keys() | SIGNAL_ARGUMENT.keys()
    known = {each for each, call in BY_NUMBER[arch].items() if call.name in of_every_policy}
    for number in set(range(500)) - known:
        for word in (0, 1, 9, 0xFFFFFFFF):
            assert verdict(ours, number, arch, *[word] * 5) == ALLOW


def test_a_pointer_has_64_bits(ours: Code) -> None:
    """Without one, prlimit64 only asks."""
    number = number_of("prlimit64", X86_64)
    assert verdict(ours, number, X86_64, 123, 7, 0) == ALLOW
    assert verdict(ours, number, X86_64, 123, 7, 1 << 32) == NOTIFY


def test_x32_is_not_let_through(ours: Code) -> None:
    for number in (0, 39, 59, 62, 520, 536, 547):
        assert verdict(ours, X32_BIT | number, X86_64) == NOTIFY


def test_a_call_skipped_by_a_tracer_is_none(ours: Code) -> None:
    assert verdict(ours, -1, X86_64) == ALLOW


def test_an_unknown_abi_is_refused(ours: Code) -> None:
    assert verdict(ours, 59, 0xC00000B7) == REFUSE_ABI == 0x00050000 | errno.ENOSYS


@pytest.mark.parametrize("arch", ARCHES)
def test_unlogged_signals_pass_whoever_they_are_for_and_others_do_not(arch: int) -> None:
    program = mediation_filter(frozenset(range(1, 65)) - {9, 15})
    for name, position in SIGNAL_ARGUMENT.items():
        for number in (*range(67), UPPER | 9 if arch == X86_64 else 9):
            arguments = [1, 1, 1]
            arguments[position] = number
            expected = ALLOW if number <= 64 and number not in (9, 15) else NOTIFY
            assert verdict(program, number_of(name, arch), arch, *arguments) == expected
        assert verdict(program, number_of("execve", arch), arch) == NOTIFY
    assert verdict(program, X32_BIT | 62, X86_64) == NOTIFY


@pytest.mark.parametrize("arch", ARCHES)
def test_forks_are_mediated_where_that_is_asked_for_and_threads_are_not(
    ours: Code, arch: int
) -> None:
    at_fork = mediation_filter(under=frozenset({Under.AT_FORK}))
    numbers = {
        call.name: number for number, call in BY_NUMBER[arch].items() if call.under is Under.AT_FORK
    }
    assert sorted(numbers) == ["clone", "clone3", "fork", "vfork"]
    a_fork, a_thread = 17, 0x003D0F00
    assert a_thread & CLONE_THREAD and not a_fork & CLONE_THREAD
    for number in numbers.values():
        for flags in (0, a_fork, a_fork | CLONE_PARENT, a_thread):
            assert verdict(ours, number, arch, flags) == ALLOW
    for name in ("fork", "vfork"):
        assert verdict(at_fork, numbers[name], arch, a_thread) == NOTIFY
    for flags in (0, a_fork, a_fork | CLONE_PARENT, 0xFFFFFFFF & ~CLONE_THREAD):
        assert verdict(at_fork, numbers["clone"], arch, flags) == NOTIFY
        upper = flags | UPPER if arch == X86_64 else flags
        assert verdict(at_fork, numbers["clone"], arch, upper) == NOTIFY
    assert verdict(at_fork, numbers["clone"], arch, a_thread) == ALLOW
    assert verdict(at_fork, numbers["clone3"], arch, 123) == REFUSE_ABI
    for number in set(range(500)) - set(numbers.values()):
        assert verdict(at_fork, number, arch, 1, 9) == verdict(ours, number, arch, 1, 9)


ON_SOCKETS = (
    *("connect", "sendto", "socket", "setsockopt", "listen"),
    *("io_uring_setup", "io_uring_enter"),
)
OF_MESSAGES = ("sendmsg", "sendmmsg")
NET_RULES = frozenset({Under.NETWORK_RULES})
DATAGRAM_RULES = frozenset({Under.NETWORK_RULES, Under.DATAGRAM_RULES})


@pytest.mark.parametrize("arch", ARCHES)
def test_sockets_are_mediated_under_network_rules_alone(ours: Code, arch: int) -> None:
    rules, datagrams = mediation_filter(under=NET_RULES), mediation_filter(under=DATAGRAM_RULES)
    names = [*ON_SOCKETS, *OF_MESSAGES, *(["socketcall"] if arch == I386 else [])]
    for name in names:
        number = number_of(name, arch)
        for words in ((0,) * 5, (1, 0, 57, 0x20000000, 1), (3, 41, 57, 0x20000000, 1)):
            assert verdict(ours, number, arch, *words) == ALLOW

    def say(program: Code, name: str, *words: int) -> int:
        return verdict(program, number_of(name, arch), arch, *words)

    not_supported = 0x00050000 | errno.EOPNOTSUPP
    for program in (rules, datagrams):
        assert say(program, "connect", 3, 1, 16) == say(program, "listen", 3, 1) == NOTIFY
        assert say(program, "io_uring_setup", 1, 1) == NOTIFY
        assert say(program, "io_uring_enter", 3, 1) == REFUSE
        assert say(program, "sendto", 3, 1, 1, 0, 0) == ALLOW
        assert say(program, "sendto", 3, 1, 1, 0, 8) == NOTIFY
        if arch == X86_64:
            assert say(program, "sendto", 3, 1, 1, 0, UPPER) == NOTIFY
        for upper in UPPERS[arch]:
            for option in ((0, 4), (41, 57), (41, 5), (41, 6)):
                level, option_name = (upper | each for each in option)
                assert say(program, "setsockopt", 3, level, option_name) == REFUSE
        for option in ((0, 5), (0, 57), (41, 4), (1, 4), (6, 57)):
            assert say(program, "setsockopt", 3, *option) == ALLOW
    for name, flags_at in (("sendmsg", 2), ("sendmmsg", 3)):
        for upper in UPPERS[arch]:
            fast, plain = [1] * 4, [1] * 4
            fast[flags_at], plain[flags_at] = upper | 0x20004000, upper | 0x4000
            assert say(rules, name, *fast) == not_supported
            assert say(rules, name, *plain) == ALLOW
            assert say(datagrams, name, *fast) == say(datagrams, name, *plain) == NOTIFY


@pytest.mark.parametrize("arch", ARCHES)
def test_sockets_that_no_rule_is_about_are_handed_over(arch: int) -> None:
    program = mediation_filter(under=NET_RULES)
    number = number_of("socket", arch)
    flags = 0o2004000  # SOCK_CLOEXEC | SOCK_NONBLOCK
    for upper in UPPERS[arch]:
        for family, kind, protocol in (
            (1, 1, 0), (1, 5, 0), (16, 3, 0), (38, 5, 0), (2, 1, 0), (2, 2, 17), (10, 1, 6),
            (10, 2, 58), (2, 1, 262), (2, 2, 1),
        ):  # fmt: skip
            words = (upper | family, upper | kind | flags, upper | protocol)
            assert verdict(program, number, arch, *words) == ALLOW, words
        for family, kind, protocol in (
            (2, 3, 17), (2, 3, 255), (10, 3, 58), (17, 3, 3), (17, 2, 0), (40, 1, 0), (2, 10, 3),
            (2, 1, 132), (2, 5, 132), (43, 1, 0), (21, 5, 0), (31, 3, 0), (2, 1, 256), (0, 1, 0),
        ):  # fmt: skip
            words = (upper | family, upper | kind | flags, upper | protocol)
            assert verdict(program, number, arch, *words) == NOTIFY, words


def test_the_calls_of_socketcall_that_are_handed_over() -> None:
    program, number = mediation_filter(under=NET_RULES), number_of("socketcall", I386)
    mediated = {which for which in range(25) if verdict(program, number, I386, which) == NOTIFY}
    assert mediated == {1, 3, 4, 11, 16, 20}


def test_a_row_of_the_table_is_all_that_the_filter_needs() -> None:
    added = Call("personality", 135, 136, 92, Family.SIGNAL, Always(), "another one")
    program = mediation_filter(table=(*TABLE, added))
    assert verdict(program, 135, X86_64) == verdict(program, 136, I386) == NOTIFY
    assert verdict(mediation_filter(), 135, X86_64) == ALLOW


def test_it_fits_the_kernel(ours: Code) -> None:
    assert len(encode(ours)) == 8 * len(ours) <= 8 * 4096
    everything = mediation_filter(frozenset(range(1, 65)), under=frozenset(Under))
    assert len(everything) <= 4096


@pytest.mark.parametrize("arch", ARCHES)
def test_questions_are_handed_over_where_the_kernel_would_answer_them_wrongly(
    ours: Code, arch: int
) -> None:
    asking = mediation_filter(frozenset({28}), questions=True)
    for name, position in SIGNAL_ARGUMENT.items():
        arguments = [1, 1, 1]
        for number, expected in ((0, NOTIFY), (28, ALLOW), (9, NOTIFY)):
            arguments[position] = number
            assert verdict(asking, number_of(name, arch), arch, *arguments) == expected
        arguments[position] = 0
        assert verdict(ours, number_of(name, arch), arch, *arguments) == ALLOW


FILE_AUDIT = frozenset({Under.FILE_AUDIT})
OPENS = {"open": 1, "openat": 2}
CHANGE_BITS = (0o1, 0o2, 0o100, 0o1000, 0o20000000)  # of which each is enough
CHANGES_BY_PATH = (
    *("openat2", "creat", "truncate", "unlink", "unlinkat", "rmdir", "rename", "renameat"),
    *("renameat2", "mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat"),
    *("mknod", "mknodat"),
)


@pytest.mark.parametrize("arch", ARCHES)
def test_calls_that_change_files_are_handed_over_where_a_rule_audits(ours: Code, arch: int) -> None:
    audited = mediation_filter(under=FILE_AUDIT)
    for upper in UPPERS[arch]:
        for name, position in OPENS.items():
            number = number_of(name, arch)
            for flags in (0, 0o200000, 0o2000000, 0o10000000 | 0o400000):  # those that only look
                words = [upper] * 4
                words[position] = upper | flags
                assert verdict(audited, number, arch, *words) == ALLOW
                for bit in CHANGE_BITS:
                    words[position] = upper | flags | bit
                    assert verdict(audited, number, arch, *words) == NOTIFY
                    assert verdict(ours, number, arch, *words) == ALLOW
    names = [*CHANGES_BY_PATH, "io_uring_setup", *(["truncate64"] if arch == I386 else [])]
    for name in names:
        assert verdict(audited, number_of(name, arch), arch) == NOTIFY
        assert verdict(ours, number_of(name, arch), arch) == ALLOW
    numbers = {number_of(name, arch) for name in (*names, *OPENS)}
    for number in set(range(500)) - numbers:
        assert verdict(audited, number, arch, 1, 0o101) == verdict(ours, number, arch, 1, 0o101)
