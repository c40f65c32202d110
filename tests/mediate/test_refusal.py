from __future__ import annotations

import errno

from sigwrap.calls import X32_BIT, X86_64
from sigwrap.mediate.effects import Fail, Logged
from sigwrap.mediate.refusal import (
    UnknownCall,
    refuse_failed,
    refuse_switched_off,
    refuse_unknown,
    refuse_x32,
)
from tests.mediate.transcript import play

UNKNOWN = UnknownCall(
    number=308, arch=X86_64, arguments=(3, 577), comm="evil", reason="no mediator knows this call"
)


def test_an_unknown_call_is_refused_with_an_event() -> None:
    transcript = play(refuse_unknown(UNKNOWN)).records("call_refused")
    transcript.yields(Fail(errno.EPERM)).ends()
    assert transcript.payload == {
        "syscall_number": 308,
        "arch": "0xc000003e",
        "arguments": ["0x3", "0x241"],
        "comm": "evil",
        "reason": "no mediator knows this call",
    }


def test_an_unknown_call_is_refused_also_where_that_cannot_be_recorded() -> None:
    play(refuse_unknown(UNKNOWN)).records("call_refused", reply=Logged.FAILED).yields(
        Fail(errno.EPERM)
    ).ends()


def test_a_call_of_the_x32_abi_does_not_exist() -> None:
    play(refuse_x32(X32_BIT | 62, "evil")).records(
        "abi_refused", syscall_number=62, comm="evil"
    ).yields(Fail(errno.ENOSYS)).ends()


def test_a_request_whose_facts_are_an_error_is_refused() -> None:
    play(refuse_failed("RecursionError: deep", "evil")).records(
        "mediation_failed", error="RecursionError: deep", comm="evil", answered=False
    ).yields(Fail(errno.EPERM)).ends()


def test_any_request_is_refused_once_the_kill_switch_is_on() -> None:
    reason = "builtin:killswitch: the kill switch is on"
    play(refuse_switched_off("evil")).records("call_refused", comm="evil", reason=reason).yields(
        Fail(errno.EPERM)
    ).ends()
