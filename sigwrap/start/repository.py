"""Where git keeps a project's history: in a worktree or a submodule, that is outside of it.

What leads there is in the project, and so in the hands of whoever worked there before: it counts
only where what it leads to leads back.
"""

from __future__ import annotations

import os

from sigwrap.linux.descriptors import open_plain_file

_MOST_BYTES = 64 << 10


def git_common_dir(project_root: str) -> str:
    """Empty where there is none."""
    folder = os.path.realpath(project_root)
    while True:
        found = os.path.join(folder, ".git")
        if os.path.islink(found):
            return ""
        if os.path.isdir(found):
            return found if _is_repository(found) else ""
        if os.path.isfile(found):
            return _led_to(found)
        if folder == "/":
            return ""
        folder = os.path.dirname(folder)


def _led_to(file: str) -> str:
    key, _, path = _first_line(file).partition(": ")
    if key != "gitdir" or not path:
        return ""
    folder = os.path.dirname(file)
    git_dir = os.path.realpath(os.path.join(folder, path))
    back = _first_line(os.path.join(git_dir, "gitdir"))
    if back:  # a worktree's
        common = os.path.realpath(os.path.join(git_dir, _first_line(f"{git_dir}/commondir")))
        leads_back = os.path.realpath(os.path.join(git_dir, back)) == file
        is_inside = os.path.dirname(git_dir) == os.path.join(common, "worktrees")
        return common if leads_back and is_inside and _is_repository(common) else ""
    for line in _read(os.path.join(git_dir, "config")).splitlines():  # a submodule's
        key, _, value = map(str.strip, line.partition("="))
        if key == "worktree" and os.path.realpath(os.path.join(git_dir, value)) == folder:
            return git_dir if _is_repository(git_dir) else ""
    return ""


def _is_repository(folder: str) -> bool:
    return os.path.isfile(f"{folder}/HEAD") and os.path.isdir(f"{folder}/objects")


def _first_line(path: str) -> str:
    return _read(path).partition("\n")[0]


def _read(path: str) -> str:
    """Nothing of what is no plain file: who left it there would keep the start waiting."""
    try:
        with open_plain_file(path) as file:
            return os.fsdecode(file.read(_MOST_BYTES).partition(b"\0")[0])  # which no path has
    except OSError:
        return ""
