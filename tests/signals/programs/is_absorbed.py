import os
import signal

from inside import block_all, named, native, spawn, tell

block_all()
child = spawn(signal.pause)
results = [named(native(62, pid, 15)) for pid in (os.getpid(), child, 1)]
pending = signal.sigpending()
os.kill(child, 9)
tell([results, sorted(pending), os.waitpid(child, 0)[1]])
