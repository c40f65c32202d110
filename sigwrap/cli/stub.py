"""`sigwrap-stub`: what an intercepted command becomes. A supervisor starts it, nobody else."""

from __future__ import annotations

from sigwrap.errors import SigwrapError
from sigwrap.status import NOT_EXECUTABLE


class NotSupervised(SigwrapError):
    """There is no supervisor to serve it, and the original command must not run instead."""

    status = NOT_EXECUTABLE


def main(words: list[str]) -> int:
    raise NotSupervised("no supervisor speaks to this process; sigwrap starts it, not people")
