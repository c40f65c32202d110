"""Listening sockets that other processes cannot use to stall the supervisor, or take away."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable

from sigwrap.bare import socket
from sigwrap.linux.foreign_fds import let_go, refuse_descriptors
from sigwrap.linux.peer import Peer, examine
from sigwrap.linux.presence import is_attended
from sigwrap.linux.sockets.diag import file_of, named
from sigwrap.protocols.control import socket_path
from sigwrap.run.loop import Loop
from sigwrap.store.folder import Interfered, new_name, private_folder

_REFUSALS_AT_ONCE = 10
_PAUSE_S = 0.2
_BACKLOG = 64
_MODE = 0o600
_NUMBER = 0xFFFFFFFF  # the part of an inode number that the kernel reports for a socket's file


class GuardedListener:
    """Accepts connections in the loop. After many refusals it pauses, so that a flood cannot starve
    the loop; the backlog holds those who connect meanwhile."""

    def __init__(self, loop: Loop, on_arrival: Callable[[socket.socket, Peer], None]) -> None:
        """`on_arrival` gets a non-blocking connection and its peer."""
        self._loop = loop
        self._on_arrival = on_arrival
        self._end: socket.socket | None = None
        self._is_watched = False
        self._refusals = 0

    def open(self, end: socket.socket) -> None:
        """Accept connections to this listening socket."""
        self._end = end
        self._watch()

    def close(self) -> None:
        self._unwatch()
        self._end = None

    def pause(self) -> None:
        self._unwatch()
        self._watch_later()

    def refuse(self, accepted: socket.socket, reply: bytes) -> None:
        try:
            accepted.send(reply, socket.MSG_NOSIGNAL)
        except OSError:
            pass
        let_go(accepted.detach())  # closing it here could block: sockets in it may linger
        self._refusals += 1
        if self._refusals % _REFUSALS_AT_ONCE == 0:
            self.pause()

    def _watch(self) -> None:
        if self._is_watched or self._end is None:
            return
        try:
            self._loop.watch(self._end.fileno(), self._on_connection)
        except OSError:  # epoll takes no more
            self._watch_later()
        else:
            self._is_watched = True

    def _unwatch(self) -> None:
        if self._is_watched and self._end is not None:
            self._is_watched = False
            self._loop.unwatch(self._end.fileno())

    def _watch_later(self) -> None:
        self._loop.call_at(time.monotonic() + _PAUSE_S, self._watch)

    def _on_connection(self, _happened: int) -> None:
        if self._end is None:
            return
        try:
            accepted, _address = self._end.accept()
        except OSError:  # the peer has left, or no descriptor is free now
            self.pause()
            return
        accepted.setblocking(False)
        self._on_arrival(accepted, examine(accepted))


class NamedSocket:
    """Listens under a name in the store. Another process of the user can remove that file, change
    its mode or replace it; `restore` then makes a new socket under the name."""

    def __init__(self, path: str) -> None:
        """Raises OSError if it cannot be made."""
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
        """The listening socket; another one after `restore`."""
        return self._end

    @property
    def is_attended(self) -> bool:
        """Whether a screen or a page waits for requests at the socket's directory."""
        try:
            return is_attended(self._folder.fd)
        except OSError:  # it was closed
            return False

    def objection(self) -> str:
        """Return what another process has done to it, or an empty string."""
        if not self._folder.is_reached:
            return "its directory was removed, moved, replaced or closed"
        found = self._folder.status(self._name)
        if found is None:
            return "it was removed"
        if not os.path.samestat(found, self._found):
            return "another file was put in its place"
        return "" if stat.S_IMODE(found.st_mode) == _MODE else "its mode was changed"

    def restore(self) -> None:
        """Make another socket under the name, or raise OSError. Stop watching the old one first."""
        self._folder.make_again()
        old, (self._end, self._found) = self._end, self._new()
        let_go(old.detach())

    def close(self) -> None:
        let_go(self._end.detach())
        found = self._folder.status(self._name)
        if found is not None and os.path.samestat(found, self._found):
            self._folder.remove(self._name)
        self._folder.close()

    def _new(self) -> tuple[socket.socket, os.stat_result]:
        """Return a listening socket and the status of its file, which replaces any other."""
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
