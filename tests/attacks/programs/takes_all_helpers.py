"""Execs whose paths lie in a mapped file that is never read to the end, more of them than the
supervisor has helpers; once the program that serves the file was killed, a bystander runs /bin/true
ten times: `takes_all_helpers.py SERVER FOLDER FILE`. It says how the server ended, and how often
the bystander ran."""

import ctypes
import os
import subprocess
import sys

PROT_READ, MAP_SHARED = 1, 1
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.execve.argtypes = [ctypes.c_void_p] * 3

server, folder, file = sys.argv[1:]
serving = subprocess.Popen([sys.executable, server, folder, file], stdout=subprocess.PIPE)
assert serving.stdout.readline() == b"ready\n"
never = os.open(f"{folder}/never-read", os.O_RDONLY)
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
