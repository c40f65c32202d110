"""Connects to a server that accepts no connection, while another process clears O_NONBLOCK of that
socket as fast as it can; meanwhile a bystander runs /bin/true: `clears_nonblocking.py RUNS`. It
says how many of these ran."""

import errno
import fcntl
import os
import socket
import subprocess
import sys

CALLERS = 2
full = socket.socket(socket.AF_UNIX)
full.bind("full.sock")
full.listen(0)
waiting = []
while not waiting or waiting[-1].connect_ex("full.sock") != errno.EAGAIN:
    waiting.append(socket.socket(socket.AF_UNIX))
    waiting[-1].setblocking(False)
children = []


def start(work):
    child = os.fork()
    if child == 0:
        while True:
            work()
    return child


def attack():
    shared = socket.socket(socket.AF_UNIX)
    shared.setblocking(False)
    children.append(start(lambda: fcntl.fcntl(shared, fcntl.F_SETFL, 0)))
    children.append(start(lambda: shared.connect_ex("full.sock")))


for _ in range(CALLERS):
    attack()
ran = 0
for _ in range(int(sys.argv[1])):
    ran += subprocess.run(["/bin/true"], check=False).returncode == 0
for child in children:
    os.kill(child, 9)
print("bystander", ran, flush=True)
