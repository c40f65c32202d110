from __future__ import annotations

import ctypes
import errno
import os
import struct
from fcntl import ioctl

from sigwrap.bare import NamedTuple
from sigwrap.calls import Under
from sigwrap.errors import DOCTOR, KernelError, NoInterception
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.bpf import ALLOW_ALL, encode, mediation_filter
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


def install_listener(
    unlogged_signals: frozenset[int] = frozenset(),
    *,
    under: frozenset[Under] = frozenset(),
    questions: bool = False,
) -> tuple[int, bool]:
    """Put the calling thread and all its future children under the filter.

    Return the listener's fd, and whether a received call waits through signals.
    """
    set_no_new_privileges()
    code = encode(mediation_filter(unlogged_signals, under=under, questions=questions))
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


_PR_GET_SECCOMP = 21
_FILTER = 2
_YES = 1


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
            install_listener()
        except KernelError as refusal:
            answer = _YES if refusal.errno == errno.EBUSY else 0
        finally:
            os._exit(answer)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == _YES
