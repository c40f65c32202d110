"""As root: while one thread advises on a page that only the supervisor has, another puts the pidfd
of the supervisor in the place of the caller's own, and back."""

import os
import struct
import threading

from inside import named, native, tell

ROUNDS, COLD, PAGE = 300, 20, 4096
supervisor = os.getppid()


def pages(pid):
    with open(f"/proc/{pid}/maps") as file:
        ends = [line.split()[0].split("-") for line in file if "[v" not in line]
    return [(int(start, 16), int(end, 16)) for start, end in ends]


mine = pages("self")
page = next(
    start for start, _ in pages(supervisor) if not any(begin <= start < end for begin, end in mine)
)
own, others = os.pidfd_open(os.getpid()), os.pidfd_open(supervisor)
swapped = os.dup(own)
is_over = threading.Event()


def swap():
    while not is_over.is_set():
        os.dup2(others, swapped)
        os.dup2(own, swapped)


thread = threading.Thread(target=swap)
thread.start()
ranges = struct.pack("QQ", page, PAGE)
found = {named(native(440, swapped, ranges, 1, COLD, 0)) for _ in range(ROUNDS)}
is_over.set()
thread.join()
tell(sorted(found, key=str))
