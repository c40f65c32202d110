import os
import sys

from family import arrived, family
from inside import native, tell
from owners import SETOWNS, by_owner, pid_words


def attack(pids):
    outside = int(sys.argv[2])
    results = {
        name: {
            who: by_owner(call, pid, 9)
            for who, pid in (("sibling", pids["sibling"]), ("outside", outside))
        }
        for name, call in SETOWNS.items()
    }
    own = {
        name: [by_owner(call, pids["child"], 34), [a["signal"] for a in arrived()["child"]]]
        for name, call in SETOWNS.items()
    }
    groups = {
        name: [by_owner(call, -os.getpgid(outside), 9), by_owner(call, -os.getpgrp(), 9)]
        for name, call in SETOWNS.items()
        if name not in ("F_SETOWN_EX", "F_SETOWN_EX thread", "i386 F_SETOWN_EX")
    }
    groups["F_SETOWN_EX"] = [
        by_owner(lambda fd, leader: native(72, fd, 15, pid_words(2, leader)), group, 9)
        for group in (os.getpgid(outside), os.getpgrp())
    ]
    tell([results, own, groups, arrived()])


family(attack)
