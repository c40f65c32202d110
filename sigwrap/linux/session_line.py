"""A line from outside to a session's supervisor, which no process inside can take away or speak on.

Each supervisor listens on an abstract address, which has no file. /proc/net/unix has the addresses,
and the kernel says which process called listen(2), and which connected. What stands in an address
is a hint: anybody can listen on one that looks like it.
"""

from __future__ import annotations

import errno
import os
import time

from sigwrap.bare import socket
from sigwrap.linux import proc_files
from sigwrap.linux.peer import pid_and_uid, pidfd_of
from sigwrap.tuples import NamedTuple

_PREFIX = "sigwrap-session"
_BACKLOG = 64  # who comes last waits for all of them
_MAX_BYTES = _READ_BYTES = 1 << 16
_LISTENS = b" 00010000 "  # its flags
_KIND = socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK


class Address(NamedTuple):
    text: str
    pid: int  # as it says itself
    front_pid: int


class Listener(NamedTuple):
    """Who called listen(2), by a connection to it."""

    end: socket.socket
    pid: int  # 0 where it is in a pid namespace that isn't below ours
    pidfd: int  # -1 then


class Busy(Exception):
    """It is to be tried again."""


def listen(front_pid: int) -> socket.socket | None:
    """None where there is none to be had: `sigwrap killswitch on` finds us in /proc then."""
    end = socket.socket(socket.AF_UNIX, _KIND)
    words = (_PREFIX, _uid_outside(), os.getpid(), front_pid, os.urandom(6).hex())
    try:
        end.bind("\0" + "/".join(map(str, words)))
        end.listen(_BACKLOG)
    except OSError:
        end.close()
        return None
    return end


class Addresses:
    """Of this user's sessions, in this network namespace; and what somebody has made look so, which
    may be so many that they are read bit by bit."""

    def __init__(self) -> None:
        self._wanted = f" @{_PREFIX}/{_uid_outside()}/".encode()
        self._known: set[str] = set()
        self._fd = -1
        self._rest = b""
        self.were_all_read = False

    def begin_anew(self) -> None:
        self._close()
        self.were_all_read = False

    def new_ones(self, until_s: float) -> list[Address]:
        """As far as it comes by then; from the start again once it is through."""
        try:
            if self._fd < 0:
                self._fd, self._rest = proc_files.open_file("/proc/net/unix"), b""
            return self._read_on(until_s)
        except OSError:
            return []

    def _read_on(self, until_s: float) -> list[Address]:
        found: list[Address] = []
        while time.monotonic() < until_s:
            data = os.read(self._fd, _READ_BYTES)
            if not data:
                self._close()
                self.were_all_read = True
                break
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                if self._wanted in line and _LISTENS in line:
                    text = line[line.index(b"@") + 1 :].decode("ascii", "replace")
                    address = None if text in self._known else _read(text)
                    self._known.add(text)
                    found += [] if address is None else [address]
        return found

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


def _uid_outside() -> int:
    """Ours, as those see it who are not in our user namespace, if we are in one."""
    uid = os.geteuid()
    for line in (proc_files.contents("/proc/self/uid_map") or b"").splitlines():
        inside, outside, count = map(int, line.split())
        if inside <= uid < inside + count:
            return outside + uid - inside
    return uid


def _read(text: str) -> Address | None:
    words = text.split("/")
    if len(words) != 5 or not all(word.isascii() and word.isdigit() for word in words[1:4]):
        return None
    if any(len(word) > 10 for word in words[1:4]):
        return None
    return Address(text, int(words[2]), int(words[3]))


def listener_of(address: Address) -> Listener | None:
    """None where nobody listens any more, or somebody who isn't this user's. Busy where that can't
    be told now."""
    try:
        end = socket.socket(socket.AF_UNIX, _KIND)
    except OSError as refusal:
        raise Busy from refusal
    try:
        end.connect(f"\0{address.text}")
        pid, uid = pid_and_uid(end)
        if uid != os.geteuid():
            end.close()
            return None
        pidfd = pidfd_of(end) if pid > 0 else -1
    except OSError as refusal:
        end.close()
        if refusal.errno in (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise Busy from refusal
        return None
    return Listener(end, max(pid, 0), pidfd)


def received(end: socket.socket) -> bytes | None:
    """None where nothing has been said so far."""
    try:
        return end.recv(_MAX_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""
