"""The limits of a process: those of `ulimit`, and control groups."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable

from sigwrap.bare import NamedTuple
from sigwrap.kernel.file_state import read_mountinfo, unescaped

LIMIT_US_TOO = "applies to sigwrap as well (a soft limit, ulimit -S, applies to the command only)"
_NO_LIMIT = resource.RLIM_INFINITY
_SIGPENDING = 11
_RTTIME = 15

_FILES = ("cgroup.kill", "cgroup.freeze", "cgroup.procs", "freezer.state")
_TYPES = (b"cgroup", b"cgroup2")


class Limit(NamedTuple):
    resource: int
    soft: int
    hard: int


# The option of ulimit, its unit, and what no supervisor ever reaches.
_KINDS = {
    resource.RLIMIT_CPU: ("-t", 1, 3600),
    resource.RLIMIT_FSIZE: ("-f", 1024, 1 << 30),
    resource.RLIMIT_DATA: ("-d", 1024, 1 << 28),
    resource.RLIMIT_STACK: ("-s", 1024, 1 << 18),
    resource.RLIMIT_AS: ("-v", 1024, 1 << 29),
}
# Limits that can end sigwrap or make its calls fail. Not RLIMIT_CORE: it needs no core.
_LIFTED = (*_KINDS, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, _SIGPENDING, _RTTIME)


def of_the_caller() -> tuple[Limit, ...]:
    return tuple(Limit(each, *resource.getrlimit(each)) for each in _LIFTED)


def lift(limits: Iterable[Limit]) -> None:
    for number, _soft, hard in limits:
        if hard != _NO_LIMIT and number in _KINDS and _is_set(number, _NO_LIMIT, _NO_LIMIT):
            continue  # with CAP_SYS_RESOURCE, the hard limit can be raised too
        _is_set(number, hard, hard)


def lift_open_files() -> None:
    """Raise the limit in this process, which starts no other."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    _is_set(resource.RLIMIT_NOFILE, hard, hard)


def give_back(limits: Iterable[Limit]) -> None:
    for number, soft, hard in limits:
        resource.setrlimit(number, (soft, hard))


def not_lifted() -> list[str]:
    """Return the tight limits that apply to sigwrap as well, as shell commands."""
    found = []
    for number, (option, unit, enough) in _KINDS.items():
        soft, _hard = resource.getrlimit(number)
        if soft != _NO_LIMIT and soft < enough:
            found.append(f"ulimit {option} {soft // unit}")
    return found


def way_to_room(otherwise: str) -> str:
    """Return what to do if a file cannot be written."""
    tight = [words for words in not_lifted() if words.startswith("ulimit -f ")]
    return f"raise the file size limit, {tight[0]}" if tight else otherwise


def _is_set(number: int, soft: int, hard: int) -> bool:
    try:
        resource.setrlimit(number, (soft, hard))
    except (OSError, ValueError):  # Python raises ValueError for EPERM
        return False
    return True


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
            folder = f"{mount}{path}".rstrip("/")
            while len(folder) >= len(mount):
                # In a writable folder, a process can make a group.
                if any(os.access(f"{folder}/{name}", os.W_OK) for name in (".", *_FILES)):
                    return folder
                folder = folder.rpartition("/")[0]
    return ""


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read().split(b"\n")[:-1]
    except OSError:
        return []
