"""Find and remove the control sockets of sessions whose supervisor was killed."""

from __future__ import annotations

import os
import re
import stat

from sigwrap.bare import NamedTuple, socket
from sigwrap.protocols.control import CALLS_SUFFIX, SOCKET_SUFFIX, control_folder, socket_path

_UNFINISHED = re.compile(rf"(?s)(.+)(?:{SOCKET_SUFFIX}(?:\.new-[0-9a-f]{{12}})?|{CALLS_SUFFIX})")


class LeftSocket(NamedTuple):
    session_id: str
    name: str


def left_sockets(store: str) -> list[LeftSocket]:
    """Return this user's sockets that have no listener."""
    fd = _open(store)
    if fd is None:
        return []
    try:
        return [
            LeftSocket(named[1], name)
            for name in sorted(os.listdir(fd))
            if (named := _UNFINISHED.fullmatch(name)) and is_left(fd, name)
        ]
    finally:
        os.close(fd)


def is_listened_at(store: str, session_id: str) -> bool:
    fd = _open(store)
    if fd is None:
        return False
    try:
        return _is_listened_at(fd, session_id + SOCKET_SUFFIX)
    finally:
        os.close(fd)


def remove_left(store: str, sockets: list[LeftSocket]) -> int:
    """Remove them unless they have a listener by now, and return how many were removed."""
    fd = _open(store) if sockets else None
    if fd is None:
        return 0
    count = 0
    try:
        for each in sockets:
            if is_left(fd, each.name):
                try:
                    os.unlink(each.name, dir_fd=fd)
                    count += 1
                except OSError:
                    continue  # another removed it
    finally:
        os.close(fd)
    return count


def _open(store: str) -> int | None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(control_folder(store), flags)
    except OSError:
        return None


def is_left(folder_fd: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except OSError:
        return False
    is_ours = stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()
    return is_ours and not _is_listened_at(folder_fd, name)


def _is_listened_at(folder_fd: int, name: str) -> bool:
    """Return whether it has a listener. A new socket, under a temporary name, has none yet."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        end.connect(socket_path(folder_fd, name))
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    except OSError:
        return True  # it may be full
    finally:
        end.close()
    return True
