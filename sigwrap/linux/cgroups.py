"""Find the cgroups of sigwrap, and those that could kill processes outside the session.

One write is enough for that (cgroup.kill, cgroup.freeze), and systemd gives every user a tree of
cgroups.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from sigwrap.linux.mounts import read_mountinfo, unescaped

_FILES = ("cgroup.kill", "cgroup.freeze", "cgroup.procs", "freezer.state")
_TYPES = (b"cgroup", b"cgroup2")


def mount_points() -> list[str]:
    """Return the mount points of all cgroup file systems in our mount namespace."""
    mounts = read_mountinfo(b"\n".join(_lines("/proc/self/mountinfo")))
    return [os.fsdecode(unescaped(each.point)) for each in mounts if each.kind in _TYPES]


def own_folders() -> dict[str, str]:
    """Return the folders of the groups that sigwrap is in, by controller; "" is version 2.

    Only folders that list sigwrap: a mount may show a part of the tree, or another namespace's.
    """
    paths: dict[str, str] = {}
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = os.fsdecode(line).split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    found: dict[str, str] = {}
    for line in _lines("/proc/self/mountinfo"):
        words = line.split(b" ")
        kind, options = words[words.index(b"-", 6) + 1], words[-1]
        if kind not in _TYPES:
            continue
        root, mount = (os.fsdecode(unescaped(word)).rstrip("/") for word in words[3:5])
        of_mount = {""} if kind == b"cgroup2" else set(os.fsdecode(options).split(","))
        for controller in (of_mount & paths.keys()) - found.keys():
            folder = mount + paths[controller].removeprefix(root).rstrip("/")
            if b"%d" % os.getpid() in _lines(f"{folder}/cgroup.procs"):
                found[controller] = folder
    return found


def writable(mounts: Iterable[str]) -> str:
    """Return the first writable group, empty if there is none.

    Looks at the groups that sigwrap is in, and at the tree that systemd gives its user.
    """
    own = {os.fsdecode(line.split(b":", 2)[2]) for line in _lines("/proc/self/cgroup")}
    uid = os.getuid()
    own.add(f"/user.slice/user-{uid}.slice/user@{uid}.service")
    for mount in mounts:
        for path in sorted(own):
            for folder in _with_ancestors(mount, path):
                if any(os.access(each, os.W_OK) for each in _handles(folder)):
                    return folder
    return ""


def _with_ancestors(mount: str, path: str) -> Iterator[str]:
    folder = path.rstrip("/")
    while folder:
        yield mount + folder
        folder = folder.rpartition("/")[0]
    yield mount


def _handles(folder: str) -> tuple[str, ...]:
    """Return paths that must not be writable. In a writable folder, a process can make a group."""
    return (folder, *(f"{folder}/{name}" for name in _FILES))


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read().split(b"\n")[:-1]
    except OSError:
        return []
