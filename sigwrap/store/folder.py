"""The folder that a session's files lie in, held open: its path may lead elsewhere by tomorrow.

The store belongs to the user, and so to whoever runs as that user: a wrapped program can remove,
move and replace what lies there. So nothing here is done by path: the folder is held by a
descriptor, and a file that is put in its place replaces whatever was put there instead.
"""

from __future__ import annotations

import os
import stat

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_OURS = stat.S_IRWXU


class Folder:
    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd

    @classmethod
    def make(cls, path: str) -> Folder:
        """OSError where it can't. Its parent is the user's alone as well."""
        for folder in (os.path.dirname(path), path):
            if not os.path.isdir(folder):
                os.makedirs(folder, exist_ok=True)
                os.chmod(folder, 0o700)  # whatever the umask
        return cls(path, os.open(path, _FOLDER_FLAGS))

    def close(self) -> None:
        os.close(self.fd)

    @property
    def is_reached(self) -> bool:
        """Whether its path leads to it, and it can be written."""
        try:
            found, held = os.stat(self.path), os.fstat(self.fd)
        except OSError:
            return False
        return os.path.samestat(found, held) and self._may_write(held)

    @staticmethod
    def _may_write(held: os.stat_result) -> bool:
        return os.geteuid() == 0 or held.st_mode & _OURS == _OURS

    def reach(self) -> None:
        """Where the path leads elsewhere, a folder is made at its end, and held from now on;
        OSError where it can't be made."""
        for path in (os.path.dirname(self.path), self.path):
            if os.path.isdir(path):
                os.chmod(path, 0o700)
            elif os.path.lexists(path):
                os.rename(path, _aside(path))
        if self.is_reached:
            return
        made = self.make(self.path)
        os.close(self.fd)
        self.fd = made.fd

    def place(self) -> str:
        """Where it is now, whatever its path leads to."""
        try:
            return os.readlink(f"/proc/self/fd/{self.fd}")
        except OSError:  # root can put another /proc over it
            return "a folder that nobody knows the path of"

    def status(self, name: str) -> os.stat_result | None:
        """Of what has this name; None where nothing has."""
        try:
            return os.lstat(name, dir_fd=self.fd)
        except OSError:
            return None

    def create(self, name: str, flags: int = 0) -> int:
        fd = os.open(name, _NEW_FILE_FLAGS | flags, 0o600, dir_fd=self.fd)
        os.fchmod(fd, 0o600)  # whatever the umask
        return fd

    def put(self, name: str, final_name: str) -> None:
        """In the place of whatever has that name."""
        try:
            self._rename(name, final_name)
        except IsADirectoryError:
            self._rename(final_name, _aside(final_name))
            self._rename(name, final_name)

    def remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self.fd)
        except OSError:
            pass

    def _rename(self, name: str, final_name: str) -> None:
        os.rename(name, final_name, src_dir_fd=self.fd, dst_dir_fd=self.fd)


def new_name(final_name: str) -> str:
    """For a file until it is whole. Nobody has it: it can't be foreseen."""
    return f"{final_name}.new-{os.urandom(6).hex()}"


def _aside(path: str) -> str:
    return f"{path}.aside-{os.urandom(6).hex()}"
