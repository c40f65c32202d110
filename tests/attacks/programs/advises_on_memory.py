"""process_madvise at everybody, by both ABIs: for a page of the caller's own, which its children
have as well."""

import ctypes
import mmap
import os
import select
import struct

from inside import has_i386, i386, low, named, native

PAGE = 4096
COLD, PAGEOUT, DONTNEED = 20, 21, 4
SELF = -10001  # a number that stands for the caller, Linux 6.15
page = mmap.mmap(-1, PAGE)
page.write(b"here")
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
low_page = low(b"here")


def advised(pidfd, advice):
    results = [native(440, pidfd, struct.pack("QQ", address, PAGE), 1, advice, 0)]
    if has_i386():
        words = low(struct.pack("II", low_page, PAGE))
        results.append(i386(440, pidfd, words, 1, advice, 0))
    return sorted({named(each) for each in results}, key=str)


def of(pid):
    pidfd = os.pidfd_open(pid)
    return [advised(pidfd, COLD), advised(pidfd, PAGEOUT)]


def odd(child):
    """Of which this is the end."""
    own = struct.pack("QQ", address, PAGE)
    pidfd, ended = os.pidfd_open(os.getpid()), os.pidfd_open(child)
    os.kill(child, 9)
    select.select([ended], [], [])
    zombie = native(440, ended, own, 1, COLD, 0)
    os.waitpid(child, 0)
    found = [
        zombie,
        native(440, ended, own, 1, COLD, 0),
        native(440, 999, own, 1, COLD, 0),
        native(440, 1, own, 1, COLD, 0),
        native(440, -5, own, 1, COLD, 0),
        native(440, pidfd, own, 1, COLD, 1),
        native(440, pidfd, own, 1025, COLD, 0),
        native(440, pidfd, 0, 1, COLD, 0),
        native(440, pidfd, struct.pack("QQ", PAGE, PAGE), 1, COLD, 0),
        native(440, pidfd, 0, 0, COLD, 0),
        native(440, pidfd, own * 2, 2, COLD, 0),
    ]
    return [advised(SELF, DONTNEED), *map(named, found)]
