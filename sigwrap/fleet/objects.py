"""Where segments go: a folder (file:///DIR) or a bucket (s3://BUCKET/PREFIX).

No object is ever replaced. `put_new` succeeds only for a key that has no object, and says so if it
has one: a segment's key names its content, so that segment was delivered before.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol
from urllib.parse import unquote_to_bytes, urlsplit

from sigwrap.errors import ObjectsError, UsageError

TIMEOUT_S = 30.0
_KINDS = "s3://BUCKET/PREFIX or file:///DIR"
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Objects(Protocol):
    name: str  # URL and endpoint, without credentials

    def put_new(self, key: str, body: bytes) -> bool:
        """Store an object; return False if the key has one already."""

    def close(self) -> None: ...


def objects_at(
    url: str,
    environment: Mapping[str, str],
    *,
    timeout_s: float = TIMEOUT_S,
    credential_fd: int | None = None,
) -> Objects:
    """Return the objects at a URL. UsageError if no object could be there."""
    scheme = url.partition("://")[0].lower()
    try:
        parts = urlsplit(url)
        if scheme not in ("s3", "file") or parts.query or parts.fragment or "@" in parts.netloc:
            raise ValueError("not the URL of a folder or a bucket")
        if scheme == "file":
            return Folder(_path(parts.netloc, parts.path))
        from sigwrap.fleet.s3 import Bucket

        return Bucket(parts.netloc, parts.path, environment, timeout_s, credential_fd)
    except ValueError as wrong:  # the URL itself may hold a password
        raise UsageError(f"can't ship there: {wrong}", _KINDS) from None


def _path(host: str, quoted: str) -> str:
    path = unquote_to_bytes(quoted)
    if host not in ("", "localhost") or not path.startswith(b"/") or b"\0" in path:
        raise ValueError("a folder needs its absolute path, file:///DIR")
    return os.path.normpath(os.fsdecode(path))


class Folder:
    """Its files are as readable as the folder is; one that is made is for this user alone."""

    def __init__(self, path: str) -> None:
        self.name = f"file://{path}"
        self._path = path

    def put_new(self, key: str, body: bytes) -> bool:
        with self._complaint(key), self._opened(os.path.dirname(key)) as folder:
            name = os.path.basename(key)
            try:
                found = os.lstat(name, dir_fd=folder)
            except FileNotFoundError:
                return _linked(folder, name, body)
            if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.geteuid(), 0):
                raise OSError(0, "a link or a foreign file is in its place")
            return False

    def close(self) -> None:
        pass

    @contextmanager
    def _opened(self, below: str) -> Iterator[int]:
        """Make and hold a folder below ours; no link is followed on the way there."""
        os.makedirs(self._path, 0o700, exist_ok=True)
        fd = os.open(self._path, _FOLDER_FLAGS)
        try:
            for name in filter(None, below.split("/")):
                _make_folder(name, fd)
                above, fd = fd, os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=fd)
                os.close(above)
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _complaint(self, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ObjectsError(
                f"can't use {os.path.join(self._path, key)}: {error.strerror}",
                "check the folder, its rights and its space",
            ) from error


def _make_folder(name: str, above: int) -> None:
    try:
        os.mkdir(name, stat.S_IMODE(os.fstat(above).st_mode), dir_fd=above)
    except FileExistsError:
        return
    os.fsync(above)


def _linked(folder: int, name: str, body: bytes) -> bool:
    """Write a file and give it its name; return False if another process was first."""
    unfinished, mode = f".{os.urandom(8).hex()}.unfinished", os.fstat(folder).st_mode & 0o666
    try:
        fd = os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=folder)
        source, is_named = f"/proc/self/fd/{fd}", False
    except OSError:  # as of NFS
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        fd, source, is_named = os.open(unfinished, flags, mode, dir_fd=folder), unfinished, True
    try:
        with open(fd, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(fd)
            os.link(source, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
        os.fsync(folder)
    except FileExistsError:
        return False
    finally:
        if is_named:
            os.unlink(unfinished, dir_fd=folder)
    return True
