"""Compile the seccomp filter, install it, and answer its notifications.

The filter is compiled here, because libseccomp would cost a sixth of the start-up budget, some
machines lack it, and the exact width of each comparison matters. The kernel truncates a signal
number, an fcntl command and an ioctl request to 32 bits. So the filter compares only the low word:
a caller that fills the upper half must not get past it. tests/linux/test_bpf.py compares the
verdicts with libseccomp's.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from fcntl import ioctl

from sigwrap.bare import NamedTuple
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
from sigwrap.errors import DOCTOR, KernelError, NoInterception
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.libc import libc, set_no_new_privileges, syscall
from sigwrap.machine import IS_AARCH64, IS_X86_64, NUMBERS, PLATFORM

_SYS_SECCOMP = NUMBERS["seccomp"]
_SET_MODE_FILTER = 1
_NEW_LISTENER = 8
_WAIT_KILLABLE_RECV = 32  # Linux 5.19: a signal to the waiting thread no longer aborts its call

_RECV = 0xC0502100
_SEND = 0xC0182101
_ID_VALID = 0x40082102
_ADD_DESCRIPTOR = 0x40182103  # Linux 5.9
_SET_FLAGS = 0x40082104
_SYNC_WAKE_UP = 1  # Linux 6.6: answers arrive several times faster

_FLAG_CONTINUE = 1
_AT_THIS_NUMBER = 1
_AND_ANSWER = 2  # Linux 5.14

UNTRIED_VARIABLE = "SIGWRAP_UNTRIED"

_WITHOUT_INTERCEPTION = "--best-effort runs the command without interception"
NEEDS = (
    "sigwrap needs Linux 5.6 or later and, in a container, a profile that permits seccomp(2) and "
    f"openat2(2); {_WITHOUT_INTERCEPTION}; {DOCTOR}"
)

_NOTIFICATION = struct.Struct("<QIIiIQ6Q")
_RESPONSE = struct.Struct("<QqiI")
_DESCRIPTOR = struct.Struct("<QIIII")
_NO_DESCRIPTOR = 0xFFFFFFFF

_PR_GET_SECCOMP = 21
_FILTER = 2
_YES = 1

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


class Notification(NamedTuple):
    """A call that waits for an answer. Its arguments are registers, which no process can change."""

    id: int
    tid: int
    flags: int
    number: int
    arch: int
    instruction_pointer: int
    argument0: int
    argument1: int
    argument2: int
    argument3: int
    argument4: int
    argument5: int


def int32(register: int) -> int:
    """Return the value that the kernel uses for a register of type int."""
    low = register & 0xFFFFFFFF
    return low - (1 << 32) if low & 0x80000000 else low


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
        body = [_load(_NUMBER_OFFSET)]
        if arch == X86_64:  # x32 calls have its number, and a bit
            body += _when_equal(_NO_SYSCALL, [_return(ALLOW)])
            body += [(_JUMP_BITS, 0, 1, X32_BIT), _return(NOTIFY)]
        for call in calls:
            found = number(call, arch)
            if found is not None:
                body += _when_equal(found, _verdict(call.handed_over, passed))
        body.append(_return(ALLOW))
        over = (_JUMP, 0, 0, len(body))  # further than a conditional jump reaches
        program += [(_JUMP_EQUAL, 1, 0, arch), over, *body]
    return [*program, _return(REFUSE_ABI)]


def encode(program: list[Instruction]) -> bytes:
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


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


def demand_known_calls() -> None:
    if IS_X86_64 or (IS_AARCH64 and os.environ.get(UNTRIED_VARIABLE) == "1"):
        return
    if IS_AARCH64:
        raise NoInterception(
            f"{PLATFORM} is tested only in an emulator",
            errno.ENOSYS,
            f"{UNTRIED_VARIABLE}=1 runs it anyway; {_WITHOUT_INTERCEPTION}",
        )
    raise NoInterception(
        f"only x86_64 and aarch64 are supported, and this machine is {PLATFORM}",
        errno.ENOSYS,
        _WITHOUT_INTERCEPTION,
    )


def install_listener(code: bytes) -> tuple[int, bool]:
    """Put the calling thread and all its future children under the encoded filter.

    Return the listener's fd, and whether a received call waits through signals.
    """
    set_no_new_privileges()
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE_RECV, _NEW_LISTENER):
        try:
            return _installed(code, flags), bool(flags & _WAIT_KILLABLE_RECV)
        except KernelError as refusal:
            if refusal.errno != errno.EINVAL:
                raise _no_listener(refusal) from refusal
            last = refusal
    raise _no_listener(last) from last


def take_a_filter() -> None:
    """Add a filter that allows everything, so that this process has one more than its parent."""
    set_no_new_privileges()
    _installed(encode(ALLOW_ALL), 0)


def _installed(code: bytes, flags: int) -> int:
    program = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(program))
    return syscall("seccomp", _SYS_SECCOMP, _SET_MODE_FILTER, flags, header)


def _no_listener(refusal: KernelError) -> NoInterception:
    if refusal.errno == errno.EBUSY:
        return NoInterception(
            "another supervisor already listens to this process tree; the kernel allows only one",
            errno.EBUSY,
            "--nested join runs the command in the outer session",
        )
    return NoInterception(
        f"the kernel refused the seccomp listener: {os.strerror(refusal.errno)}",
        refusal.errno,
        NEEDS,
    )


class ListenerBroken(KernelError):
    """The listener cannot answer requests any more, so the run ends."""


def _broken(refusal: OSError) -> ListenerBroken:
    return ListenerBroken(f"the seccomp listener failed: {refusal.strerror}", refusal.errno or 0)


def read_notification(data: bytes | bytearray) -> Notification:
    return Notification._make(_NOTIFICATION.unpack(data))


class Listener:
    """The listener's requests, for one thread only. `receive` blocks, so poll the fd first."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._received = bytearray(_NOTIFICATION.size)
        self._zero = bytes(_NOTIFICATION.size)
        self._response = bytearray(_RESPONSE.size)
        self._id = bytearray(8)
        self.wakes_at_once = True
        try:
            ioctl(fd, _SET_FLAGS, _SYNC_WAKE_UP)
        except OSError as refusal:
            if refusal.errno not in (errno.EINVAL, errno.ENOTTY):
                raise _broken(refusal) from refusal
            self.wakes_at_once = False

    def receive(self) -> Notification | None:
        """Return the next request; None if the caller died since the poll."""
        self._received[:] = self._zero
        try:
            ioctl(self.fd, _RECV, self._received, True)
        except OSError as refusal:
            if refusal.errno in (errno.ENOENT, errno.EINTR):
                return None
            raise _broken(refusal) from refusal
        return read_notification(self._received)

    @property
    def received(self) -> bytes:
        """The last request, as the kernel wrote it."""
        return bytes(self._received)

    def is_waiting(self, notification_id: int) -> bool:
        """Return False once the caller is gone, and its pid may belong to another process."""
        if self.fd < 0:
            return False
        struct.pack_into("<Q", self._id, 0, notification_id)
        try:
            ioctl(self.fd, _ID_VALID, self._id, True)
        except OSError as refusal:
            if refusal.errno == errno.ENOENT:
                return False
            raise _broken(refusal) from refusal
        return True

    def resume(self, notification_id: int) -> bool:
        return self._answer(notification_id, 0, 0, _FLAG_CONTINUE)

    def fail(self, notification_id: int, error: int) -> bool:
        return self._answer(notification_id, 0, -error, 0)

    def succeed(self, notification_id: int, value: int) -> bool:
        return self._answer(notification_id, value, 0, 0)

    def put_descriptor(self, notification_id: int, ours: int, number: int) -> None:
        """Duplicate `ours` as the caller's `number`, in place of its descriptor. Raises OSError if
        that fails, also because the caller has gone."""
        request = _DESCRIPTOR.pack(notification_id, _AT_THIS_NUMBER, ours, number, 0)
        ioctl(self.fd, _ADD_DESCRIPTOR, request)

    def add_descriptor(self, notification_id: int, ours: int) -> int:
        """Duplicate `ours` for the caller, close-on-exec; return its number. Raises OSError if the
        caller has no room, or has gone."""
        request = bytearray(_DESCRIPTOR.pack(notification_id, 0, ours, 0, os.O_CLOEXEC))
        number: int = ioctl(self.fd, _ADD_DESCRIPTOR, request, True)
        return number

    def can_put_descriptors(self) -> bool:
        """Return whether the kernel knows the request (Linux 5.9), by an invalid descriptor."""
        try:
            ioctl(self.fd, _ADD_DESCRIPTOR, _DESCRIPTOR.pack(0, 0, _NO_DESCRIPTOR, 0, 0))
        except OSError as refusal:
            return refusal.errno == errno.EBADF
        return True

    def answer_with_descriptor(
        self, notification_id: int, ours: int, *, closes_on_exec: bool = True
    ) -> None:
        """Answer with a duplicate of `ours`, whose number the call returns. Raises OSError if that
        fails, also because the caller has gone."""
        flags = os.O_CLOEXEC if closes_on_exec else 0
        request = _DESCRIPTOR.pack(notification_id, _AND_ANSWER, ours, 0, flags)
        ioctl(self.fd, _ADD_DESCRIPTOR, request)

    def _answer(self, notification_id: int, value: int, error: int, flags: int) -> bool:
        """Return False if the caller does not wait any more."""
        if self.fd < 0:
            return False
        _RESPONSE.pack_into(self._response, 0, notification_id, value, error, flags)
        try:
            ioctl(self.fd, _SEND, self._response, True)
        except OSError as refusal:
            if refusal.errno == errno.ENOENT:
                return False
            raise _broken(refusal) from refusal
        return True

    def close(self) -> None:
        """Close the listener. After that, no caller waits."""
        os.close(self.fd)
        self.fd = -1


def has_listener() -> bool:
    """Return whether a supervisor already handles this process's calls: the kernel allows only one.

    A child tries to install a listener, which ends with it.
    """
    if int(libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0)) != _FILTER:
        return False
    pid = linux_process.fork()
    if pid == 0:
        answer = 0
        try:
            install_listener(encode(mediation_filter()))
        except KernelError as refusal:
            answer = _YES if refusal.errno == errno.EBUSY else 0
        finally:
            os._exit(answer)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == _YES
