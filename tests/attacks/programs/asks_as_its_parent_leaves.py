"""PTRACE_TRACEME just as the parent ends and the supervisor takes its place: who hits it is traced
by the supervisor, unasked, and stops for a signal of its own."""

import os
import signal
import sys

from inside import native, spawn, tell

rounds = int(sys.argv[1])
reads, writes = os.pipe()


def asks(gate):
    os.read(gate, 1)
    native(101, 0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGWINCH)  # a tracee stops for it, a free process ignores it
    os.write(writes, b"x")


def leaves():
    gate, opens = os.pipe()
    spawn(lambda: asks(gate))
    os.write(opens, b"x")


for _ in range(rounds):
    os.waitpid(spawn(leaves), 0)
got = 0
while got < rounds:
    got += len(os.read(reads, 100))
tell(got)
