"""Holds as many descriptors as it may in as many processes, says so, and comes to the page at an
address again and again: each time as another process, so that it is looked for anew."""

import os
import resource
import signal
import socket
import sys
import time

PROCESSES, DESCRIPTORS = 30, 20_000

host, port = sys.argv[1].removeprefix("http://").partition("/")[0].split(":")
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
made, making = os.pipe()
for _ in range(PROCESSES):
    if not os.fork():
        try:
            while True:
                os.dup(making)
        except OSError:
            os.write(making, b".")
        signal.pause()
held = b""
while len(held) < PROCESSES:
    held += os.read(made, PROCESSES)
print("ready", flush=True)
while True:
    if not os.fork():
        with socket.create_connection((host, int(port))) as end:
            end.recv(100)
        os._exit(0)
    os.wait()
    time.sleep(0.05)
