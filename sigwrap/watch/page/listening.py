"""The socket that the page listens on: a port of 127.0.0.1, or a file of the user."""

from __future__ import annotations

import errno
import os
import socket
import stat
from contextlib import suppress

from sigwrap.errors import UsageError
from sigwrap.escape import printable
from sigwrap.linux.taken import refuse_descriptors
from sigwrap.protocols.left_sockets import is_left

_HOST = "127.0.0.1"
_BACKLOG = 4_096
_MODE = 0o600
_LONGEST_PATH = 107  # sun_path


def at_port(port: int) -> socket.socket:
    """Listen on a port, 0 for any free one; UsageError if that fails."""
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # an earlier server's TIME_WAIT
        end.bind((_HOST, port))
        end.listen(_BACKLOG)
    except OSError as error:
        end.close()
        is_used = error.errno == errno.EADDRINUSE
        why = f"port {port} is in use" if is_used else f"port {port}: {error.strerror}"
        raise UsageError(why, "choose another port, or omit --port") from error
    return end


class SocketFile:
    """A socket file, removed at the end if it is still this one."""

    def __init__(self, path: str) -> None:
        """Listen; UsageError if that fails."""
        self.path = os.path.abspath(path)
        self.end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        umask = os.umask(0o777 & ~_MODE)
        try:
            self._check(path)
            self._remove_if_left_over()
            self.end.bind(self.path)
            self._found = os.lstat(self.path)
            refuse_descriptors(self.end)
            self.end.listen(_BACKLOG)
        except OSError as error:
            is_used = error.errno == errno.EADDRINUSE
            raise self._refused("the file exists" if is_used else error.strerror or "") from error
        finally:
            os.umask(umask)

    @property
    def is_in_place(self) -> bool:
        """Return whether the path still leads to this socket."""
        try:
            return os.path.samestat(os.lstat(self.path), self._found)
        except OSError:
            return False

    def close(self) -> None:
        self.end.close()
        if self.is_in_place:
            with suppress(OSError):
                os.unlink(self.path)

    def _check(self, path: str) -> None:
        if not path:
            raise self._refused("it is empty")
        if len(os.fsencode(self.path)) > _LONGEST_PATH:
            raise self._refused(f"it is longer than {_LONGEST_PATH} bytes")
        found = os.stat(os.path.dirname(self.path))
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
            raise self._refused("other users may write to its directory")

    def _refused(self, why: str) -> UsageError:
        self.end.close()
        hint = "choose a path in a directory that only you may write to, such as $XDG_RUNTIME_DIR"
        return UsageError(f"--socket {printable(self.path)}: {why}", hint)

    def _remove_if_left_over(self) -> None:
        """Remove the file of a server that was killed: no process listens on it."""
        folder, name = os.path.split(self.path)
        folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if is_left(folder_fd, name):
                os.unlink(name, dir_fd=folder_fd)
        finally:
            os.close(folder_fd)
