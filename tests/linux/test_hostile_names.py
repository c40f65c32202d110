"""What procfs tells stands between names that a process chose."""

from __future__ import annotations

import os

import pytest

from sigwrap.kernel import procfs
from sigwrap.kernel.file_state import read_mountinfo
from sigwrap.kernel.peer import filters_in
from sigwrap.start.own_files import mapped_in

FIELDS = b"S 7 8 9 0 -1 4194304 " + b"1 " * 10 + b"3 0 55 " + b"2 " * 29 + b"0\n"


@pytest.mark.parametrize(
    "name",
    [
        rb"m\040rw\040-\040ext4",
        b"m\frw\f-\fext4",
        b"m\x0brw\x0b-\x0bext4",
        b"m\rrw\r-\rext4",
        "m\u2028rw\u00a0-\u00a0ext4".encode(),
    ],
)
def test_mount_points(name: bytes) -> None:
    served = b"77 20 0:50 / /home/" + name + b" rw,nosuid - fuse test rw,user_id=0\n"
    shared = b"78 20 8:1 /" + name + b" / rw shared:1 master:2 - ext4 /dev/" + name + b" rw\n"
    assert read_mountinfo(served + shared) == [
        (77, b"0:50", b"/home/" + name, b"fuse"),
        (78, b"8:1", b"/", b"ext4"),
    ]


def test_fields_of_descriptors() -> None:
    assert procfs.descriptor_field("self", 0, b"mnt_id") is not None
    assert procfs.descriptor_field("self", 0, b"nothing") is None


def test_names_of_programs() -> None:
    for name in [b"a", b"a) R 1 1", b"((", b"a\n) Z", b"\f\r\x0b", b"\xff\xfe)"]:
        found = procfs.read_stat(b"42 (" + name + b") " + FIELDS)
        assert os.fsencode(found.comm) == name
        assert (found.pid, found.state, found.ppid, found.pgrp, found.session) == (42, "S", 7, 8, 9)
        assert (found.threads, found.start_time, found.exit_status) == (3, 55, 0), name


@pytest.mark.parametrize("name", [b"a\rSeccomp:\t0", b"\fState:\tX", rb"a\nSeccomp:\t0"])
def test_states(name: bytes) -> None:
    text = b"Name:\t" + name + b"\nState:\tS (sleeping)\nNoNewPrivs:\t1\nSeccomp:\t2\n"
    assert filters_in(text + b"Seccomp_filters:\t3\n") == 3
    assert filters_in(text) == 1  # before Linux 5.9


def test_names_of_mapped_files() -> None:
    line = b"7f00-8f00 r-xp 00000000 08:01 12                      /tmp/a\r b\f c\n"
    removed = line.replace(b"\n", b" (deleted)\n")
    nothing = b"9f00-af00 rw-p 00000000 00:00 0 \n"
    assert list(mapped_in(nothing + line + removed + nothing)) == ["/tmp/a\r b\f c"]
