"""What sigwrap knows by itself of files and variables, whatever a caller shows it."""

from __future__ import annotations

from collections.abc import Mapping

from sigwrap.linux.execs.elsewhere import Mounts
from sigwrap.linux.paths import our_view


class Ours:
    __slots__ = ("mounts", "variables", "view")

    def __init__(self, variables: Mapping[str, bytes]) -> None:
        self.variables = variables
        self.view = our_view()
        self.mounts = Mounts(self.view.root)
