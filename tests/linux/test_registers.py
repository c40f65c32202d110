"""What becomes of a stopped thread's registers, on both machines: numbers in, numbers out.

aarch64's were tried on no machine. The order of things there is user_pt_regs of its asm/ptrace.h,
and do_signal of arch/arm64/kernel/signal.c."""

from __future__ import annotations

import errno
import struct

import pytest

from sigwrap.calls import AARCH64, I386, X86_64
from sigwrap.kernel.ptrace import ERESTARTNOINTR, ERESTARTSYS, X86, Aarch64, Registers

ALL_BITS = 0xFFFFFFFFFFFFFFFF
AFTER = 0x400104  # where the call that waits returns to
EXECVE = 221  # of aarch64


@pytest.fixture
def aarch64() -> Aarch64:
    return Aarch64()


def on_aarch64(**changed: int) -> Registers:
    """At a stop on the way out of execve(0x10, 0x11, 0x12), which is to be made again."""
    words = [0x10 + each for each in range(31)] + [0x7000, AFTER - 4, 0x80000000]
    words[8] = EXECVE
    return Aarch64().unpack(struct.pack("<34Qi", *words, -1)) | changed


def on_x86(**changed: int) -> Registers:
    found = X86().unpack(struct.pack("<27Q", *range(100, 127)))
    return found | {"rip": AFTER, "orig_rax": 59, "rax": -ERESTARTNOINTR & ALL_BITS} | changed


def test_they_are_packed_as_they_were_unpacked(aarch64: Aarch64) -> None:
    assert [size for _, size in X86().sets] == [27 * 8]
    data = struct.pack("<27Q", *range(27))
    assert X86().pack(X86().unpack(data)) == [data]
    assert [size for _, size in aarch64.sets] == [34 * 8, 4]
    data = struct.pack("<34Qi", *range(34), -1)
    assert aarch64.pack(aarch64.unpack(data)) == [data[:-4], data[-4:]]


def test_where_things_are(aarch64: Aarch64) -> None:
    found = on_aarch64()
    assert found["x30"] == 0x2E and found["sp"] == 0x7000 and found["pc"] == AFTER - 4
    assert found["pstate"] == 0x80000000 and found["kernel's number"] == -1
    assert found[aarch64.number] == EXECVE and found[aarch64.stack] == 0x7000
    layout, found = X86(), on_x86()
    assert (found["r15"], found["gs"]) == (100, 126)
    assert layout.is_narrow(found | {"cs": 0x23}) and not layout.is_narrow(found | {"cs": 0x33})


def test_an_error_has_all_bits(aarch64: Aarch64) -> None:
    for error in [1, errno.EINTR, 4095]:
        for layout, values in ((aarch64, on_aarch64()), (X86(), on_x86())):
            assert layout.error(values | {layout.result: -error & ALL_BITS}) == error
            assert layout.error(values | {layout.result: -error & 0xFFFFFFFF}) == 0
            assert layout.error(values | {layout.result: 5}) == 0


def test_whether_a_call_comes_again(aarch64: Aarch64) -> None:
    assert X86().comes_again(on_x86(), AFTER)
    assert X86().comes_again(on_x86(rax=-ERESTARTSYS), AFTER)
    assert not X86().comes_again(on_x86(rax=-errno.EPERM), AFTER)
    # There the kernel has gone back already; at the call's end it has not yet.
    assert aarch64.comes_again(on_aarch64(), AFTER)
    assert aarch64.comes_again(on_aarch64(pc=AFTER, x0=-ERESTARTNOINTR), AFTER)
    assert not aarch64.comes_again(on_aarch64(pc=AFTER, x0=-errno.EPERM), AFTER)


def changed(before: Registers, after: Registers) -> Registers:
    assert before.keys() == after.keys()
    return {name: value for name, value in after.items() if value != before[name]}


def test_another_call_is_made_instead_and_then_the_new_one(aarch64: Aarch64) -> None:
    """As a redirected exec goes: mmap, then an exec of what was written there."""
    stopped = on_aarch64()
    saved = aarch64.again(stopped)
    assert saved == stopped
    mapping = aarch64.another_again(stopped, AARCH64, 222, (0, 4096, 3, 0x22, -1, 0))
    assert changed(stopped, mapping) == {
        "x0": 0,
        "x1": 4096,
        "x2": 3,
        "x3": 0x22,
        "x4": -1,
        "x5": 0,
        "x8": 222,
    }
    assert aarch64.pack(mapping)[0][4 * 8 : 5 * 8] == b"\xff" * 8
    staged = aarch64.anew(saved, AARCH64, EXECVE, (0x9000, 0x9100, 0x9200))
    assert changed(stopped, staged) == {"x0": 0x9000, "x1": 0x9100, "x2": 0x9200}
    assert aarch64.anew(saved, AARCH64, EXECVE) == stopped  # put back: it asks again

    layout, stopped = X86(), on_x86(rax=-ERESTARTSYS & ALL_BITS)
    saved = layout.again(stopped)
    assert changed(stopped, saved) == {"rax": -ERESTARTNOINTR}
    mapping = layout.another_again(stopped, I386, 192, (0, 4096, 3, 0x22, -1, 0))
    assert changed(stopped, mapping) == {
        "rbx": 0,
        "rcx": 4096,
        "rdx": 3,
        "rsi": 0x22,
        "rdi": -1,
        "rbp": 0,
        "orig_rax": 192,
    }
    staged = layout.anew(saved, X86_64, 59, (0x9000, 0x9100, 0x9200))
    assert changed(stopped, staged) == {
        "rdi": 0x9000,
        "rsi": 0x9100,
        "rdx": 0x9200,
        "rax": 59,
        "orig_rax": -1,
        "rip": AFTER - 2,
    }


def test_a_call_that_fails_leaves_the_rest_as_it_was(aarch64: Aarch64) -> None:
    assert changed(on_x86(), X86().failed(on_x86(), errno.EACCES, AFTER)) == {
        "rax": -errno.EACCES,
        "orig_rax": -1,
    }
    for stopped in (on_aarch64(), on_aarch64(pc=AFTER, x0=ALL_BITS)):
        failed = aarch64.failed(stopped, errno.EACCES, AFTER)
        assert stopped | {"x0": -errno.EACCES, "pc": AFTER} == failed
