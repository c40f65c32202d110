"""Old names of commands, which keep working: hidden, and each use names the new one."""

from __future__ import annotations

from sigwrap.cli.output import note
from sigwrap.cli.table import COMMANDS, POLICY

OLD_NAMES = {
    "approvals": "watch --format text",
    "approvals list": "watch --format text",
    "install": "hook install",
    "uninstall": "hook uninstall",
    "policy generate": "policy learn --new",
    "policy replay": "policy try",
    "policy suggest": "policy learn",
    "policy test": "policy check",
}
_BEFORE_A_COMMAND = ("--utc", "--no-pager")


def renamed(words: list[str], old_names: dict[str, str] = OLD_NAMES) -> list[str]:
    """Return the line with a command's new name in place of its old one.

    A name in the table of commands is never replaced.
    """
    start = next((at for at, word in enumerate(words) if word not in _BEFORE_A_COMMAND), 0)
    before, line = words[:start], words[start:]
    known = {name for rows in COMMANDS.values() for name in rows}
    known |= {f"policy {name}" for rows in POLICY.values() for name in rows}
    for old in sorted(old_names.keys() - known, reverse=True):  # the longer path first
        path = old.split()
        if line[: len(path)] == path:
            note(f'"{old}" is now "{old_names[old]}"')
            return [*before, *old_names[old].split(), *line[len(path) :]]
    return words
