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
    FIOASYNC,
    FIOSETOWN,
    I386,
    O_ASYNC,
    PR_SET_MM,
    SIOCSPGRP,
    TABLE,
    TIOCSCTTY,
    TIOCSPGRP,
    Always,
    AnyOf,
    Both,
    Condition,
    Never,
    NonZero,
    OneOf,
    Refused,
    Under,
    WithBits,
    WithoutBits,
    number_of,
)
from sigwrap.kernel.seccomp import mediation_filter
from sigwrap.machine import IS_X86_64
from tests.support.filters import ARCHES, SIGNAL_ARGUMENT, Code, verdict

pytestmark = [
    pytest.mark.skipif(not IS_X86_64, reason="about x86_64's filter"),
    pytest.mark.tier("ci"),
]

REFUSED_IOCTLS = next(
    tuple(call.handed_over.refused.values())
    for call in TABLE
    if call.name == "ioctl" and isinstance(call.handed_over, OneOf)
)


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


def test_it_agrees_with_libseccomp(libseccomps: Code) -> None:
    """Every call number of both ABIs, with arguments on and beside each value that matters."""
    ours = mediation_filter()
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
