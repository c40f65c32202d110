"""Runs a shell line again and again, and waits for its end by a pidfd."""

import os
import select
import subprocess
import sys

ROUNDS = 20

told = 0
for _ in range(ROUNDS):
    shell = subprocess.Popen(["sh", "-c", sys.argv[1]], stderr=subprocess.DEVNULL)
    pidfd = os.pidfd_open(shell.pid)
    select.select([pidfd], [], [])
    told += shell.poll() is not None
    shell.wait()
    os.close(pidfd)
print(f"told at once: {told} of {ROUNDS}")
