"""Folders with programs of the system, if only root can write to them.

A link in them (`sh` to dash, `awk` to mawk, `ls` to busybox) is the system's too, so its name says
what runs. In a folder that the session can write to, any file can be called `ls`.
"""

from __future__ import annotations

SYSTEM_FOLDERS = (
    "/usr/",
    "/bin/",
    "/sbin/",
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/libx32/",
    "/opt/",
    "/run/current-system/sw/bin/",
    "/nix/store/",
    "/gnu/store/",
)

# Folders of system commands in the usual order of PATH.
COMMAND_FOLDERS = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/run/current-system/sw/bin",
)


def may_be_the_systems(path: str) -> bool:
    """Return whether an absolute path is in such a folder; the caller checks its owner."""
    return path.startswith(SYSTEM_FOLDERS) and "/../" not in path and "/./" not in path
