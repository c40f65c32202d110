"""PTRACE_TRACEME where the parent is the supervisor: as COMMAND, and as an orphan."""

import os
import signal

from inside import has_i386, i386, named, native, spawn, tell


def asks():
    results = [native(101, 0, 0, 0, 0)]
    if has_i386():
        results.append(i386(26, 0, 0, 0, 0))
    return sorted({named(each) for each in results}, key=str)


command = asks()
reads, writes = os.pipe()


def orphan():
    while os.getppid() == parent:
        signal.sigtimedwait([], 0.01)
    os.write(writes, " ".join(asks()).encode())


def leaves():
    global parent
    parent = os.getpid()
    spawn(orphan)


os.waitpid(spawn(leaves), 0)
tell([command, os.read(reads, 100).decode()])
