"""Reads a shell line, and the lines of the shells that it starts: what it comes to, and what is not
known of it."""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.bare import re
from sigwrap.hooks.shell_commands import Commands
from sigwrap.hooks.shell_line import MAX_NESTED, Folders, Found, Line
from sigwrap.hooks.shell_statements import StatementReader
from sigwrap.hooks.shell_words import RUNS_QUOTED
from sigwrap.hooks.shells import SHELLS, script_of
from sigwrap.hooks.words import without_quotes
from sigwrap.hooks.wrapped import chain_of

MAX_BYTES = 256 * 1024
_USED = re.compile(r"\$(HOME|PWD)\b|\$\{(HOME|PWD)\}")
_MOVES = re.compile(r"\b(cd|pushd|popd|chdir|eval|trap)\b|PWD|IFS|pwd\s*\(")
# Values that bash evaluates run what is in them: `x='a[$(b)]'; ((x))`.
_EVALUATES = re.compile(
    r"\(\(|\$\[|\$\{(!|\w*:[^-=?+\d])|\w\[|\(\s*\[[\w$]"
    r"|(\[|\btest)\s+(!\s+)?-v\b|\b(let|unset|compgen|printf\s+-v|wait\s+-)\b"
    r"|\b(declare|typeset|local|readonly|export)\s+-",
)
_COMPARES = re.compile(r"\[\[(.{0,300}?-(eq|ne|lt|le|gt|ge|v)\b|((?!\]\]).){300})", re.DOTALL)


def read_line(text: str, *, folder: str, home: str, depth: int) -> Line:
    """Read a line; `depth` is that of the processes that the line itself starts."""
    return _read([text], folder, home, depth)


def read_words(argv: Sequence[str], *, folder: str, home: str, depth: int) -> Line | None:
    """Read the lines of the shells that a command starts; None if there are none."""
    scripts = [
        script_of(name, each, (folder,)).line for name, each in chain_of(argv) if name in SHELLS
    ]
    lines = [line for line in scripts if line]
    return _read(lines, folder, home, depth + 1) if lines else None


def _read(lines: Sequence[str], folder: str, home: str, depth: int) -> Line:
    found = _Found(home, folder)
    for line in lines:
        found.read(line, (folder,), depth, 0)
    if found.quoted and any(map(_evaluates, found.code)):
        for text in sorted(found.quoted):
            found.not_known(text, RUNS_QUOTED)
    return Line(
        tuple(dict.fromkeys(found.commands)),
        tuple(dict.fromkeys(found.files)),
        tuple(dict.fromkeys(found.unknown)),
        frozenset(found.variables),
        frozenset(found.unsure),
        "\n".join(lines),
        folder,
        tuple(dict.fromkeys(found.possible)),
    )


def _evaluates(code: str) -> bool:
    return _EVALUATES.search(code) is not None or _COMPARES.search(code) is not None


class _Found(Found):
    def read(self, line: str, folders: Folders, depth: int, nested: int) -> Folders:
        if not self.is_possible:
            self.quoted.discard(line)
        why = _why_unreadable(line)
        if nested > MAX_NESTED:
            why = "its shells are nested too deeply"
        if why:
            self.not_known(line, why)
            return ("",)
        # A later statement may set them in a loop; IFS splits them.
        left = without_quotes(_USED.sub("", line))
        has_escapes = "$'" in line
        if "HOME" in left or "IFS" in left or has_escapes:
            self.home = ""
        if "@P}" in line:
            self.not_known(line, "the shell may run the text of a value")
        folder = "" if nested or has_escapes or _MOVES.search(left) else self.folder
        return StatementReader(self, line, folders, folder, Commands(self, depth, nested)).read()


def _why_unreadable(line: str) -> str:
    try:
        size = len(line.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return "it contains a lone surrogate"
    if size > MAX_BYTES:
        return f"it is longer than {MAX_BYTES // 1024} KiB"
    if "\0" in line:
        return "it contains a NUL character"
    return "it contains a carriage return" if "\r" in line else ""
