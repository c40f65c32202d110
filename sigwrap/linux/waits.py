"""How long a poll may wait."""

from __future__ import annotations

import time

_LONGEST_S = 3600.0  # the kernel's number of milliseconds holds no more than 24 days


def seconds_until(deadline_s: float) -> float:
    """`deadline_s` on the monotonic clock. A wait may end before a deadline that is far away."""
    return min(max(0.0, deadline_s - time.monotonic()), _LONGEST_S)
