"""Give a thread a caller's rights for good, before it makes a call in the caller's place.

If sigwrap runs as root, the caller could do more otherwise, and the other end would see root.
"""

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
_CAPSET_HEADER = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread


class OtherRights:
    """Finds threads whose rights differ from the supervisor's."""

    def __init__(self) -> None:
        self._own = procfs.rights("self") if os.geteuid() == 0 else None
        self._user_namespace = procfs.user_namespace("self")

    def of(self, tid: int) -> Rights | None:
        """Return the rights of a thread if they differ from ours and we could take them."""
        own = self._own
        found = procfs.rights(tid) if own is not None else None
        if own is None or found is None:
            return None
        kept = found.capabilities & own.capabilities
        if kept and procfs.user_namespace(tid) != self._user_namespace:
            kept = 0  # they are valid in their own namespace only
        found = found._replace(capabilities=kept)
        return None if found == own else found


def take_rights(rights: Rights) -> None:
    """Give these rights to the thread that calls it, for good. Raises KernelError."""
    uid, gid, groups, capabilities = rights
    packed = struct.pack(f"={len(groups)}I", *groups)
    syscall(
        "setgroups", _SYS_SETGROUPS, len(groups), ctypes.create_string_buffer(packed, len(packed))
    )
    syscall("setresgid", _SYS_SETRESGID, gid, gid, gid)
    # A user other than root can have capabilities too: ambient ones, or a file's.
    syscall("prctl", _SYS_PRCTL, _PR_SET_KEEPCAPS, 1, 0, 0, 0)
    syscall("setresuid", _SYS_SETRESUID, uid, uid, uid)
    low, high = capabilities & 0xFFFFFFFF, capabilities >> 32
    sets = _CAPABILITIES.pack(low, low, 0, high, high, 0)  # effective, permitted, inheritable
    data = ctypes.create_string_buffer(sets, len(sets))
    syscall("capset", _SYS_CAPSET, _CAPSET_HEADER, data)
