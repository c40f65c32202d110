"""`sigwrap-stub`: stands in for a command whose exec was redirected to it.

Only a supervisor starts it. Its arguments are the command's path and argv.
"""

from __future__ import annotations

import os

from sigwrap.errors import NOT_EXECUTABLE, SigwrapError


class NotSupervised(SigwrapError):
    """No supervisor serves this stub, and the original command must not run instead."""

    status = NOT_EXECUTABLE


def main(words: list[str]) -> int:
    from sigwrap.record import STUB_VARIABLE

    caller_ignored = os.environ.get(STUB_VARIABLE)
    if caller_ignored is None or len(words) < 2:
        raise NotSupervised("only a sigwrap supervisor can start this program")
    from sigwrap.record.stand_in import stand_in_for

    ignored = frozenset(int(number) for number in caller_ignored.split(",") if number.isdigit())
    return stand_in_for(words[0], words[1:], ignored)
