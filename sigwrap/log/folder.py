"""A directory of the store, held open, because its path may lead elsewhere later; and the path of
the store and the names of its files.

The store belongs to the user, so every process of the user can remove, move and replace what is in
it. So nothing here is done by path: the directory is held by a descriptor, a new file replaces
whatever has its name, and a name is compared with the file that should have it.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Mapping

from sigwrap.bare import suppress
from sigwrap.errors import StoreError
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import Known, PinnedPath
from sigwrap.kernel.paths import Caller, WouldBlock, open_on_one_mount

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDWR | os.O_CLOEXEC
_NEW_FILE_FLAGS = _FILE_FLAGS | os.O_CREAT | os.O_EXCL
_ALL_RIGHTS = stat.S_IRWXU
ATTEMPTS = 8  # another process can win a race now and then
_LOST_RACE = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)


class Interfered(OSError):
    """Another process changed the session's files."""

    def __init__(self, what: str) -> None:
        super().__init__(errno.EBUSY, what)


def new_session_id() -> str:
    """Return an id in UTC that no other machine gives; users type its last six digits."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + os.urandom(8).hex()


def private_folder(path: str) -> Folder:
    """Hold the directory; make it if it is missing, and take all rights from other users."""
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

    def path_of(self, name: str) -> str:
        return os.path.join(self.path, name)

    def status(self, name: str) -> os.stat_result | None:
        """Return the status of the file with this name, or None.

        A name on which another file system is mounted counts as missing: a look could block.
        """
        try:
            fd = open_on_one_mount(self.fd, name)
        except OSError:
            return None
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def has(self, name: str, fd: int) -> bool:
        """Return whether this is the name of the file that `fd` holds."""
        found = self.status(name)
        return found is not None and os.path.samestat(found, os.fstat(fd))

    def create(self, name: str, flags: int = 0) -> int:
        fd = os.open(name, _NEW_FILE_FLAGS | flags, 0o600, dir_fd=self.fd)
        os.fchmod(fd, 0o600)  # whatever the umask
        return fd

    def put_new(self, final_name: str, write: Callable[[int], None], flags: int = 0) -> int:
        """Replace what has this name by a file that `write` fills; return its descriptor.

        Raise Interfered if another process wins each race for the new file's name.
        """
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
            except _LOST_RACE:
                pass
            except BaseException:
                self.remove(unfinished)
                os.close(fd)
                raise
            self.remove(unfinished)
            os.close(fd)
        raise Interfered(f"another program keeps replacing {final_name}")

    def _create_unseen(self, name: str, flags: int) -> tuple[int, bool]:
        """Return a new file, and whether it has its name: some file systems lack O_TMPFILE."""
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
        """Rename the file, and replace what has the final name."""
        try:
            self._rename(name, final_name)
        except IsADirectoryError:
            self._rename(final_name, displaced_name(final_name))
            self._rename(name, final_name)

    def remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self.fd)
        except OSError:
            pass

    def _rename(self, name: str, final_name: str) -> None:
        os.rename(name, final_name, src_dir_fd=self.fd, dst_dir_fd=self.fd)


class Folder(HeldFolder):
    """A held directory that must stay at its path, without links, while the session runs."""

    def __init__(self, path: str, fd: int) -> None:
        super().__init__(path, fd)
        self._absolute = os.path.join("/" if os.path.isabs(path) else os.getcwd(), path)
        real = procfs.link(f"/proc/self/fd/{fd}")
        above, known = os.path.dirname(real), Known()
        paths = (os.path.dirname(above), above, real)
        self._pinned_paths = [PinnedPath(each, known) for each in paths]
        self._pinned = self._pinned_paths[-1]

    @classmethod
    def make(cls, path: str) -> Folder:
        """Hold the directory; make it and its parents with mode 0700 if they are missing."""
        umask = os.umask(0o077)
        try:
            for folder in (os.path.dirname(path), path):
                if not os.path.isdir(folder):
                    os.makedirs(folder, exist_ok=True)
                    os.chmod(folder, 0o700)
        finally:
            os.umask(umask)
        fd = os.open(path, _FOLDER_FLAGS)
        try:
            return cls(path, fd)
        except BaseException:
            os.close(fd)
            raise

    @property
    def is_ours(self) -> bool:
        """Return whether it belongs to this user, or to root, who can do everything anyway."""
        return os.fstat(self.fd).st_uid in (os.geteuid(), 0)

    def beside(self, name: str) -> HeldFolder:
        """Hold a directory next to this one; make it if it is missing.

        Raise OSError if the name is a link, or another file system is mounted there.
        """
        with suppress(FileExistsError):
            os.mkdir(f"../{name}", 0o700, dir_fd=self.fd)
        found = open_on_one_mount(self.fd, f"../{name}", os.O_DIRECTORY)
        return HeldFolder(os.path.join(os.path.dirname(self.path), name), _entered(found))

    @property
    def is_reached(self) -> bool:
        """Return whether the directory is at its path and writable.

        A process that exchanges a directory on the path all the time is caught in between.
        """
        return any(self._is_reached() for _ in range(ATTEMPTS))

    def _is_reached(self) -> bool:
        try:
            found = self._pinned.open(os.O_DIRECTORY)
        except OSError:
            return False
        try:
            held = os.fstat(self.fd)
            return os.path.samestat(os.fstat(found), held) and _has_all_rights(held)
        finally:
            os.close(found)

    @property
    def is_found(self) -> bool:
        """Return whether the path that the user gave, with its links, leads to the directory.

        If only a file system that could block knows it, assume so.
        """
        if self._absolute == self._pinned.path:
            return True
        try:
            found = Caller(os.getpid(), os.getpid()).open(os.fsencode(self._absolute))
        except (OSError, WouldBlock) as failure:
            return isinstance(failure, WouldBlock)
        try:
            return os.path.samestat(os.fstat(found), os.fstat(self.fd))
        finally:
            os.close(found)

    def make_again(self) -> None:
        """Make the directory and its parent where they were, and hold the new one.

        Whatever is in their place gets another name. Raise OSError if that is impossible.
        """
        for attempts_left in reversed(range(ATTEMPTS)):
            try:
                self._make_again()
                return
            except OSError:
                if not attempts_left:
                    raise

    def _make_again(self) -> None:
        above, parent, own = self._pinned_paths
        os.close(_made_again(above, parent))
        fd = _made_again(parent, own)
        os.close(self.fd)
        self.fd = fd

    def place(self) -> str:
        """Return where the directory is now, wherever its path leads."""
        try:
            return procfs.link(f"/proc/self/fd/{self.fd}")
        except OSError:  # root can mount another /proc over it
            return "a directory without a known path"


def _made_again(above: PinnedPath, pinned: PinnedPath) -> int:
    """Return the directory at its path, which is made if something else is there."""
    try:
        found = pinned.open(os.O_DIRECTORY)
    except OSError as failure:
        if failure.errno == errno.EXDEV:  # another file system is mounted there
            raise
        name, folder = os.path.basename(pinned.path), above.open(os.O_DIRECTORY)
        try:
            with suppress(FileNotFoundError):
                os.rename(name, displaced_name(name), src_dir_fd=folder, dst_dir_fd=folder)
            os.mkdir(name, 0o700, dir_fd=folder)
        finally:
            os.close(folder)
        found = pinned.open(os.O_DIRECTORY)
    return _entered(found)


def _entered(found: int) -> int:
    """Open the directory of an O_PATH descriptor, with all rights for this user, and close that."""
    try:
        if not _has_all_rights(os.fstat(found)):
            proc, path = _path_of(found)
            os.chmod(path, 0o700, dir_fd=proc)
        return os.open(".", _FOLDER_FLAGS, dir_fd=found)
    finally:
        os.close(found)


def _has_all_rights(folder: os.stat_result) -> bool:
    return os.geteuid() == 0 or folder.st_mode & _ALL_RIGHTS == _ALL_RIGHTS


def _path_of(fd: int) -> tuple[int, bytes]:
    """Return a directory's descriptor, and a path from there that leads to the open file."""
    return procfs.at(b"/proc/self/fd/%d" % fd)


def new_name(final_name: str) -> str:
    """Return a name for a file until it is complete; no other process can guess it."""
    return f"{final_name}.new-{os.urandom(6).hex()}"


def displaced_name(path: str) -> str:
    return f"{path}.aside-{os.urandom(6).hex()}"


# The path of the store, and the names of a session's files.

SESSIONS_FOLDER = "sessions"
CHECKPOINTS_FOLDER = "checkpoints"
DATABASE_SUFFIX = ".db"
JOURNAL_SUFFIX = ".journal"
CURSOR_SUFFIX = ".shipped"
SHIPPED_MARK = ".shipped"  # some session of the store was shipped

# For the help text; $XDG_STATE_HOME, if set, replaces ~/.local/state.
DEFAULT_STORE = "$SIGWRAP_STORE or ~/.local/state/sigwrap"


def default_store(env: Mapping[str, str]) -> str:
    if env.get("SIGWRAP_STORE"):
        return env["SIGWRAP_STORE"]
    state_home = env.get("XDG_STATE_HOME", "")
    # The XDG specification tells programs to ignore a relative path there.
    if not os.path.isabs(state_home):
        home = env["HOME"] if "HOME" in env else os.path.expanduser("~")
        if not os.path.isabs(home):
            raise StoreError(
                "there is no home directory for the event log", "choose a directory with --store"
            )
        state_home = os.path.join(home, ".local", "state")
    return os.path.join(state_home, "sigwrap")


def sessions_folder(store: str) -> str:
    return os.path.join(store, SESSIONS_FOLDER)


def database_path(store: str, session_id: str) -> str:
    return os.path.join(sessions_folder(store), session_id + DATABASE_SUFFIX)


def journal_path(database: str) -> str:
    return database.removesuffix(DATABASE_SUFFIX) + JOURNAL_SUFFIX
