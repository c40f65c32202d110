"""Takes all that it can from those who are forked for a command, before their exec; and says what
the fork server is to say."""

import ctypes
import json
import os
import socket
import sys
from pathlib import Path

PIDFD_OPEN, PIDFD_GETFD = 434, 438
SYSTEM = ("/etc/", "/lib", "/usr/")  # where a program's libraries and locale are
call = ctypes.CDLL(None, use_errno=True).syscall
forks = os.getppid()
seen = {os.getpid()}
taken = {}
print("ready", flush=True)
while not Path(sys.argv[1]).exists():
    for child in map(int, Path(f"/proc/{forks}/task/{forks}/children").read_text().split()):
        if child in seen:
            continue
        seen.add(child)
        held = call(PIDFD_OPEN, child, 0)
        for number in range(3, 12):
            fd = call(PIDFD_GETFD, held, number, 0)
            if fd < 0:
                continue
            kind = os.readlink(f"/proc/self/fd/{fd}").split(":")[0]
            if kind.startswith(SYSTEM):  # the program's own: it had been executed by then
                os.close(fd)
                continue
            taken[kind] = taken.get(kind, 0) + 1
            if kind == "socket":
                message = {"v": 1, "forked": 1, "number": 10**6}
                try:
                    socket.socket(fileno=fd).send(json.dumps(message).encode())
                except OSError:
                    pass
            else:
                os.close(fd)
        os.close(held)
print(f"seen: {len(seen) - 1}; taken: {taken}", flush=True)
