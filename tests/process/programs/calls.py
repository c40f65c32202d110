"""Cases of a few calls each, by their numbers: signals to itself, its child and others."""

import ctypes
import os
import signal
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number, *words):
    words = [ctypes.c_long(w) if isinstance(w, int) else w for w in words]
    return libc.syscall(ctypes.c_long(number), *words)


USR1 = int(signal.SIGUSR1)
signal.signal(signal.SIGUSR1, lambda *_: None)
me = os.getpid()
r, w = os.pipe()
child = os.fork()
if child == 0:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    os.write(w, b"x")
    signal.pause()
os.read(r, 1)


def report(name, result):
    print(name, result, ctypes.get_errno() if result < 0 else 0, flush=True)


def questions():
    for target in (me, child, 1, 0, 999999999, -999999999):
        report(target if target in (0, 1) else "pid", call(62, target, 0))
    report("tgkill", call(234, me, me, 0))
    report("pidfd", call(424, os.pidfd_open(child), 0, None, 0))


def a_filter_of_its_own():
    allow = struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000)
    code = ctypes.create_string_buffer(allow)
    program = struct.pack("<HxxxxxxQ", 1, ctypes.addressof(code))
    report("no_new_privs", libc.prctl(38, 1, 0, 0, 0))
    report("filter", call(317, 1, 0, program))
    report("listener", call(317, 1, 8, program) if os.environ.get("SIGWRAP_SESSION") else -1)
    call(62, child, USR1)
    if os.fork() == 0:
        os.execv("/bin/true", ["hidden"])
    os.wait()


case, *words = sys.argv[1:]
globals()[case](*words)
os.kill(child, 9)
os.wait()
