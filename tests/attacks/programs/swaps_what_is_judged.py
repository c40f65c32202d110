"""A second thread swaps the descriptor that a call names, back and forth, while it is decided:
`swaps_what_is_judged.py ROUNDS SOCKET`. With ROUNDS alone, as root: the pidfd of the supervisor is
put in the place of the caller's own, while a page is advised on that only the supervisor has."""

import os
import signal
import socket
import struct
import sys
import threading

from inside import named, native, spawn, tell

F_GETFL, F_SETFL, SLOT, COLD, PAGE = 3, 4, 200, 20, 4096
rounds, *inherited = map(int, sys.argv[1:])
neighbours_file = os.memfd_create("neighbour")
neighbour = spawn(signal.pause)  # with that file under this number


def swapping(one, other):
    """SLOT is now one of them, now the other."""
    over = threading.Event()

    def swap():
        while not over.is_set():
            os.dup2(one, SLOT)
            os.dup2(other, SLOT)

    os.dup2(one, SLOT)
    threading.Thread(target=swap).start()
    return over


def goes_on(found):
    """Until both were tried, and often enough."""
    tried = found["wanted"] + found["refused"] + found["wrong"]
    return tried < rounds or (not (found["wanted"] and found["refused"]) and tried < 100 * rounds)


def takes():
    """The neighbour's file is not the caller's to take, its child's is."""
    os.dup2(os.memfd_create("child"), neighbours_file)
    child = spawn(signal.pause)
    wanted = os.fstat(neighbours_file).st_ino
    over = swapping(os.pidfd_open(child), os.pidfd_open(neighbour))
    found = {"wanted": 0, "refused": 0, "wrong": 0}
    while goes_on(found):
        fd = native(438, SLOT, neighbours_file, 0)
        if fd < 0:
            found["refused"] += 1
        else:
            found["wanted" if os.fstat(fd).st_ino == wanted else "wrong"] += 1
            os.close(fd)
    over.set()
    os.kill(child, 9)
    return found


def has_signalled():
    theirs = socket.socket(fileno=inherited[0])  # its owner is outside
    mine, _ = socket.socketpair()
    over = swapping(mine.fileno(), theirs.fileno())
    found = {"wanted": 0, "refused": 0, "wrong": 0}
    while goes_on(found):
        done = native(72, SLOT, F_SETFL, os.O_ASYNC) == 0
        found["refused"] += not done
        found["wanted"] += bool(native(72, mine.fileno(), F_GETFL) & os.O_ASYNC)
        found["wrong"] += bool(native(72, theirs.fileno(), F_GETFL) & os.O_ASYNC)
        native(72, mine.fileno(), F_SETFL, 0)
    over.set()
    return found


def pages(pid):
    with open(f"/proc/{pid}/maps") as file:
        ends = [line.split()[0].split("-") for line in file if "[v" not in line]
    return [(int(start, 16), int(end, 16)) for start, end in ends]


def advises(supervisor):
    mine = pages("self")
    page = next(start for start, _ in pages(supervisor) if not any(a <= start < b for a, b in mine))
    over = swapping(os.pidfd_open(os.getpid()), os.pidfd_open(supervisor))
    ranges = struct.pack("QQ", page, PAGE)
    found = {named(native(440, SLOT, ranges, 1, COLD, 0)) for _ in range(rounds)}
    over.set()
    return sorted(found, key=str)


if inherited:
    os.waitpid(spawn(lambda: tell([takes(), has_signalled()])), 0)
else:
    tell(advises(os.getppid()))
os.kill(neighbour, 9)
