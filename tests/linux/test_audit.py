"""What the kernel's audit records say of refused files, as the text of each that was seen."""

from __future__ import annotations

import errno
import struct
from typing import Any

from sigwrap.linux.audit import Records, Refused
from sigwrap.policy.judge.request import Operation

ACCESS, DOMAIN, SYSCALL, END = 1423, 1424, 1300, 1320
OURS, CREATOR = "1962d1ffc", 77


class Line:
    """A stand-in for the socket, with messages of our own."""

    def __init__(self, *messages: tuple[int, str], sender: int = 0) -> None:
        self._messages = [
            (struct.pack("=IHHII", 0, kind, 0, 0, 0) + text.encode() + b"\0", (sender, 1))
            for kind, text in messages
        ]
        self.fails_first = False

    def fileno(self) -> int:
        return 3

    def recvfrom(self, _size: int, _flags: int) -> tuple[bytes, tuple[int, int]]:
        if self.fails_first:
            self.fails_first = False
            raise OSError(errno.ENOBUFS, "lost")
        if not self._messages:
            raise BlockingIOError
        return self._messages.pop(0)


def event(number: int, access: str, *, domain: str = OURS, pid: int = 80) -> list[tuple[int, str]]:
    head = f"audit(1795958166.748:{number}): "
    return [
        (ACCESS, f'{head}domain={domain} {access} dev="vda" ino=1'),
        (
            SYSCALL,
            f'{head}arch=c000003e syscall=257 ppid=1 pid={pid} uid=0 comm="cat" exe="/bin/c"',
        ),
        (END, head),
    ]


ALLOCATED = (
    DOMAIN,
    f"audit(1.0:2): domain={OURS} status=allocated mode=enforcing pid={CREATOR} uid=0 "
    'exe="/usr/bin/python3" comm="sigwrap"',
)


def read(*messages: tuple[int, str], **options: Any) -> list[Refused]:
    line = Line(*messages, **options)
    records = Records(line)  # type: ignore[arg-type]
    records.creator = CREATOR
    return list(records.read())


def test_operations_and_paths() -> None:
    for access, operation, path in (
        ('blockers=fs.read_file path="/k"', Operation.READ, "/k"),
        ('blockers=fs.write_file,fs.truncate path="/k"', Operation.WRITE, "/k"),
        ('blockers=fs.make_reg path="/d"', Operation.CREATE, "/d"),
        ('blockers=fs.remove_file path="/d"', Operation.DELETE, "/d"),
        ('blockers=fs.execute path="/x"', Operation.EXECUTE, "/x"),
        (f"blockers=fs.read_file path={b'/a b'.hex().upper()}", Operation.READ, "/a b"),
    ):
        assert read(ALLOCATED, *event(3, access)) == [Refused(operation, path, OURS, 80, "cat")]


def test_only_of_this_sessions_domain_and_only_by_the_kernel() -> None:
    access = 'blockers=fs.read_file path="/k"'
    assert read(ALLOCATED, *event(3, access, domain="other")) == []
    assert read(*event(3, access)) == []
    assert read((ALLOCATED[0], ALLOCATED[1].replace("pid=77", "pid=78")), *event(3, access)) == []
    assert read(ALLOCATED, *event(3, access), sender=9) == []


def test_records_of_two_processes_at_once() -> None:
    access = 'blockers=fs.read_file path="/{}"'
    one, other = event(3, access.format(1), pid=81), event(4, access.format(2), pid=82)
    mixed = [each for pair in zip(one, other, strict=True) for each in pair]
    assert [(each.path, each.pid) for each in read(ALLOCATED, *mixed)] == [("/1", 81), ("/2", 82)]


def test_what_is_no_such_record_or_was_lost() -> None:
    odd = [
        (ACCESS, ""),
        (ACCESS, "audit(1:1): "),
        (END, "audit(1:9): "),
        (SYSCALL, "audit(1:2): x"),
    ]
    assert read(*odd, ALLOCATED, *event(3, 'blockers=net.bind_tcp path="/k"')) == []
    line = Line(ALLOCATED, *event(3, 'blockers=fs.read_file path="/k"'))
    line.fails_first = True
    records = Records(line)  # type: ignore[arg-type]
    records.creator = CREATOR
    assert len(list(records.read())) == 1
