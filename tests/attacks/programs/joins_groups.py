"""Joins process groups, and gives them the terminal: the outside's, sigwrap's, and its own."""

import json
import os
import signal
import struct
import sys

from inside import has_i386, i386, libc, low, named, native, spawn

SETPGID, SETPGID_I386, TIOCSPGRP = 109, 57, 0x5410
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
CLONE_NEWUSER_AND_NEWPID = 0x30000000
reads, writes = os.pipe()
outside = os.getsid(0)  # whoever made the terminal's session: a shell, mostly
ours = os.getpgrp()


def joins(pid, group):
    results = [native(SETPGID, pid, group), native(SETPGID, pid | 7 << 32, group | 7 << 32)]
    if has_i386():
        results.append(i386(SETPGID_I386, pid, group))
    return sorted({named(each) for each in results}, key=str)


def gives_terminal(group):
    word = struct.pack("i", group)
    results = [native(16, 0, TIOCSPGRP, word)]
    if has_i386():
        results.append(i386(54, 0, TIOCSPGRP, low(word)))
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
    os.write(writes, json.dumps(told).encode())


def by_other_numbers():
    """By those of a pid namespace, where each is another group outside of it."""
    if libc.unshare(CLONE_NEWUSER_AND_NEWPID) != 0:
        os.write(writes, b"null")
    else:
        os.waitpid(spawn(as_number_one), 0)


def tells():
    child = spawn(signal.pause)
    other = spawn(signal.pause)
    told = {
        "outside": joins(0, outside),
        "child to outside": joins(child, outside),
        "nobody's": joins(0, 0x3FFFFFF0),
        "child, its own": joins(child, child),
        "other child, that one": joins(other, child),
        "itself, that one": joins(0, child),
        "itself, its own": joins(0, os.getpid()),
        "itself, its own by 0": joins(0, 0),
        "itself, COMMAND's": joins(0, ours),
        "terminal to outside": gives_terminal(outside),
        "terminal to child": gives_terminal(child),
        "is child's": os.tcgetpgrp(0) == child,
        "terminal back": gives_terminal(ours),
        "is ours": os.tcgetpgrp(0) == ours,
    }
    for pid in (child, other):
        os.kill(pid, 9)
    os.waitpid(spawn(by_other_numbers), 0)
    told["by other numbers"] = json.loads(os.read(reads, 1000))
    sys.stdout.write(f"told {json.dumps(told)} end\r\n")
    sys.stdout.flush()


os.waitpid(spawn(tells), 0)
