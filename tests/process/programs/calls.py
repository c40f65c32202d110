"""Cases of a few calls each, by their numbers: signals to itself, its child and others."""

import _socket
import ctypes
import fcntl
import os
import signal
import struct
import sys
import threading

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number, *words):
    words = [ctypes.c_long(w) if isinstance(w, int) else w for w in words]
    return libc.syscall(ctypes.c_long(number), *words)


USR1, WINCH = int(signal.SIGUSR1), int(signal.SIGWINCH)
signal.signal(signal.SIGUSR1, lambda *_: None)
me = os.getpid()
r, w = os.pipe()
child = os.fork()
if child == 0:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    os.write(w, b"x")
    signal.pause()
os.read(r, 1)
info = ctypes.create_string_buffer(128)
struct.pack_into("iiiiiiQ", info, 0, USR1, 0, -1, 0, me, os.getuid(), 77)
garbage = 0xDEADBEEF << 32

TARGETS = {"me": me, "child": child}
SENDS = {
    "kill": lambda pid: call(62, pid, USR1),
    "tkill": lambda pid: call(200, pid, USR1),
    "tgkill": lambda pid: call(234, pid, pid, USR1),
    "rt_sigqueueinfo": lambda pid: call(129, pid, USR1, info),
    "rt_tgsigqueueinfo": lambda pid: call(297, pid, pid, USR1, info),
    "pidfd_send_signal": lambda pid: call(424, os.pidfd_open(pid), USR1, None, 0),
}


def side_doors():
    s = _socket.socket().detach()
    return {
        "F_SETOWN": lambda: call(72, r, 8, child),
        "F_SETOWN_EX": lambda: call(72, r, 15, struct.pack("ii", 1, child)),
        "F_SETOWN_EX thread": lambda: call(72, r, 15, struct.pack("ii", 0, child)),
        "F_SETSIG": lambda: call(72, r, 10, 9),
        "F_SETOWN garbage": lambda: call(72, r, garbage | 8, garbage | child),
        "F_SETOWN group": lambda: call(72, r, 8, -os.getpgrp()),
        "F_SETOWN_EX group": lambda: call(72, r, 15, struct.pack("ii", 2, os.getpgrp())),
        "FIOSETOWN": lambda: call(16, s, 0x8901, struct.pack("i", child)),
        "SIOCSPGRP": lambda: call(16, s, 0x8902, struct.pack("i", child)),
        "FIOSETOWN garbage": lambda: call(16, s, garbage | 0x8901, struct.pack("i", child)),
    }


def report(name, result):
    print(name, result, ctypes.get_errno() if result < 0 else 0, flush=True)


def send(name, target):
    report("sent", SENDS[name](TARGETS[target]))


def side_door(name):
    report("done", side_doors()[name]())


def upper_halves():
    report("kill", call(62, garbage | child, garbage | USR1))
    report("kill0", call(62, garbage | child, garbage))
    report("tgkill", call(234, garbage | child, garbage | child, garbage | USR1))
    report("fcntl", call(72, garbage | r, garbage | 8, garbage | me))
    report("sig", call(72, garbage | r, garbage | 10, garbage | USR1))


def questions():
    for target in (me, child, 1, 0, 999999999, -999999999):
        report(target if target in (0, 1) else "pid", call(62, target, 0))
    report("tgkill", call(234, me, me, 0))
    report("pidfd", call(424, os.pidfd_open(child), 0, None, 0))


def relations():
    other = os.fork()
    if other == 0:
        os.kill(me, USR1)  # root, above
        os.kill(child, USR1)  # sibling
        nephew = os.fork()
        if nephew == 0:
            os.kill(me, USR1)
            os._exit(0)
        os.waitpid(nephew, 0)
        os._exit(0)
    os.waitpid(other, 0)
    try:
        os.kill(999999999, USR1)
    except ProcessLookupError:
        pass
    signal.signal(signal.SIGWINCH, signal.SIG_IGN)
    os.kill(0, WINCH)
    os.kill(-os.getpgrp(), WINCH)


def a_door_that_kills():
    victim = os.fork()
    if victim == 0:
        signal.pause()
    a, b = os.pipe()
    fcntl.fcntl(a, fcntl.F_SETOWN, victim)
    fcntl.fcntl(a, 10, 9)
    fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC)
    os.write(b, b"x")
    print(os.waitpid(victim, 0)[1])


def by_threads():
    def by_thread():
        call(234, me, threading.get_native_id(), WINCH)

    for run in (lambda: os.kill(me, WINCH), by_thread):
        done = threading.Thread(target=run)
        done.start()
        done.join()


def x32():
    report("x32", call(0x40000000 | 62, child, USR1))
    report("x", call(0x40000000 | 520))


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
