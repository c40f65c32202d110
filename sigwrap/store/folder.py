"""The folder that a session's files lie in, held open: its path may lead elsewhere by tomorrow.

The store belongs to the user, and so to whoever runs as that user: a wrapped program can remove,
move and replace what lies there. So nothing here is done by path: the folder is held by a
descriptor, a file that is put in its place replaces whatever was put there instead, and what has a
name is compared with the file that was meant to get it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from sigwrap.bare.contextlib import suppress
from sigwrap.linux import proc_files
from sigwrap.linux.file_state import mount_of
from sigwrap.linux.ways import Ways

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PART_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDWR | os.O_CLOEXEC
_NEW_FILE_FLAGS = _FILE_FLAGS | os.O_CREAT | os.O_EXCL
_OURS = stat.S_IRWXU
ATTEMPTS = 8  # others can be quicker now and then
_SOMEBODY_ELSES = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)


def make_private(path: str) -> None:
    """With those above it that are missing, whatever the umask."""
    umask = os.umask(0o077)
    try:
        os.makedirs(path, exist_ok=True)
    finally:
        os.umask(umask)


class Interfered(OSError):
    """Somebody else has a hand in the session's files."""

    def __init__(self, what: str) -> None:
        super().__init__(errno.EBUSY, what)


def private_folder(path: str) -> Folder:
    """Made where it is missing, and the user's alone. OSError where it can't be."""
    folder = Folder.make(path)
    found = os.fstat(folder.fd)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        try:
            os.fchmod(folder.fd, 0o700)
        except OSError:
            folder.close()
            raise
    return folder


class HeldFolder:
    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd

    def close(self) -> None:
        os.close(self.fd)

    def status(self, name: str) -> os.stat_result | None:
        """Of what has this name; None where nothing has, or another file system is mounted there,
        which is not asked."""
        try:
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.fd)
        except OSError:
            return None
        try:
            return os.fstat(fd) if mount_of(fd) == mount_of(self.fd) else None
        except OSError:
            return None
        finally:
            os.close(fd)

    def has(self, name: str, fd: int) -> bool:
        """Whether that is the name of the file that is held."""
        found = self.status(name)
        return found is not None and os.path.samestat(found, os.fstat(fd))

    def create(self, name: str, flags: int = 0) -> int:
        fd = os.open(name, _NEW_FILE_FLAGS | flags, 0o600, dir_fd=self.fd)
        os.fchmod(fd, 0o600)  # whatever the umask
        return fd

    def put_new(self, final_name: str, write: Callable[[int], None], flags: int = 0) -> int:
        """A file that `write` writes, in the place of whatever has that name; its descriptor. While
        it has a name of its own, somebody else can give that to another file: where he was quicker
        each time, that is Interfered."""
        for _ in range(ATTEMPTS):
            unfinished = new_name(final_name)
            fd, is_named = self._create_unseen(unfinished, flags)
            try:
                write(fd)
                if not is_named:
                    self._give_name(fd, unfinished)
                self.put(unfinished, final_name)
                if self.has(final_name, fd):
                    return fd
            except _SOMEBODY_ELSES:
                pass
            except BaseException:
                self.remove(unfinished)
                os.close(fd)
                raise
            self.remove(unfinished)
            os.close(fd)
        raise Interfered(f"another program keeps replacing {final_name}")

    def _create_unseen(self, name: str, flags: int) -> tuple[int, bool]:
        """And whether it has its name already: not every file system has files without one."""
        try:
            fd = os.open(".", os.O_TMPFILE | _FILE_FLAGS | flags, 0o600, dir_fd=self.fd)
        except OSError:
            return self.create(name, flags), True
        os.fchmod(fd, 0o600)  # whatever the umask
        return fd, False

    def _give_name(self, fd: int, name: str) -> None:
        proc, path = _path_of(fd)
        os.link(path, name, src_dir_fd=proc, dst_dir_fd=self.fd, follow_symlinks=True)

    def put(self, name: str, final_name: str) -> None:
        """In the place of whatever has the final name."""
        try:
            self._rename(name, final_name)
        except IsADirectoryError:
            self._rename(final_name, aside(final_name))
            self._rename(name, final_name)

    def remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self.fd)
        except OSError:
            pass

    def _rename(self, name: str, final_name: str) -> None:
        os.rename(name, final_name, src_dir_fd=self.fd, dst_dir_fd=self.fd)


class Folder(HeldFolder):
    """Whose path is to lead to it for as long as the session runs."""

    def __init__(self, path: str, fd: int) -> None:
        super().__init__(path, fd)
        self._absolute = os.path.join("/" if os.path.isabs(path) else os.getcwd(), path)
        self._ways = Ways()
        self._real = self._ways.note(self._absolute)

    @classmethod
    def make(cls, path: str) -> Folder:
        """OSError where it can't. Its parent is the user's alone as well."""
        for folder in (os.path.dirname(path), path):
            if not os.path.isdir(folder):
                make_private(folder)
                os.chmod(folder, 0o700)
        return cls(path, os.open(path, _FOLDER_FLAGS))

    @property
    def is_ours(self) -> bool:
        """Or root's, who can do everything anyway."""
        return os.fstat(self.fd).st_uid in (os.geteuid(), 0)

    def beside(self, name: str) -> HeldFolder:
        """One next to this one, made where it is missing; OSError where it can't, or where that
        name is a link, or another file system is mounted there."""
        above = os.open("..", _PART_FLAGS, dir_fd=self.fd)
        try:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=above)
            found = os.open(name, _PART_FLAGS, dir_fd=above)
        finally:
            os.close(above)
        try:
            if mount_of(found) != mount_of(self.fd):
                raise OSError(errno.EXDEV, "another file system is mounted on it")
            proc, path_of_it = _path_of(found)
            os.chmod(path_of_it, 0o700, dir_fd=proc)  # whatever the umask says
            fd = os.open(".", _FOLDER_FLAGS, dir_fd=found)
        finally:
            os.close(found)
        return HeldFolder(os.path.join(os.path.dirname(self.path), name), fd)

    @property
    def is_reached(self) -> bool:
        """Whether its path leads to it, and it can be written. Who exchanges a folder on the way
        all the time is met in between."""
        return any(self._is_reached() for _ in range(ATTEMPTS))

    def _is_reached(self) -> bool:
        try:
            found = self._ways.open(self._absolute)
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
        """Where the path leads elsewhere, a folder is made where it led, and held from now on;
        OSError where it can't be made."""
        for path in (os.path.dirname(self._absolute), self._absolute):
            self._put_link_back(path)
        found = self._made()
        try:
            fd = os.open(".", _FOLDER_FLAGS, dir_fd=found)
        finally:
            os.close(found)
        os.close(self.fd)
        self.fd = fd
        if not self.is_reached:
            raise Interfered("a link in its path leads elsewhere")

    def _put_link_back(self, path: str) -> None:
        """Where it was one."""
        above, name = os.path.split(path)
        text = self._ways.link(path)
        if text is None:
            return
        folder = self._ways.open(above)
        try:
            if _link_at(folder, name) == text:
                return
            with suppress(FileNotFoundError):
                os.rename(name, aside(name), src_dir_fd=folder, dst_dir_fd=folder)
            os.symlink(text, name, dir_fd=folder)
        finally:
            os.close(folder)

    def _made(self) -> int:
        for _ in range(ATTEMPTS - 1):
            with suppress(OSError):
                return self._open_down(ours=2)
        return self._open_down(ours=2)

    def _open_down(self, *, ours: int) -> int:
        """The last `ours` folders are made where they are missing, in the place of whatever is
        there, and so that we may use them."""
        here, parts = self._ways.root(), self._real.strip("/").split("/")
        for depth in range(len(parts)):
            path = "/" + "/".join(parts[: depth + 1])
            try:
                below = self._step(here, path, is_ours=depth >= len(parts) - ours)
            finally:
                os.close(here)
            here = below
        return here

    def _step(self, folder: int, path: str, *, is_ours: bool) -> int:
        try:
            found = self._ways.step(folder, path)
        except OSError as failure:
            if not is_ours or failure.errno == errno.EXDEV:
                raise
            name = os.path.basename(path)
            with suppress(FileNotFoundError):
                os.rename(name, aside(name), src_dir_fd=folder, dst_dir_fd=folder)
            os.mkdir(name, 0o700, dir_fd=folder)
            found = self._ways.step(folder, path)
        if is_ours:
            proc, path_of_it = _path_of(found)
            os.chmod(path_of_it, 0o700, dir_fd=proc)  # whatever the umask, or somebody else, says
        return found

    def place(self) -> str:
        """Where it is now, whatever its path leads to."""
        try:
            return proc_files.link(f"/proc/self/fd/{self.fd}")
        except OSError:  # root can put another /proc over it
            return "a directory without a known path"


def _path_of(fd: int) -> tuple[int, bytes]:
    """Of a file that may have none: a folder's descriptor, and a path from there."""
    return proc_files.at(b"/proc/self/fd/%d" % fd)


def _link_at(folder: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def new_name(final_name: str) -> str:
    """For a file until it is whole. Nobody has it: it can't be foreseen."""
    return f"{final_name}.new-{os.urandom(6).hex()}"


def aside(path: str) -> str:
    return f"{path}.aside-{os.urandom(6).hex()}"
