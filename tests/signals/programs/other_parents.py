import os
import signal

from inside import EVERY_SIGNAL, block_all, drain, named, native, spawn, tell

block_all()
CLONE_PARENT = 0x8000


def clone(flags):
    pid = native(56, flags, 0, 0, 0, 0)
    if pid == 0:
        return 0
    return pid


lasting = clone(CLONE_PARENT)
if lasting == 0:
    signal.sigwait(EVERY_SIGNAL)
    os._exit(0)


def attacker():
    sibling = clone(CLONE_PARENT | signal.SIGCHLD)
    if sibling == 0:
        os.read(going[0], 1)
        os._exit(len([each for each in drain() if each["signal"] == 34]))
    results = [named(native(62, sibling, 34)), named(native(62, lasting, 34))]
    os.write(going[1], b"x")
    loud = clone(35)
    if loud == 0:
        os._exit(0)
    os.waitpid(loud, 0x40000000)  # __WALL
    tell([results, [each["signal"] for each in drain()], sibling])


going = os.pipe()
one = spawn(attacker)
os.waitpid(one, 0)
_, status = os.waitpid(-1, 0)
tell([os.waitstatus_to_exitcode(status), [each["signal"] for each in drain()]])
