"""Facts that several mediators share."""

from __future__ import annotations

from sigwrap.bare import NamedTuple


class WouldFail(NamedTuple):
    """An errno with which the kernel would refuse the call. Sigwrap returns it itself, because the
    kernel would read the caller's memory again, which may have changed."""

    errno: int
