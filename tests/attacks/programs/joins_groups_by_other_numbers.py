"""Process groups by the numbers of a pid namespace, where each is another group outside of it."""

import os
import signal

from inside import has_i386, i386, libc, named, native, spawn, tell

CLONE_NEWUSER_AND_NEWPID = 0x30000000


def joins(pid, group):
    results = [native(109, pid, group)]
    if has_i386():
        results.append(i386(57, pid, group))
    return sorted({named(each) for each in results}, key=str)


def as_number_one():
    child, other = spawn(signal.pause), spawn(signal.pause)
    told = [
        joins(child, child),
        joins(other, child),
        joins(0, child),
        joins(0, os.getpid()),
        joins(0, 99_999),
    ]
    for pid in (child, other):
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    tell(told)


def in_namespaces_of_its_own():
    if libc.unshare(CLONE_NEWUSER_AND_NEWPID) != 0:
        tell("no namespaces of one's own here")
    else:
        os.waitpid(spawn(as_number_one), 0)


os.waitpid(spawn(in_namespaces_of_its_own), 0)
