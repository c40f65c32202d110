import errno
import os
import signal
import sys

from inside import named, native, parent_of, spawn, tell


def traced(request, pid):
    result = native(101, request, pid, 0, 0)
    if result == 0:
        os.waitpid(pid, 0x40000000)  # __WALL
        native(101, 17, pid, 0, 0)  # PTRACE_DETACH
    return named(result)


def reached_memory(pid):
    try:
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
        return "opened"
    except OSError as refusal:
        return errno.errorcode[refusal.errno]


supervisor = os.getppid()
front = parent_of(supervisor)
child = spawn(signal.pause)
told = {}
for name, pid in (("front", front), ("supervisor", supervisor), ("outside", int(sys.argv[1]))):
    told[name] = [
        traced(16, pid),
        traced(0x4206, pid),
        traced(8, pid),
        reached_memory(pid),
    ]
own = named(native(101, 16, child, 0, 0))
os.waitpid(child, 0)
own = [own, named(native(101, 17, child, 0, 0)), reached_memory(child)]
os.kill(child, 9)
os.waitpid(child, 0)
tell([told, own])
