import os

from family import arrived, family
from inside import named, native, tell


def attack(pids):
    def by(fd, flags=0):
        return named(native(424, fd, 34, 0, flags))

    child, sibling = pids["child"], pids["sibling"]
    folder = {who: os.open(f"/proc/{pid}", os.O_RDONLY) for who, pid in pids.items()}
    task = os.open(f"/proc/{sibling}/task/{sibling}", os.O_RDONLY)
    told = {
        "folder": [by(folder["child"]), by(folder["sibling"])],
        "folder of a thread": by(task),
        "group of its leader": by(os.pidfd_open(sibling), 4),
        "thread": by(os.pidfd_open(sibling, os.O_EXCL)),
        "thread, flag": [by(os.pidfd_open(sibling), 1), by(os.pidfd_open(child), 1)],
        "process, flag": [by(os.pidfd_open(sibling), 2), by(os.pidfd_open(child), 2)],
        "file": by(os.open("/dev/null", os.O_RDONLY)),
    }
    tell([told, arrived()])


family(attack)
