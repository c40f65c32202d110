import os

from family import arrived, family
from inside import drain, named, native, tell


def attack(pids):
    os.setpgid(0, 0)
    own = os.getpid()
    os.setpgid(pids["child"], own)
    results = [named(native(424, -10001, 34, 0, flags)) for flags in (0, 4)]
    mine = [each["signal"] for each in drain()]
    tell([results, mine, [each["signal"] for each in arrived()["child"]]])


family(attack)
