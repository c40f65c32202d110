"""Where an exec would run: its root and its folder, which have to be the same at the exec stop once
somebody was asked about them."""

from __future__ import annotations

import os

from sigwrap.linux.execs.elsewhere import Mounts
from sigwrap.linux.file_state import Place, place_of, place_of_descriptor
from sigwrap.linux.paths import Caller, path_of
from sigwrap.mediate.effects import NOWHERE, Whereabouts


class Where:
    __slots__ = ("_caller", "_folder", "_mounts")

    def __init__(self, caller: Caller, mounts: Mounts) -> None:
        self._caller = caller
        self._mounts = mounts
        self._folder: Place | None = None

    def read(self) -> Whereabouts:
        try:
            folder = self._caller.open_folder()
        except OSError:  # the caller ends, or may not be looked into any more
            return NOWHERE
        try:
            self._folder = place_of_descriptor(folder)
            are_ours = self._caller.shares_our_root and self._mounts.hold(folder)
            return Whereabouts(
                path_of(folder),
                f"{self._caller.root} {self._folder}",
                are_ours,
                is_covered=are_ours and self._mounts.cover(folder),
            )
        finally:
            os.close(folder)

    def holds(self, pid: int) -> bool:
        """At the exec stop; the root is always compared."""
        return self._folder is None or place_of(b"/proc/%d/cwd" % pid) == self._folder
