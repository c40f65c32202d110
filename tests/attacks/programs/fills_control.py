"""Sockets before and after all others: silent ones, full ones; and files that are none."""

import os
import resource
import socket
import sys
import time

resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
os.chdir(sys.argv[1])
held = []
for number in range(240):
    for name in (f"0-{number}", f"z-{number}"):
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(f"{name}.sock")
        is_full = number < 70
        listening.listen(0 if is_full else 16)
        held.append(listening)
        if is_full:
            end = socket.socket(socket.AF_UNIX)
            end.connect(f"{name}.sock")
            held.append(end)
for number in range(600):
    open(f"1-{number}.sock", "w").close()
print("filled", flush=True)
time.sleep(1000)
