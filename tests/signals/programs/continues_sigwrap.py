import os
import sys

from inside import NATIVE, block_all, named, native, parent_of, send, tell

number = int(sys.argv[1])
block_all()
results = [
    named(send(call, "native", pid, number, pidfd=os.pidfd_open(pid)))
    for pid in (parent_of(os.getppid()), os.getppid())
    for call in NATIVE
]
tell([*results, named(native(62, -1, number))])
