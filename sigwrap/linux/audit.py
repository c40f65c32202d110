"""The kernel's own records of what Landlock refused (Linux 6.15).

Root and CAP_AUDIT_READ may read them, and the kernel writes them only while the machine's audit
system is on, as auditd and systemd-journald turn it on.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from sigwrap.bare import re, socket
from sigwrap.linux import landlock
from sigwrap.policy.judge.request import Operation
from sigwrap.tuples import NamedTuple

_NETLINK_AUDIT = 9
_READERS = 1  # the multicast group
_HEAD = struct.Struct("=IHHII")
_SYSCALL, _END, _ACCESS, _DOMAIN = 1300, 1320, 1423, 1424
_MESSAGES_A_TURN = 64
_EVENTS_OPEN = 64  # whose end has not come yet
_SERIAL = re.compile(r"audit\([\d.]+:(\d+)\): ")
_FIELD = re.compile(r'(\w+)=(?:"([^"]*)"|(\S*))')
_HEXADECIMAL = frozenset("0123456789ABCDEF")
_OPERATIONS = {
    "fs.read_file": Operation.READ,
    "fs.write_file": Operation.WRITE,
    "fs.truncate": Operation.WRITE,
    "fs.execute": Operation.EXECUTE,
    "fs.refer": Operation.CREATE,
}


class Refused(NamedTuple):
    operation: Operation
    path: str  # to create and to delete: the folder
    domain: str
    pid: int = 0  # 0 where the kernel does not say
    comm: str = ""


def open_records() -> Records | None:
    """None where this process may not read them, or the kernel has none."""
    if landlock.abi() < landlock.ABI_WITH_RECORDS:
        return None
    line = None
    try:
        line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_AUDIT)
        line.bind((0, _READERS))
    except OSError:
        if line is not None:
            line.close()
        return None
    return Records(line)


class Records:
    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self.fileno = line.fileno
        self.creator = 0  # the pid of the process that entered the domain
        self._domain = ""
        self._open: dict[str, Refused] = {}  # by the number of the audit event

    def read(self) -> Iterator[Refused]:
        """Yield those that have come, of the domain of `creator`."""
        for _ in range(_MESSAGES_A_TURN):
            try:
                message, sender = self._line.recvfrom(16_384, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                continue  # some were lost: there were too many
            if sender[0] == 0 and len(message) > _HEAD.size:
                text = message[_HEAD.size :].rstrip(b"\0\n").decode("utf-8", "surrogateescape")
                refused = self._take(_HEAD.unpack_from(message)[1], text)
                if refused is not None and refused.domain == self._domain:
                    yield refused

    def _take(self, kind: int, text: str) -> Refused | None:
        found = _SERIAL.match(text)
        if found is None:
            return None
        serial = found[1]
        if kind == _END:
            return self._open.pop(serial, None)
        fields = dict(map(_field, _FIELD.finditer(text)))
        if kind == _DOMAIN and fields.get("pid") == str(self.creator):
            self._domain = fields.get("domain", "")
        elif kind == _ACCESS and (operation := _operation(fields.get("blockers", ""))):
            if len(self._open) >= _EVENTS_OPEN:
                del self._open[next(iter(self._open))]
            path, domain = fields.get("path", ""), fields.get("domain", "")
            self._open[serial] = Refused(operation, path, domain)
        elif kind == _SYSCALL and serial in self._open:
            pid, comm = int(fields.get("pid", "0")), fields.get("comm", "")
            self._open[serial] = self._open[serial]._replace(pid=pid, comm=comm)
        return None


def _field(found: re.Match[str]) -> tuple[str, str]:
    """The kernel writes text that holds quotes or spaces as hexadecimal digits."""
    name, quoted, plain = found.groups()
    if plain and name in ("path", "comm") and _HEXADECIMAL.issuperset(plain):
        return name, os.fsdecode(bytes.fromhex(plain))
    return name, quoted if quoted is not None else plain


def _operation(blockers: str) -> Operation | None:
    first = blockers.partition(",")[0]
    if first.startswith("fs.make_"):
        return Operation.CREATE
    return Operation.DELETE if first.startswith("fs.remove_") else _OPERATIONS.get(first)
