import os

from family import family
from inside import named, native, tell


def attack(pids):
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    fd = os.pidfd_open(pids["sibling"])
    before = named(native(424, fd, 34, 0, 0))
    if native(272, 0x10000000) != 0:  # unshare(CLONE_NEWUSER)
        tell("no user namespaces here")
    else:
        tell([before, named(native(424, fd, 34, 0, 0)), named(native(62, pids["sibling"], 34))])


family(attack)
