"""The second wall: a Landlock domain, whatever the policy says.

Any domain keeps everybody in it from tracing, opening the memory of, and taking descriptors from
whoever is outside; its signal scope keeps signals inside, whatever makes the kernel send them. What
a policy lets out all the same is sent by the supervisor, who stands outside.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from sigwrap.errors import KernelError
from sigwrap.linux.libc import set_no_new_privileges, syscall

_SYS_CREATE_RULESET = 444
_SYS_ADD_RULE = 445
_SYS_RESTRICT_SELF = 446
_VERSION = 1
_SCOPE_SIGNAL = 2
_BENEATH_PATH = 1
_WRITE_FILE = 1 << 1
_REFER = 1 << 13  # renames and links between folders: refused by any domain that doesn't handle it
_ABI_WITH_SIGNAL_SCOPE = 6

NEEDS = "Linux 6.12 with Landlock"


def is_available() -> bool:
    """A kernel whose Landlock has no scopes yet could only offer a domain that forbids mounts."""
    try:
        abi = syscall("landlock_create_ruleset", _SYS_CREATE_RULESET, 0, 0, _VERSION)
    except KernelError:
        return False
    return abi >= _ABI_WITH_SIGNAL_SCOPE


def enter_domain(writable: Iterable[str] | None) -> None:
    """The calling thread and all its future children. `writable`: only beneath these paths files
    are opened for writing, and nobody mounts anything any more, which is any such domain's price;
    None: everywhere."""
    handled = 0 if writable is None else _WRITE_FILE | _REFER
    attributes = struct.pack("<QQQ", handled, 0, _SCOPE_SIGNAL)
    ruleset = syscall(
        "landlock_create_ruleset",
        _SYS_CREATE_RULESET,
        ctypes.create_string_buffer(attributes, len(attributes)),
        len(attributes),
        0,
    )
    try:
        for path in writable or ():
            _allow_writing(ruleset, path)
        set_no_new_privileges()
        syscall("landlock_restrict_self", _SYS_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow_writing(ruleset: int, path: str) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # it is gone, or nobody's here
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISLNK(mode):
            return
        rights = _WRITE_FILE | _REFER if stat.S_ISDIR(mode) else _WRITE_FILE
        rule = struct.pack("<Qi", rights, fd)
        syscall("landlock_add_rule", _SYS_ADD_RULE, ruleset, _BENEATH_PATH, rule, 0)
    finally:
        os.close(fd)
