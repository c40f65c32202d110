"""Folders whose programs are the system's, as long as only root may write to them.

A link in one of them (`sh` to dash, `awk` to mawk by /etc/alternatives, `ls` to busybox) was made
by the system too, so that its name says what runs. In a folder that the tree may write to, anything
can be called `ls`.
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

# Where a search along PATH finds the system's own commands, in the usual order.
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
    """`path`: absolute, as it was called. Whose the folder is has still to be looked up."""
    return path.startswith(SYSTEM_FOLDERS) and "/../" not in path and "/./" not in path
