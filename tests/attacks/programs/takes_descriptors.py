"""pidfd_getfd, process_vm_readv and process_vm_writev at everybody, by both ABIs."""

import ctypes
import os
import struct

from inside import has_i386, i386, low, named, native

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


def of(pid):
    return [takes(pid), reaches(pid)]


def odd(child):
    """Of which this is the end."""
    pidfd = os.pidfd_open(child)
    words = (pidfd, 999, 0), (pidfd, reads, 1), (999, reads, 0), (reads, reads, 0)
    found = [named(native(438, *each)) for each in words]
    os.kill(child, 9)
    os.waitpid(child, 0)
    return [*found, named(native(438, pidfd, reads, 0))]
