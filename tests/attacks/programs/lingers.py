"""While somebody is asked about a call that names a socket, another thread closes it: so the
supervisor has the last descriptor of it, and whoever closes that waits until all was read that was
sent. Then /bin/true runs. It says what came of the call, and of that."""

import fcntl
import os
import sys
import threading

from inside import spawn, tell
from lingering import lingering, reset

waits, goes = os.pipe()
child = spawn(lambda: os.close(goes) or os.read(waits, 1))
one, other = lingering()
fd = one.detach()
fcntl.fcntl(fd, fcntl.F_SETOWN, child)
results = []


def call():
    try:
        results.append(fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK))
    except PermissionError:
        results.append("EPERM")


caller = threading.Thread(target=call)
caller.start()
sys.stdin.readline()
os.close(fd)
tell("closed")
sys.stdin.readline()
true = spawn(lambda: os.execv("/bin/true", ["true"]))
ran = os.waitpid(true, 0)[1]
reset(other)
caller.join()
os.close(goes)
os.waitpid(child, 0)
tell([*results, ran])
