import os
import signal

from family import arrived, family
from inside import drain, libc, send, tell


def attack(pids):
    libc.prctl(4, 0, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {34})
    results = [
        send(call, "native", pid, 34)
        for call in ("kill", "tgkill", "rt_sigqueueinfo")
        for pid in (os.getpid(), pids["child"])
    ]
    tell([results, len(drain()), len(arrived()["child"])])


family(attack)
