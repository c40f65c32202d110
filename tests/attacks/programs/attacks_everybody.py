"""Reads and writes the memory of everybody, takes descriptors, gives advice on memory, and slows
everybody down, by both ABIs: `attacks_everybody.py OUTSIDE KIND…`. Of each kind it says what came
of each target."""

import ctypes
import os
import signal
import struct
import sys

from inside import has_i386, i386, low, named, native, parent_of, spawn, tell


def all_named(results):
    return sorted({named(each) for each in results}, key=str)


def both(numbers, *words):
    results = [native(numbers[0], *words)]
    if has_i386():
        results.append(i386(numbers[1], *words))
    return all_named(results)


def reached(pid):
    # i386: with flags that there are none of, so the kernel itself refuses it otherwise.
    here = ctypes.create_string_buffer(8)
    at = int(open("/proc/self/maps").readline().split("-")[0], 16)
    mine, its = (struct.pack("QQ", each, 8) for each in (ctypes.addressof(here), at))
    results = [named(native(number, pid, mine, 1, its, 1, 0)) for number in (310, 311)]
    if has_i386():
        empty = low(bytes(8))
        results += [named(i386(number, pid, empty, 1, empty, 1)) for number in (347, 348)]
    return [result for result in results if result != "EINVAL"]


# pidfd_getfd and process_madvise


def taken(pid):
    return both((438, 438), os.pidfd_open(pid), 0, 0)


def advised(pid):
    return both((440, 440), os.pidfd_open(pid), 0, 0, 20, 0)  # MADV_COLD


# Every call that takes from another process what it gets of the machine

NONE = bytes(8)
AFFINITY = struct.pack("<Q", 1)
IDLE = struct.pack("<IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0)  # SCHED_IDLE
CORE = struct.pack("<QQ", 0, 0)
RLIMIT_CORE = 4
NOBODYS = 0x3FFFFFF0  # a user without processes, and refused like any other
# At each page fault the kernel sends SIGTRAP, once it is enabled: disabled, exclude_kernel,
# exclude_hv, remove_on_exec, sigtrap.
EVENT = struct.pack("<IIQQQQQ", 1, 128, 2, 1, 0, 0, 1 | 3 << 5 | 3 << 36).ljust(128, b"\0")
# What follows the number of each ABI is made of the target; bytes are passed by their address.
CALLS = {
    "setpriority": (141, 97, lambda pid: (0, pid, 19)),
    "setpriority of a group": (141, 97, lambda pid: (1, os.getpgid(pid), 19)),
    "setpriority of a user": (141, 97, lambda pid: (2, NOBODYS, 19)),
    "ioprio_set": (251, 289, lambda pid: (1, pid, 3 << 13)),
    "ioprio_set of a group": (251, 289, lambda pid: (2, os.getpgid(pid), 3 << 13)),
    "ioprio_set of a user": (251, 289, lambda pid: (3, NOBODYS, 3 << 13)),
    "sched_setscheduler": (144, 156, lambda pid: (pid, 5, NONE)),
    "sched_setparam": (142, 154, lambda pid: (pid, NONE)),
    "sched_setattr": (314, 351, lambda pid: (pid, IDLE, 0)),
    "sched_setaffinity": (203, 241, lambda pid: (pid, 8, AFFINITY)),
    "move_pages": (279, 317, lambda pid: (pid, 0, 0, 0, 0)),
    "migrate_pages": (256, 294, lambda pid: (pid, 8, AFFINITY, AFFINITY)),
    "prlimit64": (302, 340, lambda pid: (pid, RLIMIT_CORE, CORE, 0)),
    "perf_event_open of everybody": (298, 336, lambda pid: (EVENT, -1, 0, -1, 0)),
    "perf_event_open of a control group": (298, 336, lambda pid: (EVENT, 0, 0, -1, 4)),
    "perf_event_open": (298, 336, lambda pid: (EVENT, pid, -1, -1, 0)),
}


def by(abi, call, pid):
    number = call[0 if abi == "native" else 1]
    words = call[2](pid)
    if abi == "native":
        return native(number, *words)
    data = b"".join(word for word in words if isinstance(word, bytes))
    at = low(data)
    given = []
    for word in words:
        given.append(at if isinstance(word, bytes) else word)
        at += len(word) if isinstance(word, bytes) else 0
    return i386(number, *given)


def slowed(pid):
    found = {}
    for name, call in CALLS.items():
        results = [by("native", call, pid)]
        if has_i386():
            results.append(by("i386", call, pid))
        found[name] = all_named(min(each, 0) for each in results)
    return found


outside, *kinds = sys.argv[1:]
attacks = {"reached": reached, "taken": taken, "advised": advised, "slowed": slowed}
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
    for kind in kinds:
        told[kind] = {name: attacks[kind](pid) for name, pid in targets.items()}
    os.kill(child, 9)
    os.waitpid(child, 0)
    tell(told)


os.waitpid(spawn(attack), 0)
os.kill(neighbour, 9)
