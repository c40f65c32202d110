"""The second wall: a Landlock domain, whatever the policy says.

Any domain keeps everybody in it from tracing, opening the memory of, and taking descriptors from
whoever is outside; its signal scope keeps signals inside, whatever makes the kernel send them. What
a policy lets out all the same is sent by the supervisor, who stands outside.
"""

from __future__ import annotations

import ctypes
import os
import struct

from sigwrap.errors import KernelError
from sigwrap.linux.libc import set_no_new_privileges, syscall

_SYS_CREATE_RULESET = 444
_SYS_RESTRICT_SELF = 446
_VERSION = 1
_SCOPE_SIGNAL = 2
_ABI_WITH_SIGNAL_SCOPE = 6

NEEDS = "Linux 6.12 with Landlock"


def is_available() -> bool:
    """A kernel whose Landlock has no scopes yet could only offer a domain that forbids mounts."""
    try:
        abi = syscall("landlock_create_ruleset", _SYS_CREATE_RULESET, 0, 0, _VERSION)
    except KernelError:
        return False
    return abi >= _ABI_WITH_SIGNAL_SCOPE


def enter_domain() -> None:
    """The calling thread and all its future children."""
    attributes = struct.pack("<QQQ", 0, 0, _SCOPE_SIGNAL)
    ruleset = syscall(
        "landlock_create_ruleset",
        _SYS_CREATE_RULESET,
        ctypes.create_string_buffer(attributes, len(attributes)),
        len(attributes),
        0,
    )
    try:
        set_no_new_privileges()
        syscall("landlock_restrict_self", _SYS_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
