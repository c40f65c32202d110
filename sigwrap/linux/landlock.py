"""The second wall: a Landlock domain that no signal leaves, whatever makes the kernel send it."""

from __future__ import annotations

import ctypes
import struct

from sigwrap.errors import KernelError
from sigwrap.linux.libc import set_no_new_privileges, syscall

_SYS_CREATE_RULESET = 444
_SYS_RESTRICT_SELF = 446
_VERSION = 1
_SCOPE_SIGNAL = 2
_ABI_WITH_SIGNAL_SCOPE = 6  # Linux 6.12


def can_scope_signals() -> bool:
    try:
        abi = syscall("landlock_create_ruleset", _SYS_CREATE_RULESET, 0, 0, _VERSION)
    except KernelError:
        return False
    return abi >= _ABI_WITH_SIGNAL_SCOPE


def scope_signals() -> None:
    """For the calling thread and all its future children; it also forbids them to trace, and to
    open the memory of, anybody outside."""
    attributes = struct.pack("<QQQ", 0, 0, _SCOPE_SIGNAL)
    ruleset = syscall(
        "landlock_create_ruleset",
        _SYS_CREATE_RULESET,
        ctypes.create_string_buffer(attributes, len(attributes)),
        len(attributes),
        0,
    )
    set_no_new_privileges()
    syscall("landlock_restrict_self", _SYS_RESTRICT_SELF, ruleset, 0)
