import os

from family import arrived, family
from inside import has_i386, i386, low, named, native, siginfo, tell


def attack(pids):
    fd = os.pidfd_open(pids["child"])
    results = [named(native(424, fd, 34, low(siginfo(34)), 0))]
    if has_i386():
        results.append(named(i386(424, fd, 35, low(siginfo(35, "i386")), 0)))
    results.append(named(native(424, fd, 36, low(siginfo(35)), 0)))  # another signal's
    results.append(named(native(424, fd, 36, low(siginfo(36, code=0)), 0)))  # as if from the kernel
    results.append(named(native(424, fd, 36, 8, 0)))
    tell([results, [[a["code"], a["pid"] == os.getpid()] for a in arrived()["child"]]])


family(attack)
