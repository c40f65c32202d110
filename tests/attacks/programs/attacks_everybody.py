"""Takes descriptors and memory from everybody, advises on the memory of everybody, and slows
everybody down, by both ABIs: `attacks_everybody.py OUTSIDE KIND…`. Of each kind it says what came
of each target, and of odd words."""

import ctypes
import mmap
import os
import select
import signal
import struct
import sys

from inside import has_i386, i386, low, named, native, parent_of, spawn, tell


def all_named(results):
    return sorted({named(each) for each in results}, key=str)


# pidfd_getfd, process_vm_readv and process_vm_writev

reads, writes = os.pipe()
os.write(writes, b"a secret")


def takes(pid):
    pidfd = os.pidfd_open(pid)
    results = [native(438, pidfd, reads, 0)]
    if has_i386():
        results.append(i386(438, pidfd, reads, 0))
    found = set()
    for each in results:
        if each >= 0:
            same = os.path.sameopenfile(each, reads)
            found.add("taken" if same and not os.get_inheritable(each) else "another")
            os.close(each)
        else:
            found.add(named(each))
    os.close(pidfd)
    return sorted(found)


def reaches(pid):
    # i386: with flags that there are none of, so the kernel itself refuses it otherwise.
    here = ctypes.create_string_buffer(8)
    at = int(open("/proc/self/maps").readline().split("-")[0], 16)
    mine, its = (struct.pack("QQ", each, 8) for each in (ctypes.addressof(here), at))
    results = [named(native(number, pid, mine, 1, its, 1, 0)) for number in (310, 311)]
    if has_i386():
        empty = low(bytes(8))
        results += [named(i386(number, pid, empty, 1, empty, 1)) for number in (347, 348)]
    return [result for result in results if result != "EINVAL"]


def taken(pid):
    return [takes(pid), reaches(pid)]


def taken_oddly(child):
    """It ends `child`."""
    pidfd = os.pidfd_open(child)
    words = (pidfd, 999, 0), (pidfd, reads, 1), (999, reads, 0), (reads, reads, 0)
    found = [named(native(438, *each)) for each in words]
    os.kill(child, 9)
    os.waitpid(child, 0)
    return [*found, named(native(438, pidfd, reads, 0))]


# process_madvise: for a page of the caller's own, which its children have as well

PAGE = 4096
COLD, PAGEOUT, DONTNEED = 20, 21, 4
SELF = -10001  # a number that stands for the caller, Linux 6.15
page = mmap.mmap(-1, PAGE)
page.write(b"here")
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
low_page = low(b"here")


def advises(pidfd, advice):
    results = [native(440, pidfd, struct.pack("QQ", address, PAGE), 1, advice, 0)]
    if has_i386():
        words = low(struct.pack("II", low_page, PAGE))
        results.append(i386(440, pidfd, words, 1, advice, 0))
    return all_named(results)


def advised(pid):
    pidfd = os.pidfd_open(pid)
    return [advises(pidfd, COLD), advises(pidfd, PAGEOUT)]


def advised_oddly(child):
    """It ends `child`."""
    own = struct.pack("QQ", address, PAGE)
    pidfd, ended = os.pidfd_open(os.getpid()), os.pidfd_open(child)
    os.kill(child, 9)
    select.select([ended], [], [])
    zombie = native(440, ended, own, 1, COLD, 0)
    os.waitpid(child, 0)
    found = [
        zombie,
        native(440, ended, own, 1, COLD, 0),
        native(440, 999, own, 1, COLD, 0),
        native(440, 1, own, 1, COLD, 0),
        native(440, -5, own, 1, COLD, 0),
        native(440, pidfd, own, 1, COLD, 1),
        native(440, pidfd, own, 1025, COLD, 0),
        native(440, pidfd, 0, 1, COLD, 0),
        native(440, pidfd, struct.pack("QQ", PAGE, PAGE), 1, COLD, 0),
        native(440, pidfd, 0, 0, COLD, 0),
        native(440, pidfd, own * 2, 2, COLD, 0),
    ]
    return [advises(SELF, DONTNEED), *map(named, found)]


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
attacks = {"taken": taken, "advised": advised, "slowed": slowed}
oddly = {"taken": taken_oddly, "advised": advised_oddly}
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
        if kind in oddly:
            told[kind]["odd"] = oddly[kind](spawn(signal.pause))
    os.kill(child, 9)
    os.waitpid(child, 0)
    tell(told)


os.waitpid(spawn(attack), 0)
os.kill(neighbour, 9)
