from __future__ import annotations

import errno

from sigwrap.calls import X32_BIT, X86_64
from sigwrap.session.effects import (
    Logged,
    UnknownCall,
    refuse_failed,
    refuse_switched_off,
    refuse_unknown,
    refuse_x32,
)
from tests.mediate.transcript import play

UNKNOWN = UnknownCall(
    number=308,
    arch=X86_64,
    arguments=(3, 577),
    comm="evil",
    reason="sigwrap does not handle this call",
)


def test_an_unknown_call_is_refused_with_an_event() -> None:
    transcript = play(refuse_unknown(UNKNOWN)).records("call_refused")
    transcript.fails(errno.EPERM)
    assert transcript.payload == {
        "syscall_number": 308,
        "arch": "0xc000003e",
        "arguments": ["0x3", "0x241"],
        "comm": "evil",
        "reason": "sigwrap does not handle this call",
    }
    play(refuse_unknown(UNKNOWN)).records("call_refused", reply=Logged.FAILED).fails(errno.EPERM)


def test_any_other_request_that_cannot_be_decided_is_refused() -> None:
    play(refuse_x32(X32_BIT | 62, "evil")).records(
        "abi_refused", syscall_number=62, comm="evil"
    ).fails(errno.ENOSYS)
    play(refuse_failed("RecursionError: deep", "evil")).records(
        "mediation_failed", error="RecursionError: deep", comm="evil", answered=False
    ).fails(errno.EPERM)
    reason = "builtin:killswitch: the kill switch is on"
    play(refuse_switched_off("evil")).records("call_refused", comm="evil", reason=reason).fails(
        errno.EPERM
    )
