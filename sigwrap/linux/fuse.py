"""Who serves a file system: whoever has the FUSE device open."""

from __future__ import annotations

import os
import stat

from sigwrap.linux import proc_files, procfs
from sigwrap.linux.file_state import device_of

_DEVICE = (stat.S_IFCHR, 10, 229)


def serves(pid: int) -> bool:
    """PermissionError where it may not be looked into. Any of its threads may: each can have
    descriptors of its own."""
    return any(_has_device(f"/proc/{pid}/task/{tid}/fd") for tid in procfs.threads(pid))


def _has_device(folder: str) -> bool:
    try:
        return any(_is_device(f"{folder}/{fd}") for fd in proc_files.names(folder))
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return False


def _is_device(path: str) -> bool:
    try:
        return device_of(os.fsencode(path)) == _DEVICE
    except OSError:
        return False
