"""Make calls on a duplicate of a caller's socket, in the caller's place.

connect can block, and other calls can wait for the socket's lock: workers of network/handler.py
make those. O_NONBLOCK and SO_SNDTIMEO belong to the caller's open file, so sigwrap does not rely on
them. Addresses are bytes in the kernel's format. OSError has the kernel's errno.

Descriptors in a message become duplicates of sigwrap's. Credentials in it must be the caller's own.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Sequence

from sigwrap.errors import KernelError
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import duplicate, let_go
from sigwrap.kernel.libc import libc, syscall
from sigwrap.kernel.memory import write_memory
from sigwrap.kernel.procfs import Rights
from sigwrap.kernel.seccomp import take_a_filter
from sigwrap.machine import NUMBERS
from sigwrap.network.request import Control, Kind

_SOL_SOCKET = 1
_SO_TYPE, _SO_PROTOCOL, _SO_DOMAIN = 3, 38, 39
_SO_PEERCRED = 17
_SO_SNDTIMEO = 21
_MSG_DONTWAIT, _MSG_NOSIGNAL = 0x40, 0x4000
_TIMEVAL = struct.Struct("qq")
_INT = struct.Struct("i")
_UCRED = struct.Struct("=iII")  # pid, uid, gid
_CONTROL = struct.Struct("Qii")
_HEADER = struct.Struct("QI4xQQQQi4x")
_PART = struct.Struct("QQ")

_connect, _sendmsg, _listen = libc.connect, libc.sendmsg, libc.listen
_getsockopt, _getsockname = libc.getsockopt, libc.getsockname

_SCM_RIGHTS, _SCM_CREDENTIALS = 1, 2
_MOST_DESCRIPTORS = 253  # SCM_MAX_FD
_MAY_NAME_OTHERS = 1 << 21  # CAP_SYS_ADMIN


def kind_of(fd: int) -> Kind:
    return Kind(_option(fd, _SO_DOMAIN), _option(fd, _SO_TYPE), _option(fd, _SO_PROTOCOL))


def own_address(fd: int) -> bytes:
    buffer = ctypes.create_string_buffer(128)
    size = ctypes.c_uint(128)
    _check(_getsockname(fd, buffer, ctypes.byref(size)))
    return buffer.raw[: size.value]


def listener(fd: int) -> tuple[int, int]:
    """Return the pid and user of the process that called listen(2) at a unix socket's other end.
    The pid is 0 in a namespace that is not below ours, and for a datagram socket."""
    pid, uid, _gid = _UCRED.unpack(_option_bytes(fd, _SO_PEERCRED, _UCRED.size))
    return pid, uid


def waits(fd: int) -> bool:
    """Return whether calls on the socket block by default."""
    return not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK


def waits_for_s(fd: int) -> float | None:
    """Return the limit of SO_SNDTIMEO, which also applies to connect; None: no limit."""
    seconds, microseconds = _TIMEVAL.unpack(_option_bytes(fd, _SO_SNDTIMEO, _TIMEVAL.size))
    return seconds + microseconds / 1e6 if seconds or microseconds else None


def connect(fd: int, address: bytes) -> None:
    """Connect as the caller would, blocking or not. EINPROGRESS and EALREADY: the kernel continues;
    EAGAIN: the other end has no room."""
    _check(_connect(fd, address, len(address)))


def make(family: int, kind: int, protocol: int) -> int:
    return _check(libc.socket(family, kind | os.O_CLOEXEC, protocol))


def listen(fd: int, backlog: int) -> None:
    _check(_listen(fd, backlog))


def listen_from_child(fd: int, backlog: int) -> None:
    """Call listen(2) on a unix socket in a child, which exits.

    The kernel tells each client which process called listen(2). If that were this process, a socket
    of the session would look like sigwrap's own. The child is under a filter, like processes in a
    session.
    """
    readable, writable = os.pipe()
    try:
        try:
            _listen_in_child(fd, backlog, writable)
        finally:
            os.close(writable)
        (error,) = _INT.unpack(os.read(readable, _INT.size) or _INT.pack(errno.EAGAIN))
    finally:
        os.close(readable)
    if error:
        raise OSError(error, os.strerror(error))


def _listen_in_child(fd: int, backlog: int, told: int) -> None:
    if os.fork() == 0:
        try:
            take_a_filter()
            failed = _listen(fd, backlog) != 0
            os.write(told, _INT.pack(ctypes.get_errno() if failed else 0))
        except KernelError as refusal:
            os.write(told, _INT.pack(refusal.errno))
        finally:
            os._exit(0)


def send(
    fd: int, data: bytes, flags: int, address: bytes | None, control: Sequence[Control]
) -> int:
    """Send a message, and return the number of bytes. EPIPE: the caller would get a signal."""
    name = ctypes.create_string_buffer(address, len(address)) if address is not None else None
    text = ctypes.create_string_buffer(data, len(data) or 1)
    part = ctypes.create_string_buffer(_PART.pack(ctypes.addressof(text), len(data)))
    packed = _packed(control)
    with_it = ctypes.create_string_buffer(packed, len(packed) or 1)
    header = _HEADER.pack(
        ctypes.addressof(name) if name is not None else 0,
        len(address or b""),
        ctypes.addressof(part),
        1,
        ctypes.addressof(with_it) if packed else 0,
        len(packed),
        0,
    )
    return _check(_sendmsg(fd, header, flags | _MSG_DONTWAIT | _MSG_NOSIGNAL))


def tell_count(tid: int, at: int, count: int) -> None:
    """Write the number of sent bytes into the caller's memory."""
    write_memory(tid, at, _INT.pack(count))


def _packed(control: Iterable[Control]) -> bytes:
    found = b""
    for level, kind, data in control:
        found += bytes(-len(found) % 8)
        found += _CONTROL.pack(_CONTROL.size + len(data), level, kind) + data
    return found


def _option(fd: int, name: int) -> int:
    (value,) = _INT.unpack(_option_bytes(fd, name, _INT.size))
    return int(value)


def _option_bytes(fd: int, name: int, size: int) -> bytes:
    buffer = ctypes.create_string_buffer(size)
    got = ctypes.c_uint(size)
    _check(_getsockopt(fd, _SOL_SOCKET, name, buffer, ctypes.byref(got)))
    return buffer.raw


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


# Messages


class Carried:
    """The control data of a caller's message, `ready` for a message from sigwrap."""

    __slots__ = ("_taken", "ready")

    def __init__(self, tid: int, pid: int, control: Sequence[Control]) -> None:
        """Convert the data. Raises OSError as the caller's call would fail."""
        self._taken: list[int] = []
        self.ready: list[Control] = []
        try:
            for level, kind, data in control:
                if (level, kind) == (_SOL_SOCKET, _SCM_RIGHTS):
                    data = self._duplicates(tid, data)
                elif (level, kind) == (_SOL_SOCKET, _SCM_CREDENTIALS):
                    data = _own(pid, data)
                self.ready.append(Control(level, kind, data))
        except BaseException:
            self.close()
            raise

    def _duplicates(self, tid: int, data: bytes) -> bytes:
        count = len(data) // 4
        if len(self._taken) + count > _MOST_DESCRIPTORS:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        for number in struct.unpack_from(f"={count}i", data):
            self._taken.append(duplicate(tid, number))
        return struct.pack(f"={count}i", *self._taken[len(self._taken) - count :])

    def close(self) -> None:
        while self._taken:
            let_go(self._taken.pop())


def _own(pid: int, data: bytes) -> bytes:
    """Return credentials that may be sent. A supervisor that runs as root could claim any, and
    another one only its own."""
    if len(data) != _UCRED.size:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    claimed, uid, gid = _UCRED.unpack(data)
    rights = procfs.rights(pid)
    numbers = procfs.numbers(pid, "NSpid")
    if rights is None or claimed not in numbers[-1:] or (uid, gid) != (rights.uid, rights.gid):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))
    ours = procfs.rights("thread-self")
    may_name_it = ours is not None and ours.capabilities & _MAY_NAME_OTHERS
    return _UCRED.pack(pid if may_name_it else os.getpid(), uid, gid)


# Give a thread a caller's rights for good, before it makes a call in the caller's place.

_SYS_SETGROUPS = NUMBERS["setgroups"]
_SYS_SETRESUID = NUMBERS["setresuid"]
_SYS_SETRESGID = NUMBERS["setresgid"]
_SYS_CAPSET = NUMBERS["capset"]
_SYS_PRCTL = NUMBERS["prctl"]
_PR_SET_KEEPCAPS = 8
_CAPABILITIES = struct.Struct("=6I")
_CAPSET_HEADER = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread


class OtherRights:
    """Finds threads whose rights differ from the supervisor's."""

    def __init__(self) -> None:
        self._own = procfs.rights("self") if os.geteuid() == 0 else None
        self._user_namespace = procfs.user_namespace("self")

    def of(self, tid: int) -> Rights | None:
        """Return the rights of a thread if they differ from ours and we could take them."""
        own = self._own
        found = procfs.rights(tid) if own is not None else None
        if own is None or found is None:
            return None
        kept = found.capabilities & own.capabilities
        if kept and procfs.user_namespace(tid) != self._user_namespace:
            kept = 0  # they are valid in their own namespace only
        found = found._replace(capabilities=kept)
        return None if found == own else found


def take_rights(rights: Rights) -> None:
    """Give these rights to the thread that calls it, for good. Raises KernelError."""
    uid, gid, groups, capabilities = rights
    packed = struct.pack(f"={len(groups)}I", *groups)
    syscall(
        "setgroups", _SYS_SETGROUPS, len(groups), ctypes.create_string_buffer(packed, len(packed))
    )
    syscall("setresgid", _SYS_SETRESGID, gid, gid, gid)
    # A user other than root can have capabilities too: ambient ones, or a file's.
    syscall("prctl", _SYS_PRCTL, _PR_SET_KEEPCAPS, 1, 0, 0, 0)
    syscall("setresuid", _SYS_SETRESUID, uid, uid, uid)
    low, high = capabilities & 0xFFFFFFFF, capabilities >> 32
    sets = _CAPABILITIES.pack(low, low, 0, high, high, 0)  # effective, permitted, inheritable
    data = ctypes.create_string_buffer(sets, len(sets))
    syscall("capset", _SYS_CAPSET, _CAPSET_HEADER, data)
