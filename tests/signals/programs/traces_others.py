import os
import signal
import sys

from inside import named, native, spawn, tell
from tracing import front, reached_memory, supervisor, traced, wrote

child = spawn(signal.pause)
told = {}
for name, pid in (("front", front), ("supervisor", supervisor), ("outside", int(sys.argv[1]))):
    told[name] = [
        traced(16, pid),
        traced(0x4206, pid),
        traced(8, pid),
        reached_memory(pid),
        wrote(pid),
        named(native(438, os.pidfd_open(pid), 0, 0)),
    ]
own = named(native(101, 16, child, 0, 0))
os.waitpid(child, 0)
own = [own, named(native(101, 17, child, 0, 0)), reached_memory(child)]
os.kill(child, 9)
os.waitpid(child, 0)
tell([told, own])
