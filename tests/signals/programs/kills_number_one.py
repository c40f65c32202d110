import os

from inside import named, native, spawn, tell
from namespace import into_a_namespace


def first():
    init = os.pidfd_open(os.getpid())

    def inside():
        os.setpgid(0, 0)
        tell([named(native(424, init, number, 0, 0)) for number in (9, 19)])

    os.waitpid(spawn(inside), 0)
    tell("lives")


into_a_namespace(first)
