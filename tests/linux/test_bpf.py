"""The filter, run by a small interpreter, against what libseccomp makes of the same rules."""

from __future__ import annotations

import errno
import itertools
import os
import struct
from collections.abc import Iterable, Iterator

import pyseccomp
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
    AnyOf,
    Both,
    Call,
    Condition,
    Family,
    Never,
    NonZero,
    OfSignal,
    OneOf,
    Refused,
    Under,
    WithBits,
    WithoutBits,
    number_of,
)
from sigwrap.linux.bpf import ALLOW, NOTIFY, REFUSE, REFUSE_ABI, encode, mediation_filter
from sigwrap.machine import IS_X86_64
from tests.support.filters import Code, verdict

pytestmark = pytest.mark.skipif(not IS_X86_64, reason="about x86_64's filter")

UPPER = 0xDEADBEEF << 32
ARCHES = (X86_64, I386)
UPPERS = {X86_64: (0, UPPER), I386: (0,)}
REFUSED_IOCTLS = next(
    tuple(call.handed_over.refused.values())
    for call in TABLE
    if call.name == "ioctl" and isinstance(call.handed_over, OneOf)
)
SIGNAL_ARGUMENT = {
    call.name: call.handed_over.argument for call in TABLE if isinstance(call.handed_over, OfSignal)
}


@pytest.fixture(scope="module")
def ours() -> Code:
    return mediation_filter()


def _rules(condition: Condition) -> Iterator[tuple[object, list[object]]]:
    """As libseccomp says them: each is a verdict, and what all holds of the arguments."""
    notify, refuse = pyseccomp.NOTIFY, pyseccomp.ERRNO(errno.EPERM)
    match condition:
        case Always():
            yield notify, []
        case Never(errno=error):
            yield pyseccomp.ERRNO(error), []
        case Refused(where=where):
            for place in where:
                assert not isinstance(place, Both), "under network rules alone"
                for arguments in _places(place):
                    yield refuse, arguments
        case OneOf(argument=position, values=values, refused=refused, narrowed=narrowed):
            for value in values.values():
                yield notify, [_is(position, value)]
            for value in refused.values():
                yield refuse, [_is(position, value)]
            for value, further in narrowed.values():
                for arguments in _places(further):
                    yield notify, [_is(position, value), *arguments]
        case AnyOf(conditions=conditions):
            for each in conditions:
                for arguments in _places(each):
                    yield notify, arguments
        case WithBits() | WithoutBits() | NonZero():
            for arguments in _places(condition):
                yield notify, arguments


def _places(condition: WithBits | WithoutBits | NonZero) -> Iterator[list[object]]:
    match condition:
        case WithBits(argument=position, bits=bits):
            for bit in (1 << n for n in range(32) if bits >> n & 1):
                yield [pyseccomp.Arg(position, pyseccomp.MASKED_EQ, bit, bit)]
        case WithoutBits(argument=position, bits=bits):
            yield [pyseccomp.Arg(position, pyseccomp.MASKED_EQ, bits, 0)]
        case NonZero(numbers=numbers, pointers=pointers):
            yield [pyseccomp.Arg(each, pyseccomp.NE, 0) for each in (*numbers, *pointers)]


def _is(position: int, value: int) -> object:
    return pyseccomp.Arg(position, pyseccomp.MASKED_EQ, 0xFFFFFFFF, value)


@pytest.fixture(scope="module")
def libseccomps() -> Code:
    both = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    both.add_arch(pyseccomp.Arch.X86)
    for name, position in SIGNAL_ARGUMENT.items():
        not_a_question = pyseccomp.Arg(position, pyseccomp.NE, 0)
        both.add_rule(pyseccomp.NOTIFY, name, not_a_question)
    for call in TABLE:
        # A rule in fcntl64 would have to name i386 alone; left out below as well.
        if call.name != "fcntl64" and call.under is Under.EVERY_POLICY:
            for verdict_, arguments in _rules(call.handed_over):
                both.add_rule(verdict_, call.name, *arguments)
    with os.fdopen(os.memfd_create("filter"), "w+b") as file:
        both.export_bpf(file)
        file.seek(0)
        return list(struct.iter_unpack("<HBBI", file.read()))


@pytest.mark.tier("ci")
def test_it_agrees_with_libseccomp(ours: Code, libseccomps: Code) -> None:
    """Every call number of both ABIs, with arguments on and beside each value that matters."""
    interesting = (
        *REFUSED_IOCTLS,
        *range(20),
        PR_SET_MM,
        28,
        64,
        FIOSETOWN,
        SIOCSPGRP,
        FIOASYNC,
        TIOCSPGRP,
        TIOCSCTTY,
        O_ASYNC,
        0x4206,
    )
    fcntl64 = number_of("fcntl64", I386)
    for arch in ARCHES:
        for number in range(500):
            if arch == I386 and number == fcntl64:
                continue
            pairs: Iterable[tuple[int, int]] = itertools.product(interesting, interesting)
            if number not in BY_NUMBER[arch]:  # of no rule's: no argument is looked at
                pairs = zip(interesting, interesting, strict=True)
            for first, second in pairs:
                arguments = (first, second, first, second, first)
                assert verdict(ours, number, arch, *arguments) == verdict(
                    libseccomps, number, arch, *arguments
                ), (arch, number, arguments)


@pytest.mark.parametrize("arch", ARCHES)
def test_every_exec_is_mediated(ours: Code, arch: int) -> None:
    for name in ("execve", "execveat"):
        assert verdict(ours, number_of(name, arch), arch) == NOTIFY


@pytest.mark.parametrize("arch", ARCHES)
def test_a_signal_is_mediated_and_signal_0_is_not(ours: Code, arch: int) -> None:
    for name, position in SIGNAL_ARGUMENT.items():
        for signal_number in (1, 9, 15, 34, 64, 65, 0xFFFFFFFF):
            arguments = [123, 123, 123]
            arguments[position] = signal_number
            assert verdict(ours, number_of(name, arch), arch, *arguments) == NOTIFY
        arguments[position] = 0
        assert verdict(ours, number_of(name, arch), arch, *arguments) == ALLOW, name


def test_the_upper_half_of_a_register_hides_no_signal(ours: Code) -> None:
    """The kernel takes an int; a filter that compares 64 bits would see another number."""
    for name, position in SIGNAL_ARGUMENT.items():
        arguments = [UPPER | 123] * 3
        arguments[position] = UPPER | 9
        number = number_of(name, X86_64)
        assert verdict(ours, number, X86_64, *arguments) == NOTIFY, name


@pytest.mark.parametrize("arch", ARCHES)
def test_owners_of_descriptors_and_tracing_are_mediated(ours: Code, arch: int) -> None:
    names = ["fcntl", "fcntl64"] if arch == I386 else ["fcntl"]
    for upper in UPPERS[arch]:
        for name in names:
            for command in (F_SETOWN, F_SETSIG, F_SETOWN_EX):
                assert verdict(ours, number_of(name, arch), arch, 3, upper | command) == NOTIFY
            for command in (0, 1, 2, 3, 4, 9, 11, 1030):
                assert verdict(ours, number_of(name, arch), arch, 3, upper | command) == ALLOW
            signals = (3, upper | F_SETFL, upper | O_ASYNC | 2)
            assert verdict(ours, number_of(name, arch), arch, *signals) == NOTIFY
            is_quiet = (3, upper | F_SETFL, upper | 0xFFFFFFFF & ~O_ASYNC)
            assert verdict(ours, number_of(name, arch), arch, *is_quiet) == ALLOW
        for request in (FIOSETOWN, SIOCSPGRP, FIOASYNC, TIOCSPGRP):
            assert verdict(ours, number_of("ioctl", arch), arch, 3, upper | request) == NOTIFY
        for request in REFUSED_IOCTLS:
            assert verdict(ours, number_of("ioctl", arch), arch, 3, upper | request) == REFUSE
        assert verdict(ours, number_of("ioctl", arch), arch, 3, upper | 0x5401) == ALLOW
        assert verdict(ours, number_of("prctl", arch), arch, upper | PR_SET_MM) == REFUSE
        assert verdict(ours, number_of("prctl", arch), arch, upper | 38) == ALLOW
    for request in (PTRACE_TRACEME, PTRACE_KILL, PTRACE_ATTACH, PTRACE_SEIZE):
        assert verdict(ours, number_of("ptrace", arch), arch, request) == NOTIFY
    assert verdict(ours, number_of("ptrace", arch), arch, 1) == ALLOW


@pytest.mark.parametrize("arch", ARCHES)
def test_limits_that_are_set_for_another_process_are_mediated(ours: Code, arch: int) -> None:
    number = number_of("prlimit64", arch)
    for upper in UPPERS[arch]:
        assert verdict(ours, number, arch, upper | 123, 7, 0x7FFF_0000) == NOTIFY
        assert verdict(ours, number, arch, upper | 0, 7, 0x7FFF_0000) == ALLOW
    assert verdict(ours, number, arch, 123, 7, 0) == ALLOW
    if arch == X86_64:
        assert verdict(ours, number, arch, 123, 7, 1 << 32) == NOTIFY


# Each with the words by which it names the caller itself, and those that name another.
WHOM_IT_NAMES: dict[str, tuple[list[tuple[int, ...]], list[tuple[int, ...]]]] = {
    "process_vm_readv": ([(0,)], [(123,)]),
    "process_vm_writev": ([(0,)], [(123,)]),
    "perf_event_open": ([(1, 0)], [(1, 123), (1, 0xFFFFFFFF), (1, 0, 0, 0, 4)]),
    "setpriority": ([(0, 0)], [(0, 123), (1, 0), (2, 0)]),
    "ioprio_set": ([(1, 0)], [(1, 123), (2, 0), (3, 0)]),
    "sched_setparam": ([(0,)], [(123,)]),
    "sched_setscheduler": ([(0,)], [(123,)]),
    "sched_setattr": ([(0,)], [(123,)]),
    "sched_setaffinity": ([(0,)], [(123,)]),
    "migrate_pages": ([(0,)], [(123,)]),
    "move_pages": ([(0,)], [(123,)]),
    "setpgid": ([(0, 0), (123, 0)], [(0, 123), (123, 123)]),
    "process_madvise": ([(-10000 & 0xFFFFFFFF,), (-1 & 0xFFFFFFFF,)], [(0,), (123,)]),
}


@pytest.mark.parametrize("arch", ARCHES)
def test_what_concerns_the_caller_alone_is_free_and_another_is_not(ours: Code, arch: int) -> None:
    for name, (itself, another) in WHOM_IT_NAMES.items():
        for upper in UPPERS[arch]:
            for words in itself:
                free = [upper | word for word in words]
                assert verdict(ours, number_of(name, arch), arch, *free) == ALLOW, words
            for words in another:
                mediated = [upper | word for word in words]
                assert verdict(ours, number_of(name, arch), arch, *mediated) == NOTIFY, words


@pytest.mark.parametrize("arch", ARCHES)
def test_what_the_filter_refuses_by_itself(ours: Code, arch: int) -> None:
    def say(name: str, *words: int) -> int:
        return verdict(ours, number_of(name, arch), arch, *words)

    assert say("vhangup") == say("reboot", 1) == say("kexec_load") == REFUSE
    assert say("userfaultfd", 0) == say("userfaultfd", 0x800) == REFUSE
    assert say("userfaultfd", 1) == say("userfaultfd", 0x801) == ALLOW
    assert say("fanotify_init", 4) == say("fanotify_init", 8) == say("fanotify_init", 0xF) == REFUSE
    assert say("fanotify_init", 0) == say("fanotify_init", 3) == ALLOW
    assert say("keyctl", 18) == say("bpf", 17) == say("bpf", 28) == REFUSE
    assert say("keyctl", 1) == say("bpf", 5) == ALLOW


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


@pytest.mark.parametrize("arch", ARCHES)
def test_no_pid_or_user_namespace_is_joined(ours: Code, arch: int) -> None:
    number, by_handle = number_of("setns", arch), number_of("open_by_handle_at", arch)
    others = 0x40000000 | 0x00020000 | 0x80  # network, mounts, time
    for upper in UPPERS[arch]:
        for flags in (0, CLONE_NEWPID, CLONE_NEWUSER):
            assert verdict(ours, number, arch, 3, upper | flags) == REFUSE
        for flags in (CLONE_NEWPID, CLONE_NEWUSER):
            assert verdict(ours, number, arch, 3, upper | flags | others) == REFUSE
        assert verdict(ours, number, arch, 3, upper | others) == ALLOW
        assert verdict(ours, by_handle, arch, upper | FD_NSFS_ROOT) == REFUSE
        assert verdict(ours, by_handle, arch, upper | 3) == ALLOW


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
