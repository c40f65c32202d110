import ctypes
import mmap
import os
import sys

shared = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(shared))


def put(path, word):
    shared[0:256] = path.ljust(256, b"\0")
    shared[256:512] = word.ljust(256, b"\0")


put(b"./ok", b"harmless")
what = sys.argv[1]
child = os.fork()
if child == 0:
    words = (ctypes.c_void_p * 3)(at, at + 256, None)
    execve = ctypes.CDLL(None).execve
    execve.argtypes = [ctypes.c_void_p] * 3
    execve(at, ctypes.addressof(words), None)
    os._exit(9)
input()
if what == "path":
    put(b"./bad", b"harmless")
elif what == "argument":
    put(b"./ok", b"harmful")
elif what == "file":
    os.rename("bad", "ok")
print("changed", flush=True)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
