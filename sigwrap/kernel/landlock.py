"""Put a session into a Landlock domain.

In any domain, no process can trace a process outside it, open its memory or take its descriptors.
The signal scope keeps all signals inside, also those that the kernel sends. The supervisor is
outside, and sends the signals that a policy lets out. File rules apply to every call. The price: no
process in a domain can mount anything.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Collection, Iterable

from sigwrap.bare import TYPE_CHECKING
from sigwrap.errors import KernelError
from sigwrap.kernel.libc import set_no_new_privileges, syscall
from sigwrap.kernel.paths import open_without_links
from sigwrap.machine import NUMBERS
from sigwrap.policy.judge.request import Operation

if TYPE_CHECKING:
    from sigwrap.policy.judge.files import SandboxRule

_SYS_CREATE_RULESET = NUMBERS["landlock_create_ruleset"]
_SYS_ADD_RULE = NUMBERS["landlock_add_rule"]
_SYS_RESTRICT_SELF = NUMBERS["landlock_restrict_self"]
_VERSION = 1
_SCOPE_SIGNAL = 2
_CONNECT_TCP = 1 << 1
_BENEATH_PATH = 1

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_REMOVE_DIR = 1 << 4
_REMOVE_FILE = 1 << 5
_MAKE_DEVICES = 1 << 6 | 1 << 11  # never allowed: a device node can write to any disk
_MAKE = 0b11111 << 7 & ~_MAKE_DEVICES | 1 << 12  # folders, files, sockets, pipes, symbolic links
_REFER = 1 << 13  # renames and links between folders; if not handled, a domain refuses them
_TRUNCATE = 1 << 14
_RIGHTS = {
    Operation.READ: _READ_FILE,
    Operation.WRITE: _WRITE_FILE | _TRUNCATE,
    Operation.CREATE: _MAKE | _REFER,
    Operation.DELETE: _REMOVE_DIR | _REMOVE_FILE,
    Operation.EXECUTE: _EXECUTE,
}
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_BY_ACCESS = {
    os.O_RDONLY: _READ_FILE,
    os.O_WRONLY: _WRITE_FILE | _TRUNCATE,
    os.O_RDWR: _READ_FILE | _WRITE_FILE | _TRUNCATE,
}
_STANDARD_STREAMS = (0, 1, 2)
_ABI_WITH_TRUNCATE = 3
_ABI_WITH_SIGNAL_SCOPE = 6

NEEDS = "Linux 6.12 with Landlock"
FILES_NEED = "Linux 6.2 with Landlock"


def is_available() -> bool:
    """Return whether Landlock has scopes. Without them, a domain would only forbid mounts."""
    return abi() >= _ABI_WITH_SIGNAL_SCOPE


def holds_files() -> bool:
    return abi() >= _ABI_WITH_TRUNCATE


def abi() -> int:
    """Return Landlock's ABI version, 0 if there is none."""
    try:
        return syscall("landlock_create_ruleset", _SYS_CREATE_RULESET, 0, 0, _VERSION)
    except KernelError:
        return 0


def enter_domain(ruleset: int) -> None:
    """Put the calling thread and all its future children into the domain of a ruleset."""
    set_no_new_privileges()
    syscall("landlock_restrict_self", _SYS_RESTRICT_SELF, ruleset, 0)


def make_ruleset(
    restricted: Collection[Operation],
    rules: Iterable[SandboxRule],
    *,
    keeps_signals: bool,
    connects: bool,
) -> int:
    """Return the descriptor of a new ruleset.

    In its domain, only the `restricted` operations of the rules work. Unless it `connects`, no call
    makes a TCP connection, if the kernel has scopes.
    """
    handled = _rights(restricted)
    if handled:
        handled |= _REFER
    if Operation.CREATE in restricted:
        handled |= _MAKE_DEVICES
    scope = _SCOPE_SIGNAL if keeps_signals else 0
    # An older kernel refuses attributes that it does not know, unless they are zero.
    network = 0 if connects else _CONNECT_TCP
    attributes = struct.pack("<QQQ", handled, network, scope)[: 24 if scope else 8]
    ruleset = syscall(
        "landlock_create_ruleset",
        _SYS_CREATE_RULESET,
        ctypes.create_string_buffer(attributes, len(attributes)),
        len(attributes),
        0,
    )
    try:
        if handled and Operation.CREATE not in restricted:
            _allow(ruleset, "/", _REFER)
        for rule in rules:
            _allow(ruleset, rule.path, _rights(rule.operations))
        for fd in _STANDARD_STREAMS:
            _allow_what_was_given(ruleset, fd, handled)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _allow_what_was_given(ruleset: int, fd: int, handled: int) -> None:
    """Allow a file that the command inherits open, because programs open /dev/stdout again."""
    try:
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        return
    rights = handled & _BY_ACCESS[fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE] if is_file else 0
    if not rights:
        return
    try:
        _add(ruleset, fd, rights)
    except KernelError as error:
        if error.errno != errno.EBADFD:  # a file in memory (memfd_create), which no rule restricts
            raise


def _rights(operations: Collection[Operation]) -> int:
    rights = 0
    for each in operations:
        rights |= _RIGHTS[each]
    return rights


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Add a rule, unless the path is gone, unreadable or has become a link."""
    try:
        fd = open_without_links(path)  # the rule applies to the file that was listed by this name
    except OSError:
        return
    try:
        _add(ruleset, fd, rights)
    except KernelError as refusal:
        if refusal.errno != errno.EINVAL:
            raise
        if of_a_file := rights & _OF_A_FILE:  # fstat might wait for a file server
            _add(ruleset, fd, of_a_file)
    finally:
        os.close(fd)


def _add(ruleset: int, fd: int, rights: int) -> None:
    rule = struct.pack("<Qi", rights, fd)
    syscall("landlock_add_rule", _SYS_ADD_RULE, ruleset, _BENEATH_PATH, rule, 0)
