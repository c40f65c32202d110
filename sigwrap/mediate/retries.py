"""Denied execs that repeat one in the next directory of PATH, as a shell does after EACCES for
/usr/bin/X: it tries /bin/X."""

from __future__ import annotations

from sigwrap.events import Payload, text
from sigwrap.mediate.lineage import Process

_PROCESSES_KEPT = 1_000
_FOLDERS_KEPT = 64


class Retries:
    def __init__(self) -> None:
        self._denied: dict[Process, tuple[object, set[str]]] = {}

    def is_one(self, process: Process, denied: Payload) -> bool:
        """Return whether the process asked before for the same words in another directory."""
        folder, _, name = text(denied.get("path")).rpartition("/")
        what = denied.get("argv"), denied.get("rule_name"), name
        before, folders = self._denied.get(process, (None, set[str]()))
        if before == what and folder not in folders and len(folders) < _FOLDERS_KEPT:
            folders.add(folder)
            return True
        self._denied[process] = what, {folder}
        if len(self._denied) > _PROCESSES_KEPT:
            del self._denied[next(iter(self._denied))]
        return False
