"""Refuses requests that no mediator decides, with an event."""

from __future__ import annotations

import errno

from sigwrap.bare import NamedTuple
from sigwrap.calls import X32_BIT
from sigwrap.mediate.effects import Fail, Record, Steps


class UnknownCall(NamedTuple):
    number: int
    arch: int
    arguments: tuple[int, ...]
    comm: str
    reason: str


def refuse_unknown(call: UnknownCall) -> Steps:
    """Refuse a call that the filter should not hand over: an error in the filter or the kernel."""
    payload = {
        "syscall_number": call.number,
        "arch": f"{call.arch:#x}",
        "arguments": [f"{argument:#x}" for argument in call.arguments],
        "comm": call.comm,
        "reason": call.reason,
    }
    yield Record("call_refused", payload)
    yield Fail(errno.EPERM)


def refuse_x32(number: int, comm: str) -> Steps:
    yield Record("abi_refused", {"syscall_number": number & ~X32_BIT, "comm": comm})
    yield Fail(errno.ENOSYS)


def refuse_failed(error: str, comm: str) -> Steps:
    """Refuse a request after an internal error of sigwrap."""
    yield Record("mediation_failed", {"error": error, "comm": comm, "answered": False})
    yield Fail(errno.EPERM)


def refuse_switched_off(comm: str) -> Steps:
    payload = {"comm": comm, "reason": "builtin:killswitch: the kill switch is on"}
    yield Record("call_refused", payload)
    yield Fail(errno.EPERM)
