"""Execs whose path, arguments, or one argument lie in a mapped file that is never read to the end,
and signal calls whose words do; meanwhile a bystander makes the same calls with words of its own,
and runs /bin/true. It says what came of each, and whether the bystander did all of its own."""

import ctypes
import errno
import os
import signal
import socket
import struct
import sys

PROT_READ, MAP_PRIVATE = 1, 2
FCNTL, F_SETOWN_EX, F_OWNER_PID = 72, 15, 1
PIDFD_SEND_SIGNAL, SI_QUEUE = 424, -1
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.execve.argtypes = [ctypes.c_void_p] * 3
libc.syscall.argtypes = [ctypes.c_long] * 5

libc.mount(b"nothing", b"/nowhere", b"nothing", 0, None)  # its failure doesn't matter
file = os.open(sys.argv[1], os.O_RDONLY)
served = libc.mmap(None, 4096, PROT_READ, MAP_PRIVATE, file, 0)
true = ctypes.create_string_buffer(b"/bin/true")
words = (ctypes.c_void_p * 2)(ctypes.addressof(true), None)
served_word = (ctypes.c_void_p * 2)(served, None)
path_at, words_at = ctypes.addressof(true), ctypes.addressof(words)
ours = ctypes.create_string_buffer(128)
one, other = socket.socketpair()
signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def own(address):
    struct.pack_into("ii", ours, 0, F_OWNER_PID, os.getpid())
    return libc.syscall(FCNTL, one.fileno(), F_SETOWN_EX, address, 0)


def queue(address):
    struct.pack_into("iii4xiI", ours, 0, signal.SIGUSR1, 0, SI_QUEUE, os.getpid(), os.getuid())
    pidfd = os.pidfd_open(os.getpid())
    return libc.syscall(PIDFD_SEND_SIGNAL, pidfd, signal.SIGUSR1, address, 0)


def do_all():
    here = ctypes.addressof(ours)
    return own(here) or queue(here) or libc.execve(path_at, words_at, None)


def run(work):
    child = os.fork()
    if child == 0:
        os._exit(ctypes.get_errno() if work() else 0)
    return child


STALLED = {
    "path": lambda: libc.execve(served, words_at, None),
    "argv": lambda: libc.execve(path_at, served, None),
    "word": lambda: libc.execve(path_at, ctypes.addressof(served_word), None),
    "own": lambda: own(served),
    "queue": lambda: queue(served),
}


def together():
    waiting = {run(work): name for name, work in STALLED.items()}
    said = {}
    bystander, runs = run(do_all), 0
    while waiting or not runs:
        pid, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        if pid == bystander:
            assert code == 0, code
            runs += 1
            if waiting:
                bystander = run(do_all)
        else:
            said[waiting.pop(pid)] = errno.errorcode.get(code, code)
    return said, runs


for _ in range(10):  # where the machine has no time for the bystander meanwhile
    said, runs = together()
    if runs > 1:
        break
print(*(f"{name} {said[name]}" for name in STALLED), "bystander", runs > 1)
