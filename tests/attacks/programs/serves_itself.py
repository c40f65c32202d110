"""Starts the server of a file that is never read to the end, and keeps others waiting for it:
`serves_itself.py HOW SERVER FOLDER FILE STORE`.

helpers: execs more programs than the supervisor has helpers, whose paths lie in that file, mapped;
once the server was killed, a bystander runs /bin/true ten times. It says how the server ended, and
how often the bystander ran.
journal: a process that writes to the session's journal waits for a page of it."""

import ctypes
import mmap
import os
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


def take_all_helpers():
    served = libc.mmap(None, 4096, PROT_READ, MAP_SHARED, never, 0)
    for _ in range(70):
        if os.fork() == 0:
            libc.execve(served, None, None)
            os._exit(0)
    print("server", serving.wait())
    runs = tries = 0
    while runs < 10 and tries < 30:  # on a slow machine, some of them may be late
        tries += 1
        try:
            runs += subprocess.run(["/bin/true"], check=False).returncode == 0
        except PermissionError:
            pass
    print("bystander", runs, flush=True)


def hold_the_journal():
    journal = f"{store}/sessions/{os.environ['SIGWRAP_SESSION']}.journal"
    if os.fork() == 0:
        page = mmap.mmap(never, 0, access=mmap.ACCESS_READ)
        os.pwrite(os.open(journal, os.O_WRONLY), memoryview(page)[:1], 0)
        os._exit(0)
    while True:
        subprocess.run(["/bin/true"], check=False)


{"helpers": take_all_helpers, "journal": hold_the_journal}[how]()
