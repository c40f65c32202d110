"""Old names of commands, which keep working: hidden, and each use names the new one."""

from __future__ import annotations

from sigwrap.cli.output import note
from sigwrap.cli.table import COMMANDS, HIDDEN, POLICY

OLD_NAMES = {
    "approvals": "watch --format text",
    "approvals list": "watch --format text",
    "install": "hook install",
    "uninstall": "hook uninstall",
    "policy generate": "policy learn --new",
    "policy suggest": "policy learn",
    "policy test": "policy check",
}
_BEFORE_A_COMMAND = ("--utc", "--no-pager")


def renamed(words: list[str], old_names: dict[str, str] = OLD_NAMES) -> list[str]:
    """Return the line with a command's new name in place of its old one.

    A hidden command of the table gets the line alone, any other of the table nothing.
    """
    start = next((at for at, word in enumerate(words) if word not in _BEFORE_A_COMMAND), 0)
    before, line = words[:start], words[start:]
    shown = {name for title, rows in COMMANDS.items() if title != HIDDEN for name in rows}
    hidden = {f"policy {name}" for name in POLICY[HIDDEN]}
    for old in sorted(old_names.keys() - shown, reverse=True):  # the longer path first
        path = old.split()
        if line[: len(path)] == path:
            note(f'"{old}" is now "{old_names[old]}"')
            new = path if old in hidden else old_names[old].split()
            return [*before, *new, *line[len(path) :]]
    return words
