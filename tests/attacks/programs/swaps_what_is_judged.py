"""A second thread swaps the descriptor that a call names, back and forth, while it is decided."""

import os
import signal
import socket
import sys
import threading

from inside import native, spawn, tell

F_GETFL, F_SETFL = 3, 4
rounds, inherited = map(int, sys.argv[1:])
theirs = socket.socket(fileno=inherited)  # whoever it signals is outside
neighbours_file = os.memfd_create("neighbour")
neighbour = spawn(signal.pause)  # with that file under this number
SLOT = 200


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


os.waitpid(spawn(lambda: tell([takes(), has_signalled()])), 0)
os.kill(neighbour, 9)
