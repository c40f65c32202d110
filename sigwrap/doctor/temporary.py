"""The temporary folder, as the binary's bootloader looks for one, and whether it could start from
there."""

from __future__ import annotations

import mmap
import os

from sigwrap.doctor.items import TEMPORARY, Finding

_NAMED_BY = ("TMPDIR", "TEMP", "TMP")
_ELSE = ("/tmp", "/var/tmp", "/usr/tmp")


def candidates() -> list[str]:
    named = [os.environ[name] for name in _NAMED_BY if os.environ.get(name)]
    return [*named, *_ELSE]


def try_temporary() -> Finding:
    why = ""
    for folder in candidates():
        path = os.path.join(folder, f"sigwrap-doctor-{os.urandom(6).hex()}")
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
        except OSError as refusal:
            why = why or f"{folder}: {refusal.strerror}"
            continue
        os.unlink(path)
        return _mapped_as_code(folder, fd)
    return Finding(TEMPORARY, why, "unusable")


def _mapped_as_code(folder: str, fd: int) -> Finding:
    try:
        os.write(fd, bytes(mmap.PAGESIZE))
        mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
    except PermissionError:
        return Finding(TEMPORARY, f"{folder}: mounted noexec", "noexec")
    except OSError as refusal:
        return Finding(TEMPORARY, f"{folder}: {refusal.strerror}", "unusable")
    return Finding(TEMPORARY, f"{folder}: writable, allows executables")
