"""The machine's audit system, on for as long as a test needs it."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator

import pytest

_NETLINK_AUDIT, _GET, _SET = 9, 1000, 1001
_REQUEST, _ACK = 1, 4
_ENABLED = 1  # of the mask
_HEAD = struct.Struct("=IHHII")


@contextlib.contextmanager
def audit_on() -> Iterator[None]:
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_AUDIT) as line:
            line.settimeout(5)
            was_on = _status(line)
            _ask(line, _SET, struct.pack("=11I", _ENABLED, 1, *[0] * 9))
    except OSError as refusal:
        pytest.skip(f"needs the audit system: {refusal}")
    try:
        yield
    finally:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_AUDIT) as line:
            line.settimeout(5)
            _ask(line, _SET, struct.pack("=11I", _ENABLED, was_on, *[0] * 9))


def _status(line: socket.socket) -> int:
    told = _ask(line, _GET, b"")
    if _HEAD.unpack_from(told)[1] != _GET:  # the acknowledgement came first
        told = line.recv(9000)
    return int(struct.unpack_from("=II", told, _HEAD.size)[1])


def _ask(line: socket.socket, kind: int, payload: bytes) -> bytes:
    line.send(_HEAD.pack(_HEAD.size + len(payload), kind, _REQUEST | _ACK, 1, 0) + payload)
    told = line.recv(9000)
    if _HEAD.unpack_from(told)[1] == 2:
        (error,) = struct.unpack_from("=i", told, _HEAD.size)
        if error:
            raise OSError(-error, "the kernel refused it")
    return told
