"""PTRACE_TRACEME where the parent is the supervisor: as COMMAND, as an orphan, and ROUNDS times as
the parent ends and the supervisor takes its place: one that hits that moment is traced unasked, and
stops for a signal of its own."""

import os
import signal
import sys

from inside import has_i386, i386, named, native, spawn, tell

rounds = int(sys.argv[1])
reads, writes = os.pipe()


def asks():
    results = [native(101, 0, 0, 0, 0)]
    if has_i386():
        results.append(i386(26, 0, 0, 0, 0))
    return sorted({named(each) for each in results}, key=str)


def orphan(parent):
    while os.getppid() == parent:
        signal.sigtimedwait([], 0.01)
    os.write(writes, " ".join(asks()).encode())


def asks_at_once(gate):
    os.read(gate, 1)
    native(101, 0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGWINCH)  # a tracee stops for it, a free process ignores it
    os.write(writes, b"x")


def leaves_an_orphan():
    parent = os.getpid()
    spawn(lambda: orphan(parent))


def leaves_meanwhile():
    gate, opens = os.pipe()
    spawn(lambda: asks_at_once(gate))
    os.write(opens, b"x")


command = asks()
os.waitpid(spawn(leaves_an_orphan), 0)
told = [command, os.read(reads, 100).decode()]
for _ in range(rounds):
    os.waitpid(spawn(leaves_meanwhile), 0)
got = 0
while got < rounds:
    got += len(os.read(reads, 100))
tell([*told, got])
