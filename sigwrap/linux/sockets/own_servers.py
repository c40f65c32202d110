"""Servers of the session itself, which are no way out of it, whatever their sockets are called.

Each is noted as it begins to listen, and the kernel is asked whether it is still there before
somebody is told to be connecting to it: a file's number can be another file's later.
"""

from __future__ import annotations

from sigwrap.linux.file_state import Inode
from sigwrap.linux.sockets.diag import SHOW_FILE, Named, file_of, named, told_of

_MOST = 1000

_File = tuple[int, int]


class OwnServers:
    def __init__(self) -> None:
        self._by_file: dict[_File, Named] = {}
        self._by_name: dict[tuple[str, int], Named] = {}  # each type of socket has names of its own

    def note(self, fd: int, name: str, kind: int) -> None:
        """It listens. `name`: one without a file, or empty; `kind`: the type of socket."""
        server = named(fd)
        file = file_of(server)
        if name.startswith("@"):
            self._by_name[name, kind] = server
        elif file is not None:
            self._by_file[file] = server
        if len(self._by_name) > _MOST:
            del self._by_name[next(iter(self._by_name))]
        if len(self._by_file) > _MOST:
            del self._by_file[next(iter(self._by_file))]

    def has_file(self, inode: Inode) -> bool:
        device, number = inode
        major, minor = device >> 32, device & 0xFFFFFFFF
        file = number & 0xFFFFFFFF, major << 20 | minor
        server = self._by_file.get(file)
        return server is not None and file_of(server) == file

    def has_name(self, name: str, kind: int) -> bool:
        server = self._by_name.get((name, kind))
        return server is not None and told_of(server, SHOW_FILE) is not None
