"""A socket that listens under a name in the store.

Any process of the user can remove it, change its mode, or put another file in its place. Then
sigwrap makes another socket, so that the next client can connect.
"""

from __future__ import annotations

import errno
import os
import stat

from sigwrap.bare import socket
from sigwrap.linux.presence import is_attended
from sigwrap.linux.sockets.diag import file_of, named
from sigwrap.linux.taken import let_go, refuse_descriptors
from sigwrap.protocols.control import socket_path
from sigwrap.store.folder import Interfered, new_name, private_folder

_BACKLOG = 64
_MODE = 0o600
_NUMBER = 0xFFFFFFFF  # the kernel shows these bits of the inode of a socket's file


class NamedSocket:
    def __init__(self, path: str) -> None:
        """Make it. Raises OSError."""
        self._name = os.path.basename(path)
        self._folder = private_folder(os.path.dirname(path))
        try:
            if self._folder.status(self._name) is not None:
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            self._end, self._found = self._new()
        except OSError:
            self._folder.close()
            raise

    @property
    def end(self) -> socket.socket:
        """Return the socket. Each `restore` replaces it."""
        return self._end

    @property
    def is_attended(self) -> bool:
        """Return whether a process waits at its folder for approval requests."""
        try:
            return is_attended(self._folder.fd)
        except OSError:  # it was closed
            return False

    def objection(self) -> str:
        """Return what was done to it, or ""."""
        if not self._folder.is_reached:
            return "its directory was removed, moved, replaced or closed"
        found = self._folder.status(self._name)
        if found is None:
            return "it was removed"
        if not os.path.samestat(found, self._found):
            return "another file was put in its place"
        return "" if stat.S_IMODE(found.st_mode) == _MODE else "its mode was changed"

    def restore(self) -> None:
        """Put another socket in its place. Raises OSError. Stop watching the old one before."""
        self._folder.reach()
        old, (self._end, self._found) = self._end, self._new()
        let_go(old.detach())

    def close(self) -> None:
        """Stop listening, and remove the socket."""
        let_go(self._end.detach())
        found = self._folder.status(self._name)
        if found is not None and os.path.samestat(found, self._found):
            self._folder.remove(self._name)
        self._folder.close()

    def _new(self) -> tuple[socket.socket, os.stat_result]:
        """Make a listening socket under the name, whatever has it; return it and its file."""
        unfinished = new_name(self._name)
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            umask = os.umask(0o777 & ~_MODE)
            try:
                end.bind(socket_path(self._folder.fd, unfinished))
            finally:
                os.umask(umask)
            found = self._folder.status(unfinished)
            its_file = file_of(named(end.fileno()))
            if found is None or (its_file and its_file[0] != found.st_ino & _NUMBER):
                raise Interfered("another process removes or replaces it")
            refuse_descriptors(end)
            end.listen(_BACKLOG)
            self._folder.put(unfinished, self._name)
        except BaseException:
            self._folder.remove(unfinished)
            end.close()
            raise
        return end, found
