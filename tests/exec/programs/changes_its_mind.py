"""Asks for ./ok, and for each line that it reads it changes something, by its arguments."""

import ctypes
import mmap
import os
import sys

shared = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(shared))


def put(path, word, variable=b"UN_PRELOAD=/no/library"):
    for start, text in ((0, path), (256, word), (512, variable)):
        shared[start : start + 256] = text.ljust(256, b"\0")


put(b"./ok", b"harmless")
mapping = None
if "mapping" in sys.argv:  # a page that is dirty already: what is stored there changes no time
    with open("ok", "r+b") as file:
        mapping = mmap.mmap(file.fileno(), 0)
    mapping[-1] = mapping[-1]
child = os.fork()
if child == 0:
    if mapping is not None:
        mapping.close()  # what somebody could write to is executed by nobody
    words = (ctypes.c_void_p * 3)(at, at + 256, None)
    execve = ctypes.CDLL(None).execve
    execve.argtypes = [ctypes.c_void_p] * 3
    variables = (ctypes.c_void_p * 2)(at + 512, None)
    execve(at, ctypes.addressof(words), ctypes.addressof(variables))
    os._exit(9)
for what in sys.argv[1:]:
    input()
    if what == "path":
        put(b"./bad", b"harmless")
    elif what == "argument":
        put(b"./ok", b"harmful")
    elif what == "variable":
        put(b"./ok", b"harmless", b"LD_PRELOAD=/no/library")
    elif what == "value":
        put(b"./ok", b"harmless", b"LD_PRELOAD=/no/other")
    elif what == "file":
        os.rename("bad", "ok")
    elif what == "content":
        with open("ok", "ab") as file:
            file.write(b"more")
    elif what == "unreadable":
        os.chmod("ok", 0o111)
    elif what == "mapping":
        mapping[-1] ^= 1
        mapping.close()
    print("changed", flush=True)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
