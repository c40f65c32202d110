"""pidfd_getfd, process_vm_readv and process_vm_writev at everybody, by both ABIs."""

import ctypes
import os
import signal
import struct
import sys

from inside import has_i386, i386, low, named, native, parent_of, spawn, tell

outside = int(sys.argv[1])
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


neighbour = spawn(signal.pause)


def attack():
    child = spawn(signal.pause)
    names = {"child": child, "self": os.getpid(), "neighbour": neighbour, "outside": outside}
    names["supervisor"] = parent_of(os.getppid())
    told = {name: [takes(pid), reaches(pid)] for name, pid in names.items()}
    pidfd = os.pidfd_open(child)
    odd = [
        named(native(438, pidfd, 999, 0)),
        named(native(438, pidfd, reads, 1)),
        named(native(438, 999, reads, 0)),
        named(native(438, reads, reads, 0)),
    ]
    os.kill(child, 9)
    os.waitpid(child, 0)
    odd.append(named(native(438, pidfd, reads, 0)))
    tell([told, odd])


os.waitpid(spawn(attack), 0)
os.kill(neighbour, 9)
