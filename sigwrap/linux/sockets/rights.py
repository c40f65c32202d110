"""A thread of ours takes a caller's rights, for good, before it does something in its place: where
sigwrap runs as root, it may do more, and would be taken for root by whoever is at the other end."""

from __future__ import annotations

import ctypes
import os
import struct

from sigwrap.linux import procfs
from sigwrap.linux.libc import syscall
from sigwrap.linux.procfs import Rights
from sigwrap.machine import NUMBERS

_SYS_SETGROUPS = NUMBERS["setgroups"]
_SYS_SETRESUID = NUMBERS["setresuid"]
_SYS_SETRESGID = NUMBERS["setresgid"]
_SYS_CAPSET = NUMBERS["capset"]
_SYS_PRCTL = NUMBERS["prctl"]
_PR_SET_KEEPCAPS = 8
_CAPABILITIES = struct.Struct("=6I")
_HEADER = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread


class OtherRights:
    """What others have, for as long as ours are what they are now."""

    def __init__(self) -> None:
        self._own = procfs.rights("self") if os.geteuid() == 0 else None
        self._user_namespace = procfs.user_namespace("self")

    def of(self, tid: int) -> Rights | None:
        """Those of a thread where they are others than ours, and we could take them."""
        own = self._own
        found = procfs.rights(tid) if own is not None else None
        if own is None or found is None:
            return None
        kept = found.capabilities & own.capabilities
        if kept and procfs.user_namespace(tid) != self._user_namespace:
            kept = 0  # they count nowhere else
        found = found._replace(capabilities=kept)
        return None if found == own else found


def take(rights: Rights) -> None:
    """By the thread that calls it. Raises KernelError."""
    uid, gid, groups, capabilities = rights
    packed = struct.pack(f"={len(groups)}I", *groups)
    syscall(
        "setgroups", _SYS_SETGROUPS, len(groups), ctypes.create_string_buffer(packed, len(packed))
    )
    syscall("setresgid", _SYS_SETRESGID, gid, gid, gid)
    # Also of a user who isn't root: ambient ones, or a file's.
    syscall("prctl", _SYS_PRCTL, _PR_SET_KEEPCAPS, 1, 0, 0, 0)
    syscall("setresuid", _SYS_SETRESUID, uid, uid, uid)
    low, high = capabilities & 0xFFFFFFFF, capabilities >> 32
    sets = _CAPABILITIES.pack(low, low, 0, high, high, 0)  # effective, permitted, inheritable
    data = ctypes.create_string_buffer(sets, len(sets))
    syscall("capset", _SYS_CAPSET, _HEADER, data)
