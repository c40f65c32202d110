"""What sigwrap knows by itself of files and variables, whatever a caller shows it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sigwrap.linux.execs.elsewhere import Mounts
from sigwrap.linux.execs.twins import Twins
from sigwrap.linux.paths import our_view
from sigwrap.policy.judge.named import Named


class Ours:
    __slots__ = ("mounts", "twins", "variables", "view")

    def __init__(self, variables: Mapping[str, bytes], named: Named) -> None:
        self.variables = variables
        self.view = our_view()
        self.mounts = Mounts(self.view.root)
        self.twins = Twins(named, os.fsdecode(variables.get("PATH", b"")), self.view)
