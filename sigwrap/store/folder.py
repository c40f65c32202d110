"""The folder that a session's files lie in, held open: its path may lead elsewhere by tomorrow.

The store belongs to the user, and so to whoever runs as that user: a wrapped program can remove,
move and replace what lies there. So nothing here is done by path: the folder is held by a
descriptor, and a file that is put in its place replaces whatever was put there instead.
"""

from __future__ import annotations

import os
import stat

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_STEP_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_OURS = stat.S_IRWXU


class Folder:
    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        self._real = os.path.realpath(path)

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
        if os.path.realpath(self.path) != self._real:
            return False
        try:
            found = _open_down(self._real)
        except OSError:
            return False
        try:
            state, held = os.fstat(found), os.fstat(self.fd)
            return os.path.samestat(state, held) and self._may_write(held)
        finally:
            os.close(found)

    @staticmethod
    def _may_write(held: os.stat_result) -> bool:
        return os.geteuid() == 0 or held.st_mode & _OURS == _OURS

    def reach(self) -> None:
        """Where the path leads elsewhere, a folder is made at its end, and held from now on;
        OSError where it can't be made."""
        store, name = os.path.split(self.path)
        real_store = os.path.dirname(self._real)
        if os.path.realpath(store) != real_store:
            above, last = os.path.split(store)
            real_store = os.path.join(os.path.realpath(above), last)
        real = os.path.join(real_store, name)
        found = _open_down(real, ours=2)
        try:
            fd = os.open(".", _FOLDER_FLAGS, dir_fd=found)
        finally:
            os.close(found)
        os.close(self.fd)
        self.fd, self._real = fd, real

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


def _open_down(path: str, *, ours: int = 0) -> int:
    """No link is followed: it could lead into a file system of the session's own, which lets us
    wait. The last `ours` folders are made where they are missing, in the place of whatever is
    there, and so that we may use them."""
    parts = [part for part in path.split("/") if part]
    here = os.open("/", _STEP_FLAGS)
    for depth, part in enumerate(parts):
        try:
            below = _step(here, part, is_ours=depth >= len(parts) - ours)
        finally:
            os.close(here)
        here = below
    return here


def _step(folder: int, name: str, *, is_ours: bool) -> int:
    try:
        found = os.open(name, _STEP_FLAGS, dir_fd=folder)
    except OSError:
        if not is_ours:
            raise
        if _is_there(name, folder):
            os.rename(name, _aside(name), src_dir_fd=folder, dst_dir_fd=folder)
        os.mkdir(name, 0o700, dir_fd=folder)
        found = os.open(name, _STEP_FLAGS, dir_fd=folder)
    if is_ours:
        os.chmod(f"/proc/self/fd/{found}", 0o700)  # whatever the umask, or somebody else, has said
    return found


def _is_there(name: str, folder: int) -> bool:
    try:
        os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def new_name(final_name: str) -> str:
    """For a file until it is whole. Nobody has it: it can't be foreseen."""
    return f"{final_name}.new-{os.urandom(6).hex()}"


def _aside(path: str) -> str:
    return f"{path}.aside-{os.urandom(6).hex()}"
