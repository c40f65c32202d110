"""Compile the seccomp filter to classic BPF.

libseccomp would cost a sixth of the start-up budget, some machines lack it, and the exact width of
each comparison matters here. The kernel truncates a signal number, an fcntl command and an ioctl
request to 32 bits. So the filter compares only the low word: a caller that fills the upper half
must not get past it. tests/linux/test_bpf.py compares the verdicts with libseccomp's.
"""

from __future__ import annotations

import errno
import struct

from sigwrap.calls import (
    ARCHES,
    SOCK_TYPE_MASK,
    TABLE,
    X32_BIT,
    X86_64,
    Always,
    AnyOf,
    Both,
    Call,
    Condition,
    Never,
    NonZero,
    OfOtherSockets,
    OfSignal,
    OneOf,
    Refused,
    Under,
    WithBits,
    WithoutBits,
    number,
)

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
_FAIL_WITH = 0x00050000
REFUSE_ABI = _FAIL_WITH | errno.ENOSYS
REFUSE = _FAIL_WITH | errno.EPERM

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand

_LOAD_WORD = 0x20
_AND = 0x54
_JUMP = 0x05
_JUMP_EQUAL = 0x15
_JUMP_BITS = 0x45
_RETURN = 0x06

_NUMBER_OFFSET = 0
_ARCH_OFFSET = 4
_ARGUMENTS_OFFSET = 16

ALLOW_ALL: list[Instruction] = [(_RETURN, 0, 0, ALLOW)]

_NO_SYSCALL = 0xFFFFFFFF  # a tracer sets it to skip a call; it has the x32 bit


def mediation_filter(
    unlogged_signals: frozenset[int] = frozenset(),
    *,
    under: frozenset[Under] = frozenset(),
    questions: bool = False,
    table: tuple[Call, ...] = TABLE,
    arches: tuple[int, ...] = ARCHES,
) -> list[Instruction]:
    """Return the program. Processes may send `unlogged_signals` to any other without a
    notification. `under` adds the calls that the policy needs. `questions` hands signal 0 over too.
    """
    passed = tuple(sorted(unlogged_signals if questions else {0, *unlogged_signals}))
    calls = [call for call in table if call.under in {Under.EVERY_POLICY, *under}]
    program = [_load(_ARCH_OFFSET)]
    for arch in arches:
        body = _without_x32() if arch == X86_64 else []
        body += _by_number(calls, arch, passed)
        over = (_JUMP, 0, 0, len(body))  # further than a conditional jump reaches
        program += [(_JUMP_EQUAL, 1, 0, arch), over, *body]
    return [*program, _return(REFUSE_ABI)]


def encode(program: list[Instruction]) -> bytes:
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _without_x32() -> list[Instruction]:
    return [
        _load(_NUMBER_OFFSET),
        *_when_equal(_NO_SYSCALL, [_return(ALLOW)]),
        (_JUMP_BITS, 0, 1, X32_BIT),
        _return(NOTIFY),
    ]


def _by_number(calls: list[Call], arch: int, passed: tuple[int, ...]) -> list[Instruction]:
    program = [_load(_NUMBER_OFFSET)]
    for call in calls:
        found = number(call, arch)
        if found is not None:
            program += _when_equal(found, _verdict(call.handed_over, passed))
    return [*program, _return(ALLOW)]


def _verdict(condition: Condition, passed: tuple[int, ...]) -> list[Instruction]:
    match condition:
        case Always():
            return [_return(NOTIFY)]
        case Never(errno=error):
            return [_return(_FAIL_WITH | error)]
        case Refused(where=conditions, errno=error):
            fails = _FAIL_WITH | error
            program = [step for each in conditions for step in _where(each, fails)]
            return [*program, _return(ALLOW)]
        case OfOtherSockets(families=families, with_address=with_address):
            program = [_load_argument(0)]
            for family in families:
                program += _when_equal(family, [_return(ALLOW)])
            with_address_too = _by_type_and_protocol(condition)
            for family in with_address:
                program += _when_equal(family, with_address_too)
            return [*program, _return(NOTIFY)]
        case OfSignal(argument=position):
            program = [_load_argument(position)]
            for signal_number in passed:
                program += _when_equal(signal_number, [_return(ALLOW)])
            return [*program, _return(NOTIFY)]
        case OneOf(argument=position, values=values, refused=refused, narrowed=narrowed):
            program = [_load_argument(position)]
            for value in refused.values():
                program += _when_equal(value, [_return(REFUSE)])
            for value in values.values():
                program += _when_equal(value, [_return(NOTIFY)])
            for value, further in narrowed.values():
                program += _when_equal(value, [*_where(further, NOTIFY), _return(ALLOW)])
            return [*program, _return(ALLOW)]
        case AnyOf(conditions=conditions):
            program = [step for each in conditions for step in _where(each, NOTIFY)]
            return [*program, _return(ALLOW)]
        case _:
            return [*_where(condition, NOTIFY), _return(ALLOW)]


def _by_type_and_protocol(condition: OfOtherSockets) -> list[Instruction]:
    program = [_load_argument(1), (_AND, 0, 0, SOCK_TYPE_MASK)]
    has_protocol = [_load_argument(2)]
    for protocol in condition.protocols:
        has_protocol += _when_equal(protocol, [_return(ALLOW)])
    has_protocol.append(_return(NOTIFY))
    for kind in condition.types:
        program += _when_equal(kind, has_protocol)
    return [*program, _return(NOTIFY)]


def _where(condition: WithBits | WithoutBits | NonZero | Both, action: int) -> list[Instruction]:
    """Return steps that fall through if the condition does not hold."""
    match condition:
        case WithBits(argument=position, bits=bits):
            return [_load_argument(position), (_JUMP_BITS, 0, 1, bits), _return(action)]
        case WithoutBits(argument=position, bits=bits):
            return [_load_argument(position), (_JUMP_BITS, 1, 0, bits), _return(action)]
        case Both(first=(position, value), second=(further, values)):
            program = [_load_argument(further)]
            for each in values:
                program += _when_equal(each, [_return(action)])
            return [_load_argument(position), *_when_equal(value, program)]
        case NonZero(numbers=numbers, pointers=pointers):
            program = [_return(action)]
            for position in numbers:
                program = [_load_argument(position), *_unless_zero(program)]
            for position in pointers:
                high = [_load(_offset(position) + 4), *_unless_zero(program)]
                low = [_load_argument(position), (_JUMP_EQUAL, 0, 2, 0)]
                program = [*low, *high]
            return program


def _unless_zero(body: list[Instruction]) -> list[Instruction]:
    return [(_JUMP_EQUAL, len(body), 0, 0), *body]


def _when_equal(value: int, body: list[Instruction]) -> list[Instruction]:
    if len(body) > 255:
        raise ValueError("a conditional jump reaches 255 instructions")
    return [(_JUMP_EQUAL, 0, len(body), value), *body]


def _load_argument(position: int) -> Instruction:
    return _load(_offset(position))


def _offset(position: int) -> int:
    return _ARGUMENTS_OFFSET + 8 * position


def _load(offset: int) -> Instruction:
    return (_LOAD_WORD, 0, 0, offset)


def _return(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)
