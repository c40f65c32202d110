"""What is in a file, so that a change of it shows: its state, which every write and every rename
over it changes, and a digest, for stores through a mapping that is dirty already change no state.

Of a large file, only the state: hashing it would hold up everybody. Of one that some process serves
(FUSE, NFS) as well: what it shows to us, it need not show to others.
"""

from __future__ import annotations

import hashlib
import os
import stat

from sigwrap.linux.paths import is_served_by_others

_MOST_HASHED_BYTES = 16 << 20  # in about 20 ms


def content_of(fd: int) -> str:
    """`fd` may be an O_PATH one."""
    state = os.fstat(fd)
    known = f"{state.st_dev}:{state.st_ino} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}"
    if not stat.S_ISREG(state.st_mode) or state.st_size > _MOST_HASHED_BYTES:
        return known
    return f"{known} {_digest(fd)}"


def _digest(fd: int) -> str:
    """Empty where it can't be had without waiting."""
    try:
        if is_served_by_others(fd):
            return ""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a write lease would make us wait
        with open(os.open(f"/proc/self/fd/{fd}", flags), "rb", buffering=0) as file:
            digest = hashlib.blake2b(digest_size=32)
            left = _MOST_HASHED_BYTES  # somebody may go on appending to it
            while left > 0 and (block := file.read(min(left, 1 << 20))):
                digest.update(block)
                left -= len(block)
            return digest.hexdigest()
    except OSError:
        return ""
