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

_HOST = "127.0.0.1"
_BACKLOG = 4_096
_MODE = 0o600
_LONGEST_PATH = 107  # sun_path


def at_port(port: int) -> socket.socket:
    """Listen on a port, 0 for any free one; UsageError if that fails."""
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        end.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # a server that just ended leaves the port in TIME_WAIT
        end.bind((_HOST, port))
        end.listen(_BACKLOG)
    except OSError as error:
        end.close()
        hint = "choose another port, or omit --port"
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"port {port} is in use", hint) from error
        raise UsageError(f"cannot listen on port {port}: {error.strerror}", hint) from error
    return end


class SocketFile:
    """A socket file, removed at the end if it is still this one."""

    def __init__(self, path: str) -> None:
        """UsageError if the file cannot be made."""
        self.path = os.path.abspath(path)
        self._check(path)
        self.end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        umask = os.umask(0o777 & ~_MODE)
        try:
            self._remove_if_left_over()
            self.end.bind(self.path)
            self._found = os.lstat(self.path)
            refuse_descriptors(self.end)
            self.end.listen(_BACKLOG)
        except OSError as error:
            self.end.close()
            if error.errno == errno.EADDRINUSE:
                hint = "choose another path"
                raise UsageError(f"--socket {self._shown}: the file exists", hint) from error
            raise self._refused(error.strerror or "") from error
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

    @property
    def _shown(self) -> str:
        return printable(self.path)

    def _check(self, path: str) -> None:
        if not path:
            raise self._refused("it is empty")
        if len(os.fsencode(self.path)) > _LONGEST_PATH:
            raise self._refused(f"it is longer than {_LONGEST_PATH} bytes")
        folder = os.path.dirname(self.path)
        try:
            found = os.stat(folder)
        except OSError as error:
            raise self._refused(f"its directory: {error.strerror}") from error
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
            raise UsageError(
                f"--socket {self._shown}: other users may write to its directory",
                "choose a directory that only you may write to, such as $XDG_RUNTIME_DIR",
            )

    def _refused(self, why: str) -> UsageError:
        return UsageError(f"--socket {self._shown}: {why}", "choose another path")

    def _remove_if_left_over(self) -> None:
        """Remove the file of a server that was killed: no process listens on it."""
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode):
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
            try:
                probe.connect(self.path)
            except ConnectionRefusedError:
                os.unlink(self.path)
            except OSError:
                pass  # its backlog is full, so a server listens
