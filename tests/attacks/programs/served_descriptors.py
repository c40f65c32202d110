"""Signal calls that name a descriptor, of a file that somebody serves and flushes never; and a
program that is denied, with that file as its standard error. Then /bin/true runs."""

import ctypes
import fcntl
import os
import struct
import sys

F_SETOWN_EX, F_OWNER_PID, PIDFD_SEND_SIGNAL = 15, 1, 424
libc = ctypes.CDLL(None, use_errno=True)


def run(*words):
    child = os.fork()
    if child == 0:
        try:
            os.execv(words[0], words)
        except OSError as refusal:
            os._exit(refusal.errno)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


served = os.open(sys.argv[1], os.O_RDONLY)
said = os.dup(1)
try:
    fcntl.fcntl(served, F_SETOWN_EX, struct.pack("ii", F_OWNER_PID, os.getpid()))
except OSError:
    pass
libc.syscall(PIDFD_SEND_SIGNAL, served, 15, None, 0)
os.dup2(served, 2, inheritable=True)
denied = run("/usr/bin/id")
os.write(said, b"%d %d\n" % (denied, run("/bin/true")))
os._exit(0)  # and not by way of a flush
