"""Execs whose path, arguments, or one argument lie in a mapped file that is never read to the end;
meanwhile a bystander runs /bin/true. It says what came of each, and how often the bystander ran."""

import ctypes
import errno
import os
import sys

PROT_READ, MAP_PRIVATE = 1, 2
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.execve.argtypes = [ctypes.c_void_p] * 3


def run(path, argv):
    child = os.fork()
    if child == 0:
        libc.execve(path, argv, None)
        os._exit(ctypes.get_errno())
    return child


libc.mount(b"nothing", b"/nowhere", b"nothing", 0, None)  # its failure doesn't matter
file = os.open(sys.argv[1], os.O_RDONLY)
served = libc.mmap(None, 4096, PROT_READ, MAP_PRIVATE, file, 0)
true = ctypes.create_string_buffer(b"/bin/true")
words = (ctypes.c_void_p * 2)(ctypes.addressof(true), None)
served_word = (ctypes.c_void_p * 2)(served, None)
path_at, words_at = ctypes.addressof(true), ctypes.addressof(words)
waiting = {
    run(served, words_at): "path",
    run(path_at, served): "argv",
    run(path_at, ctypes.addressof(served_word)): "word",
}
said = {}
bystander, runs = run(path_at, words_at), 0
while waiting or not runs:
    pid, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    if pid == bystander:
        runs += code == 0
        if waiting:
            bystander = run(path_at, words_at)
    else:
        said[waiting.pop(pid)] = errno.errorcode.get(code, code)
for name in ("path", "argv", "word"):
    print(name, said[name])
print("bystander", runs)
