"""Takes descriptors and memory from everybody, advises on the memory of everybody, and slows
everybody down, by both ABIs: `attacks_everybody.py OUTSIDE KIND…`. Of each kind it says what came
of each target, and of odd words."""

import importlib
import os
import signal
import sys

from inside import parent_of, spawn, tell

outside, *kinds = sys.argv[1:]
modules = {kind: importlib.import_module(kind) for kind in kinds}
neighbour = spawn(signal.pause)
supervisor = os.getppid()
front = parent_of(supervisor)


def attack():
    child = spawn(signal.pause)
    os.setpgid(child, 0)
    targets = {
        "front": front,
        "supervisor": supervisor,
        "outside": int(outside),
        "neighbour": neighbour,
        "child": child,
        "self": os.getpid(),
    }
    told = {}
    for kind, module in modules.items():
        told[kind] = {name: module.of(pid) for name, pid in targets.items()}
        if hasattr(module, "odd"):
            last = spawn(signal.pause)
            told[kind]["odd"] = module.odd(last)
    os.kill(child, 9)
    os.waitpid(child, 0)
    tell(told)


os.waitpid(spawn(attack), 0)
os.kill(neighbour, 9)
