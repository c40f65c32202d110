"""Starts the server of a file that is never read to the end, and keeps others waiting for it:
`serves_itself.py HOW SERVER FOLDER FILE STORE`.

killed: execs more programs than the supervisor has threads for, whose paths lie in that file,
mapped, and says how many were denied; says what became of an exec of /bin/true; kills the server,
and says how often /bin/true ran of ten times.
waits: the same, but it waits in the place of the kill.
journal: a process that writes to the session's journal waits for a page of it."""

import ctypes
import errno
import mmap
import os
import signal
import subprocess
import sys

PROT_READ, MAP_SHARED = 1, 1
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.execve.argtypes = [ctypes.c_void_p] * 3

how, server, folder, file, store = sys.argv[1:]
serving = subprocess.Popen([sys.executable, server, folder, file], stdout=subprocess.PIPE)
assert serving.stdout.readline() == b"ready\n"
never = os.open(f"{folder}/never-read", os.O_RDONLY)


def run_true():
    try:
        return "ran" if subprocess.run(["/bin/true"], check=False).returncode == 0 else "failed"
    except PermissionError:
        return "denied"


def block_all_threads():
    served = libc.mmap(None, 4096, PROT_READ, MAP_SHARED, never, 0)
    children = []
    for _ in range(70):
        child = os.fork()
        if child == 0:
            libc.execve(served, None, None)
            os._exit(ctypes.get_errno())
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    print("denied", statuses.count(errno.EACCES << 8))
    print("bystander", run_true(), flush=True)
    if how == "waits":
        signal.pause()
    serving.kill()
    serving.wait()
    print("bystander", [run_true() for _ in range(10)].count("ran"), flush=True)


def hold_the_journal():
    journal = f"{store}/sessions/{os.environ['SIGWRAP_SESSION']}.journal"
    if os.fork() == 0:
        page = mmap.mmap(never, 0, access=mmap.ACCESS_READ)
        os.pwrite(os.open(journal, os.O_WRONLY), memoryview(page)[:1], 0)
        os._exit(0)
    while True:
        subprocess.run(["/bin/true"], check=False)


{"killed": block_all_threads, "waits": block_all_threads, "journal": hold_the_journal}[how]()
