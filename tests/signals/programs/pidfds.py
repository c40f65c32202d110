import os

from family import arrived, family
from inside import has_i386, i386, named, native, tell


def attack(pids):
    def by(fd, flags=0, number=34):
        return named(native(424, fd, number, 0, flags))

    child, sibling = pids["child"], pids["sibling"]
    folder = {who: os.open(f"/proc/{pid}", os.O_RDONLY) for who, pid in pids.items()}
    task = os.open(f"/proc/{sibling}/task/{sibling}", os.O_RDONLY)
    told = {
        "folder": [by(folder["child"]), by(folder["sibling"])],
        "folder, i386": [
            named(i386(424, folder[who], 34, 0, 0)) if has_i386() else by(folder[who])
            for who in ("child", "sibling")
        ],
        "folder, to ask": [by(folder[who], number=0) for who in ("child", "sibling")],
        "folder, by its path": by(os.open(f"/proc/{child}", os.O_PATH)),
        "folder, flag": [by(folder["child"], 1), by(folder["child"], 2), by(folder["sibling"], 2)],
        "folder, no leader": by(folder["child"], 4),
        "folder of nobody": by(os.open("/proc/self", os.O_RDONLY), number=0),
        "folder of all": by(os.open("/proc", os.O_RDONLY)),
        "folder of a thread": by(task),
        "group of its leader": by(os.pidfd_open(sibling), 4),
        "thread": by(os.pidfd_open(sibling, os.O_EXCL)),
        "thread, flag": [by(os.pidfd_open(sibling), 1), by(os.pidfd_open(child), 1)],
        "process, flag": [by(os.pidfd_open(sibling), 2), by(os.pidfd_open(child), 2)],
        "file": by(os.open("/dev/null", os.O_RDONLY)),
    }
    tell([told, arrived()])


family(attack)
