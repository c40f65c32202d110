"""The filter, run by a small interpreter, against what libseccomp makes of the same rules."""

from __future__ import annotations

import errno
import itertools
import os
import struct

import pyseccomp
import pytest

from sigwrap.calls import (
    BY_NUMBER,
    CLONE_PARENT,
    CLONE_THREAD,
    F_SETOWN,
    F_SETOWN_EX,
    F_SETSIG,
    FIOSETOWN,
    I386,
    PR_SET_MM,
    PTRACE_ATTACH,
    PTRACE_KILL,
    PTRACE_SEIZE,
    SIOCSPGRP,
    TABLE,
    TIOCLINUX,
    TIOCSTI,
    X32_BIT,
    X86_64,
    Always,
    Call,
    Family,
    OfSignal,
    OneOf,
    number_of,
)
from sigwrap.linux.bpf import ALLOW, NOTIFY, REFUSE, REFUSE_ABI, encode, mediation_filter

Code = list[tuple[int, int, int, int]]
UPPER = 0xDEADBEEF << 32
ARCHES = (X86_64, I386)
REFUSED_IOCTLS = (TIOCSTI, TIOCLINUX)
SIGNAL_ARGUMENT = {
    call.name: call.handed_over.argument for call in TABLE if isinstance(call.handed_over, OfSignal)
}


def verdict(program: Code, number: int, arch: int, *arguments: int) -> int:
    registers = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, arch, 0, *registers)
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, operand)
            case 0x54:
                accumulator &= operand
            case 0x15:
                at += if_true if accumulator == operand else if_false
            case 0x25:
                at += if_true if accumulator > operand else if_false
            case 0x35:
                at += if_true if accumulator >= operand else if_false
            case 0x45:
                at += if_true if accumulator & operand else if_false
            case 0x05:
                at += operand
            case 0x06:
                return operand
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


@pytest.fixture(scope="module")
def ours() -> Code:
    return mediation_filter()


@pytest.fixture(scope="module")
def libseccomps() -> Code:
    low_word = 0xFFFFFFFF
    both = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    both.add_arch(pyseccomp.Arch.X86)
    for name, position in SIGNAL_ARGUMENT.items():
        not_a_question = pyseccomp.Arg(position, pyseccomp.NE, 0)
        both.add_rule(pyseccomp.NOTIFY, name, not_a_question)
    for name in ("execve", "execveat", "mount", "fsmount"):
        both.add_rule(pyseccomp.NOTIFY, name)
    named, limits = (pyseccomp.Arg(position, pyseccomp.NE, 0) for position in (0, 2))
    both.add_rule(pyseccomp.NOTIFY, "prlimit64", named, limits)
    for call in TABLE:
        if not isinstance(call.handed_over, OneOf) or call.name == "fcntl64":
            continue  # a rule in fcntl64 would have to name i386 alone; left out below as well
        position, values, refused = call.handed_over
        for value in values.values():
            selected = pyseccomp.Arg(position, pyseccomp.MASKED_EQ, low_word, value)
            both.add_rule(pyseccomp.NOTIFY, call.name, selected)
        for value in refused.values():
            selected = pyseccomp.Arg(position, pyseccomp.MASKED_EQ, low_word, value)
            both.add_rule(pyseccomp.ERRNO(errno.EPERM), call.name, selected)
    with os.fdopen(os.memfd_create("filter"), "w+b") as file:
        both.export_bpf(file)
        file.seek(0)
        return list(struct.iter_unpack("<HBBI", file.read()))


def test_it_agrees_with_libseccomp(ours: Code, libseccomps: Code) -> None:
    """Every call number of both ABIs, with arguments on and beside each value that matters."""
    interesting = (
        *REFUSED_IOCTLS,
        PR_SET_MM,
        0,
        9,
        64,
        F_SETOWN,
        F_SETSIG,
        F_SETOWN_EX,
        FIOSETOWN,
        SIOCSPGRP,
        16,
        0x4206,
    )
    fcntl64 = number_of("fcntl64", I386)
    for arch in ARCHES:
        for number in range(500):
            if arch == I386 and number == fcntl64:
                continue
            for first, second in itertools.product(interesting, repeat=2):
                arguments = (first, second, first)
                assert verdict(ours, number, arch, *arguments) == verdict(
                    libseccomps, number, arch, *arguments
                ), (arch, number, arguments)


@pytest.mark.parametrize("arch", ARCHES)
def test_every_exec_is_mediated(ours: Code, arch: int) -> None:
    for name in ("execve", "execveat"):
        assert verdict(ours, number_of(name, arch), arch) == NOTIFY


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", SIGNAL_ARGUMENT)
def test_a_signal_is_mediated_and_signal_0_is_not(ours: Code, arch: int, name: str) -> None:
    position = SIGNAL_ARGUMENT[name]
    for signal_number in (1, 9, 15, 34, 64, 65, 0xFFFFFFFF):
        arguments = [123, 123, 123]
        arguments[position] = signal_number
        assert verdict(ours, number_of(name, arch), arch, *arguments) == NOTIFY
    arguments[position] = 0
    assert verdict(ours, number_of(name, arch), arch, *arguments) == ALLOW


@pytest.mark.parametrize("name", SIGNAL_ARGUMENT)
def test_the_upper_half_of_a_register_hides_no_signal(ours: Code, name: str) -> None:
    """The kernel takes an int; a filter that compares 64 bits would see another number."""
    arguments = [UPPER | 123] * 3
    arguments[SIGNAL_ARGUMENT[name]] = UPPER | 9
    number = number_of(name, X86_64)
    assert verdict(ours, number, X86_64, *arguments) == NOTIFY


@pytest.mark.parametrize("arch", ARCHES)
def test_owners_of_descriptors_and_tracing_are_mediated(ours: Code, arch: int) -> None:
    names = ["fcntl", "fcntl64"] if arch == I386 else ["fcntl"]
    upper_halves = (0, UPPER) if arch == X86_64 else (0,)
    for upper in upper_halves:
        for name in names:
            for command in (F_SETOWN, F_SETSIG, F_SETOWN_EX):
                assert verdict(ours, number_of(name, arch), arch, 3, upper | command) == NOTIFY
            for command in (0, 1, 2, 3, 4, 9, 11, 1030):
                assert verdict(ours, number_of(name, arch), arch, 3, upper | command) == ALLOW
        for request in (FIOSETOWN, SIOCSPGRP):
            assert verdict(ours, number_of("ioctl", arch), arch, 3, upper | request) == NOTIFY
        for request in REFUSED_IOCTLS:
            assert verdict(ours, number_of("ioctl", arch), arch, 3, upper | request) == REFUSE
        assert verdict(ours, number_of("ioctl", arch), arch, 3, upper | 0x5401) == ALLOW
        assert verdict(ours, number_of("prctl", arch), arch, upper | PR_SET_MM) == REFUSE
        assert verdict(ours, number_of("prctl", arch), arch, upper | 38) == ALLOW
    for request in (PTRACE_KILL, PTRACE_ATTACH, PTRACE_SEIZE):
        assert verdict(ours, number_of("ptrace", arch), arch, request) == NOTIFY
    assert verdict(ours, number_of("ptrace", arch), arch, 0) == ALLOW


@pytest.mark.parametrize("arch", ARCHES)
def test_limits_that_are_set_for_another_process_are_mediated(ours: Code, arch: int) -> None:
    number = number_of("prlimit64", arch)
    upper_halves = (0, UPPER) if arch == X86_64 else (0,)
    for upper in upper_halves:
        assert verdict(ours, number, arch, upper | 123, 7, 0x7FFF_0000) == NOTIFY
        assert verdict(ours, number, arch, upper | 0, 7, 0x7FFF_0000) == ALLOW
    assert verdict(ours, number, arch, 123, 7, 0) == ALLOW
    if arch == X86_64:
        assert verdict(ours, number, arch, 123, 7, 1 << 32) == NOTIFY


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
    at_fork = mediation_filter(at_fork=True)
    numbers = {call.name: number for number, call in BY_NUMBER[arch].items() if call.at_fork}
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


def test_a_row_of_the_table_is_all_that_the_filter_needs() -> None:
    added = Call("setns", 308, 346, Family.SIGNAL, Always(), "joins a namespace")
    program = mediation_filter(table=(*TABLE, added))
    assert verdict(program, 308, X86_64) == verdict(program, 346, I386) == NOTIFY
    assert verdict(mediation_filter(), 308, X86_64) == ALLOW


def test_it_fits_the_kernel(ours: Code) -> None:
    assert len(encode(ours)) == 8 * len(ours) <= 8 * 4096
    everything = mediation_filter(frozenset(range(1, 65)), at_fork=True)
    assert len(everything) <= 4096
