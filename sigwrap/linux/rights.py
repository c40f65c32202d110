"""Compare the rights, namespaces and root of another process with our own.

A command that it asks us to run gets ours: so a process in a sandbox could leave it. The kernel
does not show Landlock domains. But without privileges these need no_new_privs, which it shows.
"""

from __future__ import annotations

from sigwrap.linux import proc_files

_FIELDS = (
    *(b"Uid", b"Gid", b"Groups", b"CapPrm", b"CapEff", b"CapBnd", b"CapAmb"),
    *(b"NoNewPrivs", b"Seccomp", b"Seccomp_filters"),
)
_SHOWN = {
    b"Uid": "user",
    b"Gid": "group",
    b"Groups": "groups",
    b"NoNewPrivs": "no_new_privs",
    b"Seccomp": "seccomp filters",
    b"Seccomp_filters": "seccomp filters",
}
_NAMESPACES = {
    "mnt": "mount",
    "pid": "pid",
    "net": "network",
    "user": "user",
    "ipc": "ipc",
    "uts": "uts",
}


class Rights:
    """The rights that this process has now."""

    def __init__(self) -> None:
        self._fields = _fields("self")
        self._namespaces = {name: _identity(f"/proc/self/ns/{name}") for name in _NAMESPACES}
        self._root = _identity("/proc/self/root")

    def difference(self, pid: int) -> str:
        """Return how the process differs, or an empty string."""
        try:
            for field, value in _fields(pid).items():
                if self._fields.get(field) != value:
                    return f"its {_SHOWN.get(field, 'capabilities')} differ from the session's"
            for name, shown in _NAMESPACES.items():
                if _identity(f"/proc/{pid}/ns/{name}") != self._namespaces[name]:
                    return f"its {shown} namespace differs from the session's"
            if _identity(f"/proc/{pid}/root") != self._root:
                return "its root directory differs from the session's"
        except OSError as refusal:
            return f"cannot read its credentials: {refusal.strerror}"
        return ""


def _fields(pid: int | str) -> dict[bytes, bytes]:
    text = proc_files.contents(f"/proc/{pid}/status")
    if text is None:
        raise ProcessLookupError(0, "it has ended")
    pairs = (line.partition(b":") for line in text.split(b"\n"))
    return {name: value.strip() for name, _, value in pairs if name in _FIELDS}


def _identity(path: str) -> tuple[int, int]:
    found = proc_files.file_status(path)
    return found.st_dev, found.st_ino
