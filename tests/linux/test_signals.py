"""Who waits for a signal is told from who only blocks it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sigwrap.kernel.signals import handles, outlives
from tests.support.harness import PYTHON
from tests.support.waiting import await_state, await_that

HUP, TERM = 1, 15
BLOCK = "import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, {1}); "
SAY = "os.write(1, b'ready'); "
READ = "import ctypes; mask = (ctypes.c_ulong * 16)(1); ctypes.CDLL(None).signalfd(-1, mask, 0); "
THREAD = (
    "import threading; threading.Thread(target=lambda: signal.sigwait({1}), daemon=True).start(); "
)


@contextmanager
def _running(text: str) -> Iterator[int]:
    with subprocess.Popen([*PYTHON, "-c", text], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(5)
        await_state(process.pid, "S")
        yield process.pid
        process.kill()


@pytest.mark.parametrize(
    "text",
    [
        BLOCK + SAY + "signal.sigwait({1})",
        BLOCK + READ + SAY + "signal.pause()",
        "import os, signal; signal.signal(1, lambda *_: None); " + SAY + "signal.pause()",
        "import os, signal; signal.signal(1, signal.SIG_IGN); " + SAY + "signal.pause()",
    ],
)
def test_it_outlives_what_it_waits_for_catches_or_ignores(text: str) -> None:
    with _running(text) as pid:
        assert outlives(pid, HUP)


def test_another_thread_may_wait_for_it() -> None:
    with _running(BLOCK + THREAD + SAY + "signal.pause()") as pid:
        await_that(lambda: outlives(pid, HUP))


@pytest.mark.parametrize("block", [BLOCK, "import os, signal; "])
def test_it_dies_later_of_what_it_only_blocks(block: str) -> None:
    with _running(block + SAY + "signal.pause()") as pid:
        assert not outlives(pid, HUP)
        assert not outlives(pid, TERM)
        assert handles(pid, HUP) is (block == BLOCK)


def test_nobody_outlives_anything_who_is_not_there() -> None:
    assert not outlives(0, HUP)
    assert not handles(0, HUP)
