import os
import socket
import threading

from inside import block_all, drain, line_of, named, native, siginfo, spawn, tell
from owners import SETOWNS

told, going = os.pipe(), os.pipe()


def sibling():
    block_all()

    def second():
        os.write(told[1], b"%d\n" % threading.get_native_id())
        os.read(going[0], 1)

    thread = threading.Thread(target=second)
    thread.start()
    thread.join()
    os._exit(len(drain()))


victim = spawn(sibling)
tid = int(line_of(told[0]))


def attacker():
    results = [
        named(result)
        for result in (
            native(62, tid, 9),
            native(200, tid, 9),
            native(234, victim, tid, 9),
            native(234, tid, tid, 9),
            native(129, tid, 9, siginfo(9)),
            native(297, victim, tid, 9, siginfo(9)),
            native(424, os.pidfd_open(tid, os.O_EXCL), 9, 0, 0),
            native(424, os.pidfd_open(tid, os.O_EXCL), 9, 0, 2),
            native(101, 16, tid, 0, 0),
        )
    ]
    one, _ = socket.socketpair()
    results += [named(call(one.fileno(), tid)) for call in SETOWNS.values()]
    tell([results, len(results)])


os.waitpid(spawn(attacker), 0)
os.write(going[1], b"x")
tell(os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1]))
