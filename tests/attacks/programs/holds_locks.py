"""Serves a file that is never read to the end, and has a kernel lock held by a process that copies
from it; then makes sigwrap use what the lock is of, while a bystander runs /bin/true a hundred
times: `holds_locks.py HOW SERVER FOLDER FILE`. It says how often the bystander ran.

socket: send(2) holds the socket's lock, and another process connects the socket.
pipe: write(2) holds the pipe's lock, and a process is denied whose standard error it is.
file: the same of a regular file.
own: write(2) holds the lock of the standard error that sigwrap itself has; its log is removed.
async: the pipe, and another process has signals sent for it (O_ASYNC)."""

import fcntl
import mmap
import os
import pathlib
import socket
import subprocess
import sys
import time

how, server, folder, file = sys.argv[1:]
serving = subprocess.Popen([sys.executable, server, folder, file], stdout=subprocess.PIPE)
assert serving.stdout.readline() == b"ready\n"
never = os.open(f"{folder}/never-read", os.O_RDONLY)
page = memoryview(mmap.mmap(never, 0, access=mmap.ACCESS_READ))[:1]


def start(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def hold(work):
    """Until it waits for the page."""
    start(work)
    assert serving.stdout.readline() == b"waits never-read\n"


def connected():
    listening = socket.create_server(("127.0.0.1", 0))
    return listening, socket.create_connection(listening.getsockname())


held = []  # to ask for a socket's name, as Python does when it drops one, would wait as well


def denied(fd):
    start(lambda: (os.dup2(fd, 2), os.execv("/usr/bin/id", ["id"])))


def attack():
    if how == "socket":
        listening, end = held[:] = connected()
        hold(lambda: end.send(page))
        start(lambda: end.connect_ex(listening.getsockname()))
    elif how in ("pipe", "async"):
        _reading, writing = os.pipe()
        hold(lambda: os.write(writing, page))
        if how == "pipe":
            denied(writing)
        else:
            fcntl.fcntl(writing, fcntl.F_SETOWN, os.getpid())
            start(lambda: fcntl.fcntl(writing, fcntl.F_SETFL, os.O_ASYNC))
    elif how == "file":
        writing = os.open("said", os.O_WRONLY | os.O_CREAT)
        hold(lambda: os.write(writing, page))
        denied(writing)
    elif how == "own":
        hold(lambda: os.write(2, page))
        (log,) = pathlib.Path(os.environ["SIGWRAP_STORE"], "sessions").glob("*.journal")
        log.unlink()
        while not log.exists():  # it is written anew, and sigwrap says so
            time.sleep(0.01)


attack()
ran = 0
while ran < 100:
    ran += subprocess.run(["/bin/true"], check=False).returncode == 0
os.write(1, b"bystander %d\n" % ran)
serving.kill()
