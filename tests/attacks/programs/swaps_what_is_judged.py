"""A second thread swaps the socket that a call names, back and forth, while it is judged:
`swaps_what_is_judged.py ROUNDS SOCKET`."""

import os
import socket
import sys
import threading

from inside import native, spawn, tell

F_GETFL, F_SETFL, SLOT = 3, 4, 200
rounds, inherited = map(int, sys.argv[1:])


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


def has_signalled():
    theirs = socket.socket(fileno=inherited)  # its owner is outside
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


os.waitpid(spawn(lambda: tell(has_signalled())), 0)
