"""What sigwrap knows of the file system by itself, whatever a caller shows it."""

from __future__ import annotations

from sigwrap.linux.execs.elsewhere import Mounts
from sigwrap.linux.execs.twins import Twins
from sigwrap.linux.paths import our_view
from sigwrap.policy.judge.named import Named


class Ours:
    __slots__ = ("mounts", "twins", "view")

    def __init__(self, named: Named, search_path: str) -> None:
        self.view = our_view()
        self.mounts = Mounts(self.view.root)
        self.twins = Twins(named, search_path)
