import os

from inside import native, spawn, tell


def into_a_namespace(first):
    """`first` as number 1 of a pid namespace of its own."""
    flags = 0x20000000 | (0 if os.getuid() == 0 else 0x10000000)
    if native(272, flags) != 0:
        tell("no pid namespaces here")
        return
    os.waitpid(spawn(first), 0)
