"""What sigwrap knows by itself of files and variables, whatever a caller shows it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sigwrap.linux.execs.elsewhere import Mounts
from sigwrap.linux.execs.named_files import NamedFiles
from sigwrap.linux.execs.shadows import SystemCommands
from sigwrap.linux.paths import our_view
from sigwrap.policy.judge.globs import Named


class Ours:
    __slots__ = ("commands", "mounts", "named_files", "variables", "view")

    def __init__(self, variables: Mapping[str, bytes], named: Named, path: bytes = b"") -> None:
        """`variables`: the user's own, of which the session was given all."""
        self.variables = variables
        self.view = our_view()
        self.mounts = Mounts(self.view.root)
        self.commands = SystemCommands(self.view, os.fsdecode(path))
        self.named_files = NamedFiles(named, os.fsdecode(path), self.view)
