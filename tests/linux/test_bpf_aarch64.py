"""The filter of aarch64, built here and run by the interpreter: what it says of a call is what the
filter of x86_64 (test_bpf.py) says of the call of the same name."""

from __future__ import annotations

import itertools

import pytest

from sigwrap.calls import (
    AARCH64,
    CLONE_NEWPID,
    CLONE_THREAD,
    F_SETOWN,
    I386,
    MSG_FASTOPEN,
    O_ASYNC,
    O_CREAT,
    O_TMPFILE,
    OF_AARCH64,
    PR_SET_MM,
    TABLE,
    TIOCSCTTY,
    TIOCSPGRP,
    TIOCSTI,
    X86_64,
    Under,
)
from sigwrap.kernel.seccomp import ALLOW, NOTIFY, REFUSE_ABI, encode, mediation_filter
from tests.support.filters import Code, verdict

EVERYTHING = frozenset(Under)
ARM = 0x40000028  # AUDIT_ARCH_ARM, of 32-bit programs
INTERESTING = (
    *range(11),
    *(15, 17, 28, 41, F_SETOWN, PR_SET_MM, 0x4206, 0x80000000, 0xFFFFFFFF, 1 << 32),
    *(TIOCSPGRP, TIOCSCTTY, TIOCSTI, O_ASYNC, O_CREAT, O_TMPFILE),
    *(CLONE_THREAD, CLONE_NEWPID, MSG_FASTOPEN),
)
NAMES = {call.name: (call.x86_64, call.aarch64) for call in TABLE if call.aarch64 is not None}


@pytest.fixture(scope="module")
def theirs() -> Code:
    return mediation_filter(under=EVERYTHING, arches=OF_AARCH64)


def test_a_call_is_treated_as_the_one_of_its_name_on_x86_64(theirs: Code) -> None:
    ours = mediation_filter(under=EVERYTHING)
    seen = set()
    for first, second in itertools.product(INTERESTING, repeat=2):
        arguments = (first, second, first, second, first)
        for name, (x86_64, aarch64) in NAMES.items():
            assert x86_64 is not None and aarch64 is not None
            found = verdict(theirs, aarch64, AARCH64, *arguments)
            assert found == verdict(ours, x86_64, X86_64, *arguments), (name, arguments)
            seen.add(found)
    assert {ALLOW, NOTIFY} < seen


def test_no_other_call_is_touched(theirs: Code) -> None:
    numbers = {aarch64 for _, aarch64 in NAMES.values()}
    for number in {-1, *range(500)} - numbers:  # -1: a tracer skips a call
        assert verdict(theirs, number, AARCH64, 1, 0o101) == ALLOW
    bare = mediation_filter(arches=OF_AARCH64)
    for name in ("connect", "openat", "clone", "clone3"):
        aarch64 = NAMES[name][1]
        assert aarch64 is not None
        assert verdict(bare, aarch64, AARCH64, 0, 1, 0o101) == ALLOW


@pytest.mark.parametrize("arch", [ARM, X86_64, I386])
def test_a_program_of_another_machine_gets_no_call(theirs: Code, arch: int) -> None:
    assert all(verdict(theirs, number, arch) == REFUSE_ABI for number in range(500))


def test_it_is_alone_in_its_filter_and_fits_the_kernel(theirs: Code) -> None:
    assert len(encode(theirs)) < len(encode(mediation_filter(under=EVERYTHING))) <= 8 * 4096
    assert all(verdict(mediation_filter(), each, AARCH64) == REFUSE_ABI for each in range(500))
