"""Requests that no mediator decides: refused, with an event."""

from __future__ import annotations

import errno

from sigwrap.calls import X32_BIT
from sigwrap.mediate.effects import Fail, Mediation, Record
from sigwrap.tuples import NamedTuple


class UnknownCall(NamedTuple):
    number: int
    arch: int
    arguments: tuple[int, ...]
    comm: str
    reason: str


def refuse_unknown(call: UnknownCall) -> Mediation:
    """An error in the filter, or a kernel that hands over what it was not told to."""
    payload = {
        "syscall_number": call.number,
        "arch": f"{call.arch:#x}",
        "arguments": [f"{argument:#x}" for argument in call.arguments],
        "comm": call.comm,
        "reason": call.reason,
    }
    yield Record("call_refused", payload)
    yield Fail(errno.EPERM)


def refuse_x32(number: int, comm: str) -> Mediation:
    yield Record("abi_refused", {"syscall_number": number & ~X32_BIT, "comm": comm})
    yield Fail(errno.ENOSYS)


def refuse_failed(error: str, comm: str) -> Mediation:
    """Its facts could not be gathered, for an error of sigwrap's own."""
    yield Record("mediation_failed", {"error": error, "comm": comm, "answered": False})
    yield Fail(errno.EPERM)


def refuse_switched_off(comm: str) -> Mediation:
    payload = {"comm": comm, "reason": "builtin:killswitch: the kill switch is on"}
    yield Record("call_refused", payload)
    yield Fail(errno.EPERM)
