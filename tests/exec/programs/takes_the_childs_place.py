"""Executes a tool, and so becomes a stub. A child from before makes the exec that the stub's child
would make, with a variable of its own. Given are the tool and its replacement."""

import os
import socket
import sys

tool, replacement = sys.argv[1:]
caller = os.getpid()
called = open(f"/proc/{caller}/cmdline").read()


def is_a_stub() -> bool:
    now = open(f"/proc/{caller}/cmdline").read()
    return now != called and "libc" in open(f"/proc/{caller}/maps").read()  # its loader has run


if os.fork() == 0:
    while not is_a_stub():
        pass
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        theirs.close()
        while ours.recv(4096):
            pass
        os._exit(0)
    os.dup2(theirs.fileno(), 0)
    os.execve(replacement, [os.path.basename(replacement)], {"EVIL": "1"})
os.execv(tool, [tool])
