import os
import signal

from family import arrived, family
from inside import libc, spawn, tell


def attack(pids):
    kill = libc.kill
    signal.signal(34, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def at_itself():
        own = os.getpid()
        os._exit(sum(kill(own, 34) != 0 for _ in range(1000)) != 0)

    def at_the_sibling():
        os._exit(sum(kill(pids["sibling"], 9) != -1 for _ in range(1000)) != 0)

    senders = [spawn(run) for run in (at_itself, at_the_sibling) * 5]
    tell([[os.waitpid(pid, 0)[1] for pid in senders], arrived()])


family(attack)
