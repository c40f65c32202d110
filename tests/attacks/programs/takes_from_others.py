"""What is there to be had of a process that one's user may signal: memory, descriptors, secrets."""

import contextlib
import errno
import json
import os
import struct
import sys

from inside import named, native


def tried(attempt):
    try:
        attempt()
    except OSError as refusal:
        return errno.errorcode[refusal.errno]
    return "got it"


READ = ("environ", "auxv", "maps", "smaps", "pagemap", "stack", "syscall", "io", "fdinfo/0")


def read(path):
    with open(path, "rb") as file:
        file.read(8)


def take_descriptor(pid):
    pidfd = os.pidfd_open(pid)
    try:
        result = native(438, pidfd, 0, 0)
        if result < 0:
            raise OSError(-result, "pidfd_getfd")
    finally:
        os.close(pidfd)


def take(pid):
    words = struct.pack("QQ", 0x10000, 8), struct.pack("QQ", 0x10000, 8)
    found = {
        "mem": tried(lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY))),
        "mem to write": tried(lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))),
        **{name: tried(lambda name=name: read(f"/proc/{pid}/{name}")) for name in READ},
        "clear_refs": tried(lambda: os.close(os.open(f"/proc/{pid}/clear_refs", os.O_WRONLY))),
        "exe": tried(lambda: os.readlink(f"/proc/{pid}/exe")),
        "fd": tried(lambda: os.readlink(f"/proc/{pid}/fd/0")),
        "root": tried(lambda: os.close(os.open(f"/proc/{pid}/root/", os.O_RDONLY))),
        "ns": tried(lambda: os.close(os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY))),
        "descriptor": tried(lambda: take_descriptor(pid)),
        "vm": named(native(310, pid, words[0], 1, words[1], 1, 0)),
        "ptrace": named(native(101, 0x4206, pid, 0, 0)),
    }
    with contextlib.suppress(OSError):
        native(101, 17, pid, 0, 0)
    return found


supervisor = os.getppid()
front = int(open(f"/proc/{supervisor}/stat").read().rpartition(")")[2].split()[1])
starter = int(open(f"/proc/{front}/stat").read().rpartition(")")[2].split()[1])
named_pids = {"supervisor": supervisor, "front": front, "starter": starter}
named_pids |= json.loads(sys.argv[1])
json.dump({name: take(pid) for name, pid in named_pids.items()}, sys.stdout)
