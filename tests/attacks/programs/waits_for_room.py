"""Connects to servers that accept no connection, from many threads that wait for room; meanwhile a
bystander runs /bin/true: `waits_for_room.py RUNS`. It says how many of these ran."""

import os
import socket
import subprocess
import sys
import threading

CALLERS = 20


def fill(family, address):
    """Return the address of a server whose queue is full, and the sockets in it."""
    server = socket.socket(family)
    server.bind(address)
    server.listen(0)
    kept = [server]
    while True:
        kept.append(socket.socket(family))
        kept[-1].settimeout(0.2)
        try:
            kept[-1].connect(server.getsockname())
        except (TimeoutError, BlockingIOError):
            return server.getsockname(), kept


kept = []
for family, address in ((socket.AF_UNIX, "full.sock"), (socket.AF_INET, ("127.0.0.1", 0))):
    full, waiting = fill(family, address)
    kept += waiting
    for _ in range(CALLERS):
        kept.append(socket.socket(family))
        threading.Thread(target=kept[-1].connect, args=(full,), daemon=True).start()
ran = 0
for _ in range(int(sys.argv[1])):
    ran += subprocess.run(["/bin/true"], check=False).returncode == 0
print("bystander", ran, flush=True)
os._exit(0)
