"""The socket by which commands join. Whoever runs as this user can remove it, or put another in its
place: then there is a new one, lest those that come after start a session of their own.
"""

from __future__ import annotations

import fcntl
import os

from sigwrap.bare import socket
from sigwrap.errors import StoreError
from sigwrap.linux.peer import objection_to_listener
from sigwrap.linux.taken import let_go
from sigwrap.protocols.control import socket_path
from sigwrap.protocols.joined import KIND, LOCK_SUFFIX, SOCKET_SUFFIX, joined_folder
from sigwrap.store.folder import private_folder

_BACKLOG = 64
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Door:
    def __init__(self, store: str, join_name: str) -> None:
        """StoreError where nobody could join."""
        self._name = join_name + SOCKET_SUFFIX
        self._lock = join_name + LOCK_SUFFIX
        self.path = os.path.join(joined_folder(store), self._name)
        try:
            self._folder = private_folder(joined_folder(store))
            self._folder.remove(self._name)  # of one that has ended: who starts us holds the lock
            self.socket = self._bound()
        except OSError as error:
            raise StoreError(f"nothing can join by {self.path}: {error.strerror}") from error

    def open(self) -> None:
        self.socket.listen(_BACKLOG)

    def objection(self) -> str:
        """What somebody has done to it; empty where nobody has."""
        if not self._folder.is_reached:
            return "its folder was removed, moved, replaced or closed"
        found = self._folder.status(self._name)
        if found is None:
            return "it was removed"
        return "" if os.path.samestat(found, self._found) else "another file was put in its place"

    def restore(self) -> bool:
        """False where there can't be a new one, or another session has its place by now. What the
        old one's number is watched for ends before."""
        try:
            self._folder.reach()
            lock = os.open(self._lock, _LOCK_FLAGS, 0o600, dir_fd=self._folder.fd)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # somebody is starting one
            if self._is_anothers():
                return False
            self._folder.remove(self._name)
            old, self.socket = self.socket, self._bound()
            let_go(old.detach())
        except OSError:
            return False
        finally:
            os.close(lock)
        return True

    def close(self) -> None:
        """To whoever comes from now on, nobody listens."""
        if not self.objection():
            self._folder.remove(self._name)
        let_go(self.socket.detach())

    def _bound(self) -> socket.socket:
        end = socket.socket(socket.AF_UNIX, KIND | socket.SOCK_NONBLOCK)
        umask = os.umask(0o177)
        try:
            end.bind(socket_path(self._folder.fd, self._name))
            self._found = os.stat(self._name, dir_fd=self._folder.fd, follow_symlinks=False)
        except BaseException:
            end.close()
            raise
        finally:
            os.umask(umask)
        return end

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
