"""Uses processor time or memory, in the way that its first argument names."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

MIB = 1 << 20
PR_SET_DUMPABLE = 4
libc = ctypes.CDLL(None)
kept: list[bytearray] = []


def burn(seconds: float = 1e9) -> None:
    while time.process_time() < seconds:
        sum(range(1000))


def child(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid


def wait() -> None:
    """Until somebody has said a line; who is asked to end does."""
    os.write(1, b"ready\n")
    os.read(0, 1)


def take(mib: int) -> None:
    for _ in range(mib):
        kept.append(bytearray(b"x") * MIB)


def orphans() -> None:
    """Reaped by the supervisor alone."""
    while True:
        os.waitpid(child(lambda: child(lambda: burn(0.004)) and None), 0)


def daemon() -> None:
    def detached() -> None:
        os.setsid()
        child(burn)

    os.waitpid(child(detached), 0)
    wait()


def bomb() -> None:
    os.write(1, b"ready\n")
    while True:
        try:
            os.fork()
        except OSError:
            burn()


def leaderless(mib: int) -> None:
    """The first thread ends, and another one has the memory."""

    def have() -> None:
        time.sleep(0.1)  # until there is none
        take(mib)
        signal.pause()

    threading.Thread(target=have).start()
    libc.syscall(60, 0)


def prefork(workers: int, mib: int) -> None:
    take(mib)

    def look() -> None:
        sum(len(block.rstrip(b"x")) for block in kept)  # each page is in its own tables as well
        signal.pause()

    pids = [child(look) for _ in range(workers)]
    wait()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def memory(mib: int) -> None:
    take(mib)
    wait()


def hidden(mib: int) -> None:
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    memory(mib)


def grows() -> None:
    """Whoever asks it to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        take(1)


def leaves(group: str, what: str) -> None:
    """For another control group, of those that are named."""
    for each in group.split(":"):
        with open(f"{each}/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
    burn() if what == "burn" else memory(int(what))


if __name__ == "__main__":
    way, *words = sys.argv[1:]
    globals()[way](*(int(word) if word.isdigit() and way != "leaves" else word for word in words))
