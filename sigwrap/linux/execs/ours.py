"""What sigwrap knows of the file system by itself, whatever a caller shows it."""

from __future__ import annotations

from sigwrap.linux.execs.elsewhere import Mounts
from sigwrap.linux.paths import our_view


class Ours:
    __slots__ = ("mounts", "view")

    def __init__(self) -> None:
        self.view = our_view()
        self.mounts = Mounts(self.view.root)
