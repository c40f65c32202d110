"""Which process listens at a local port. A supervised process could take the place of the expected
server there, and give its own answers.

Check after connecting and before sending anything: the process that listens then has the
connection, or it had it and no longer listens, which is an objection too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

from sigwrap.bare import NamedTuple, socket
from sigwrap.linux import proc_files
from sigwrap.linux.peer import is_supervised

_LISTENS = b"0A"  # TCP_LISTEN
_READ_BYTES = 1 << 16
_MOST_BYTES = 8 << 20  # of the table; its listeners come first


class _Listener(NamedTuple):
    uid: int
    inode: int


class ListenerCheck:
    def __init__(self) -> None:
        self._last_holder: tuple[int, int] | None = None  # a process and its descriptor

    def objection(self, address: str, port: int, deadline_s: float) -> str:
        """Return why an answer from there must not be trusted, or "". Raises TimeoutError if there
        are too many processes to look through by then."""
        found = _listeners(address, port)
        if not found:
            return "the listening process is gone"
        for listener in found:
            if objection := self._objection_to(listener, deadline_s):
                return objection
        return ""

    def _objection_to(self, listener: _Listener, deadline_s: float) -> str:
        """Processes of another user are not supervised by this one, and cannot be inspected."""
        if os.geteuid() not in (0, listener.uid):
            return ""
        if self._still_holds(listener):
            return ""
        has_supervised = False
        for pid in proc_files.all_pids():
            if time.monotonic() > deadline_s:
                raise TimeoutError
            try:
                fd = _descriptor_of(pid, listener.inode)
            except OSError:
                continue  # it ended, or cannot be inspected
            if fd is None:
                continue
            if not is_supervised(pid):
                self._last_holder = pid, fd
                return ""
            has_supervised = True
        if has_supervised:
            return "a supervised process listens there"
        return "cannot find the listening process"  # it may pass the socket on meanwhile

    def _still_holds(self, listener: _Listener) -> bool:
        if self._last_holder is None:
            return False
        pid, fd = self._last_holder
        return _socket_inode(pid, fd) == listener.inode and not is_supervised(pid)


def _listeners(address: str, port: int) -> list[_Listener]:
    """Return those that the kernel chooses from: of this address, or else of any address."""
    is_v6 = ":" in address
    exact = _shown(socket.AF_INET6 if is_v6 else socket.AF_INET, address)
    choices: list[tuple[str, bytes]] = [("tcp6", exact), ("tcp6", _shown(socket.AF_INET6, "::"))]
    if not is_v6:
        mapped = _shown(socket.AF_INET6, f"::ffff:{address}")
        choices = [
            ("tcp", exact),
            ("tcp6", mapped),
            ("tcp", _shown(socket.AF_INET, "0.0.0.0")),
            choices[1],
        ]
    listed = {table: list(_listed(table, port)) for table in {table for table, _ in choices}}
    for table, shown in choices:
        found = [listener for there, listener in listed[table] if there == shown]
        if found:
            return found
    return []


def _listed(table: str, port: int) -> Iterator[tuple[bytes, _Listener]]:
    end = b":%04X" % port
    for line in _lines(f"/proc/self/net/{table}"):
        fields = line.split()
        if len(fields) < 10 or not fields[0].endswith(b":"):
            continue  # the heading
        if fields[3] != _LISTENS:
            return
        if fields[1].endswith(end):
            yield fields[1].removesuffix(end), _Listener(int(fields[7]), int(fields[9]))


def _lines(path: str) -> Iterator[bytes]:
    """Read only as far as the caller iterates: there may be a million connections."""
    try:
        fd = proc_files.open_file(path)
    except OSError:
        return
    try:
        rest, total = b"", 0
        while total < _MOST_BYTES and (data := os.read(fd, _READ_BYTES)):
            total += len(data)
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
    finally:
        os.close(fd)


def _shown(family: int, address: str) -> bytes:
    """Format an address as the kernel does: words of 32 bits, each in the machine's order."""
    packed = socket.inet_pton(family, address)
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return b"".join(b"%08X" % int.from_bytes(word, sys.byteorder) for word in words)


def _descriptor_of(pid: int, inode: int) -> int | None:
    for name in proc_files.names(f"/proc/{pid}/fd"):
        if _socket_inode(pid, int(name)) == inode:
            return int(name)
    return None


def _socket_inode(pid: int, fd: int) -> int | None:
    try:
        kind, _, number = proc_files.link(f"/proc/{pid}/fd/{fd}").partition(":[")
    except OSError:
        return None
    return int(number[:-1]) if kind == "socket" else None
