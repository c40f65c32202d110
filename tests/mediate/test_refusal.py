from __future__ import annotations

import errno

from sigwrap.calls import X86_64
from sigwrap.session.effects import Logged, UnknownCall, refuse_unknown
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
