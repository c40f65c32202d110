"""How much a pipe holds before its writer has to wait."""

from __future__ import annotations

import fcntl


def widen(pipe: int, size: int) -> None:
    """Where its user has as much in pipes as one may, it stays as it is."""
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)
    except OSError:
        pass
