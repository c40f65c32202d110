"""The socket by which commands join, one session's at a time: who puts one there holds a lock."""

from __future__ import annotations

import fcntl
import os

from sigwrap.bare import socket
from sigwrap.errors import StoreError
from sigwrap.linux.peer import objection_to_listener
from sigwrap.protocols.control import socket_path
from sigwrap.protocols.joined import KIND, LOCK_SUFFIX, SOCKET_SUFFIX, joined_folder
from sigwrap.run.named_socket import NamedSocket

_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Door(NamedSocket):
    def __init__(self, store: str, join_name: str) -> None:
        """StoreError where nobody could join."""
        path = os.path.join(joined_folder(store), join_name + SOCKET_SUFFIX)
        try:  # instead of one of a session that has ended: who starts us holds the lock
            super().__init__(path, KIND, takes_descriptors=True, instead_of_another=True)
        except OSError as error:
            raise StoreError(f"nothing can join by {path}: {error.strerror}") from error
        self._lock = join_name + LOCK_SUFFIX

    def restore(self) -> None:
        """OSError also where another session has its place by now."""
        self._folder.reach()
        lock = os.open(self._lock, _LOCK_FLAGS, 0o600, dir_fd=self._folder.fd)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # somebody is starting one
            if not self._is_there and self._is_anothers():
                raise FileExistsError
            self._replace()
        finally:
            os.close(lock)

    def _is_anothers(self) -> bool:
        """Of a session, and of none that is only played by whoever is inside."""
        end = socket.socket(socket.AF_UNIX, KIND | socket.SOCK_NONBLOCK)
        try:
            end.connect(socket_path(self._folder.fd, self._name))
            return not objection_to_listener(end)
        except OSError as error:
            return isinstance(error, BlockingIOError)
        finally:
            end.close()
