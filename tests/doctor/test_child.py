"""A check ends within its time limit, and so do the processes that it started."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sigwrap.kernel import procfs

pytestmark = pytest.mark.tier("ci")

# In a process of its own: what a trial leaves behind is killed with all that is below.
_ENDS = """
import os, signal
from sigwrap.doctor.trials import NoResult, in_child
from sigwrap.errors import SessionError

def raises():
    raise SessionError("no", "way out")

def dies():
    os.kill(os.getpid(), signal.SIGKILL)

assert in_child(lambda: [("a", 1), ("b", None)], within_s=20) == [["a", 1], ["b", None]]
for trial in (raises, lambda: os.open("/no/such", 0), lambda: {}["key"], dies):
    try:
        print(in_child(trial, within_s=20))
    except NoResult as why:
        print(why)
"""
_HANGS = """
import os, signal
from sigwrap.doctor.trials import NoResult, in_child
from sigwrap.kernel.libc import set_child_subreaper

def hangs():
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        os.write(told, b"%d" % os.getpid())
    while True:
        signal.pause()

read, told = os.pipe()
set_child_subreaper()
try:
    in_child(hangs, within_s=5)
except NoResult as why:
    print(why)
os.close(told)
print(os.read(read, 100).decode())
"""

_IS_INTERRUPTED = """
import os, signal
from sigwrap.doctor import trials

def cleans_up():
    try:
        os.kill(os.getppid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
    finally:
        os.write(told, b"cleaned up")

read, told = os.pipe()
signal.signal(signal.SIGINT, trials._interrupt_once)
try:
    trials.in_child(cleans_up, within_s=600)
except KeyboardInterrupt:
    print(os.read(read, 100).decode())
"""


def _said(text: str) -> list[str]:
    line = [sys.executable, "-c", text]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


def test_what_it_returns_or_why_it_returns_nothing() -> None:
    assert _said(_ENDS) == [
        "no (way out)",
        "[Errno 2] No such file or directory: '/no/such'",
        "KeyError('key')",
        "the process that ran this check died",
    ]


def test_one_that_hangs_ends_with_all_that_it_started() -> None:
    why, pid = _said(_HANGS)
    assert why == "took too long"
    found = procfs.stat(int(pid))
    assert found is None or found.has_ended


def test_an_interrupt_ends_it_at_once_and_lets_it_clean_up() -> None:
    assert _said(_IS_INTERRUPTED) == ["cleaned up"]
