"""Sessions are to know that somebody is here whom they can ask: by a lock on the folder of their
control sockets, so that one that has just started knows it at once."""

from __future__ import annotations

import os
import threading

from sigwrap.errors import StoreError
from sigwrap.escape import printable
from sigwrap.linux import presence
from sigwrap.protocols.control import control_folder
from sigwrap.store.folder import Folder, private_folder


class Attendance:
    def __init__(self, store: str) -> None:
        self._path = control_folder(store)
        self._folder: Folder | None = None
        self._is_wanted = False
        self._lock = threading.Lock()

    def attend(self, is_wanted: bool) -> None:
        """StoreError where it can't be told."""
        self._is_wanted = is_wanted
        try:
            self._be_as_wanted()
        except OSError as error:
            why = f"cannot use {printable(self._path)}: {error.strerror}"
            raise StoreError(why, "choose another directory with --store") from error

    def look(self) -> None:
        """Whoever is inside may have put another folder in its place. A store that somebody has
        removed stays so."""
        try:
            if os.path.isdir(os.path.dirname(self._path)):
                self._be_as_wanted()
        except OSError:
            pass  # the sessions can't be reached there either, and that is said

    def close(self) -> None:
        with self._lock:
            self._leave()

    def _be_as_wanted(self) -> None:
        with self._lock:
            if self._folder is not None and not (self._is_wanted and self._is_in_place):
                self._leave()
            if self._is_wanted and self._folder is None:
                folder = private_folder(self._path)
                try:
                    presence.come(folder.fd)
                except OSError:
                    folder.close()
                    raise
                self._folder = folder

    @property
    def _is_in_place(self) -> bool:
        try:
            return self._folder is not None and os.path.samestat(
                os.stat(self._path), os.fstat(self._folder.fd)
            )
        except OSError:
            return False

    def _leave(self) -> None:
        if self._folder is not None:
            self._folder.close()  # the lock goes with it
            self._folder = None
