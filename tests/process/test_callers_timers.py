"""A timer that the caller has set outlives its exec of sigwrap (`alarm 9; exec sigwrap …`), and its
signal is COMMAND's."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.support.harness import IS_BINARY, PYTHON, Sigwrap

pytestmark = pytest.mark.skipif(
    IS_BINARY, reason="PyInstaller's bootloader has the timer, and a blocked signal stays with it"
)

TIMERS = {
    signal.SIGALRM: signal.ITIMER_REAL,
    signal.SIGVTALRM: signal.ITIMER_VIRTUAL,
    signal.SIGPROF: signal.ITIMER_PROF,
}
UNBLOCKING = """
import signal, sys
signal.pthread_sigmask(signal.SIG_UNBLOCK, {int(sys.argv[1])})
while True:
    signal.pause()
"""
WAITS = (*PYTHON, "-c", UNBLOCKING)


def _runs_out(number: signal.Signals, timer: int) -> Callable[[], None]:
    """At once, or while sigwrap starts; blocked until COMMAND runs."""

    def set_timer() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        signal.setitimer(timer, 0.001)

    return set_timer


def test_command_gets_its_signal(as_user: Sigwrap, forward: str) -> None:
    for number, timer in TIMERS.items():
        done = as_user.run("--", *WAITS, str(int(number)), preexec_fn=_runs_out(number, timer))
        assert done.returncode == 128 + number
        (forwarded,) = as_user.sealed_events("interrupt_forwarded")
        payload = forwarded.payload
        assert (payload["signal_name"], payload["sender_place"]) == (number.name, "timer")
    preexec_fn = _runs_out(signal.SIGALRM, signal.ITIMER_REAL)
    line = (forward, "--", *WAITS, str(int(signal.SIGALRM)))
    assert as_user.native(*line, preexec_fn=preexec_fn).returncode == 128 + signal.SIGALRM
