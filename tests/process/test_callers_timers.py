"""A timer that the caller has set outlives its exec of sigwrap (`alarm 9; exec sigwrap …`), and its
signal is COMMAND's."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness import IS_BINARY, PYTHON, UNDER_TEST, Sigwrap

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


def _runs_out(number: signal.Signals) -> Callable[[], None]:
    """At once, or while sigwrap starts; blocked until COMMAND runs."""

    def set_timer() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        signal.setitimer(TIMERS[number], 0.001)

    return set_timer


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGALRM,
        pytest.param(signal.SIGVTALRM, marks=pytest.mark.tier("all")),
        pytest.param(signal.SIGPROF, marks=pytest.mark.tier("all")),
    ],
    ids=lambda number: str(number.name),
)
def test_command_gets_its_signal(as_user: Sigwrap, number: signal.Signals) -> None:
    command = [*PYTHON, "-c", UNBLOCKING, str(int(number))]
    assert as_user.run("--", *command, preexec_fn=_runs_out(number)).returncode == 128 + number
    (forwarded,) = as_user.sealed_events("interrupt_forwarded")
    payload = forwarded.payload
    assert (payload["signal_name"], payload["sender_place"]) == (number.name, "timer")
    why = as_user.run("why").stdout.decode()
    assert f"{number.name} from a timer that sigwrap's caller had set" in why


def test_so_does_the_one_of_sigwrap_forward(sigwrap: Sigwrap) -> None:
    forward = str(Path(UNDER_TEST).with_name("sigwrap-forward"))
    command = [*PYTHON, "-c", UNBLOCKING, str(int(signal.SIGALRM))]
    done = sigwrap.native(forward, "--", *command, preexec_fn=_runs_out(signal.SIGALRM))
    assert done.returncode == 128 + signal.SIGALRM
