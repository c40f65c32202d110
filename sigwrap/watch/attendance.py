"""Tells the sessions that an approver is watching, by a lock on the folder of their control
sockets: a session that has just started knows it at once."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from sigwrap.approve.control_socket import attend, control_folder
from sigwrap.log.folder import Folder, private_folder
from sigwrap.text import printable


class Attendance:
    def __init__(self, store: str) -> None:
        self._path = control_folder(store)
        self._folder: Folder | None = None
        self._is_wanted = False
        self.problem = ""
        self._lock = threading.Lock()

    def attend(self, is_wanted: bool) -> None:
        """Take or leave the lock; `problem` says why it cannot be taken."""
        self._is_wanted = is_wanted
        self.problem = ""
        try:
            self._update()
        except OSError as error:
            why = f"cannot use {printable(self._path)}: {error.strerror}"
            self.problem = f"{why} (choose another directory with --store)"

    def look(self) -> None:
        """Take the lock again if a process in a session has put another folder in its place. A
        store that was removed stays so."""
        with suppress(OSError):  # then the sessions can't be reached either, and the source says so
            if os.path.isdir(os.path.dirname(self._path)):
                self._update()

    def _update(self) -> None:
        with self._lock:
            folder, self._folder = self._folder, None
            if folder is not None and self._is_wanted and self._is_in_place(folder):
                self._folder = folder
                return
            if folder is not None:
                folder.close()  # the lock goes with it
            if not self._is_wanted:
                return
            folder = private_folder(self._path)
            try:
                attend(folder.fd)
            except OSError:
                folder.close()
                raise
            self._folder = folder

    def _is_in_place(self, folder: Folder) -> bool:
        with suppress(OSError):
            return os.path.samestat(os.stat(self._path), os.fstat(folder.fd))
        return False
