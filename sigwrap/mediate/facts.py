"""Facts that more than one mediator gets."""

from __future__ import annotations

from sigwrap.tuples import NamedTuple


class WouldFail(NamedTuple):
    """The kernel would refuse the call with this errno. The caller gets it from sigwrap: the kernel
    would look again, and by then there may be something else in the caller's memory."""

    errno: int
