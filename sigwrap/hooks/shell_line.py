"""The parts of a shell line: the commands that it would run, the files that it opens for them, and
the parts that the hook does not read.

Everything counts that may run: both sides of `&&` and each branch. A command behind `cd` has the
directories in which it may run then. Nothing is looked up on the machine.
"""

from __future__ import annotations

from collections.abc import Iterable

from sigwrap.bare import NamedTuple
from sigwrap.hooks.words import Word

MAX_COMMANDS = 2000
MAX_NESTED = 8

_MAX_FOLDERS = 8
_SHOWN = 60

Folders = tuple[str, ...]  # where the shell may be; empty: not known


class Command(NamedTuple):
    words: tuple[Word, ...]
    text: str  # as it was written
    folders: Folders
    depth: int
    is_sure: bool = True  # False: one reading of another command's words


class FileUse(NamedTuple):
    """A file of a redirection."""

    writes: bool
    word: Word
    text: str
    folders: Folders


class Unknown(NamedTuple):
    """A part that the hook cannot parse or does not read."""

    text: str
    why: str
    is_signal: bool = False  # only its target is not known


class Line(NamedTuple):
    commands: tuple[Command, ...]
    files: tuple[FileUse, ...]
    unknown: tuple[Unknown, ...]
    variables: frozenset[str]  # set anywhere in it
    unsure: frozenset[str] = frozenset()  # of these, whose values it does not show
    text: str = ""
    folder: str = ""  # in which it starts
    possible: tuple[Command, ...] = ()  # words of programs that are not known to run them


class After(NamedTuple):
    """The directories where a command leaves the shell: if it succeeds, and if it fails."""

    well: Folders
    failed: Folders

    @property
    def either(self) -> Folders:
        return bounded((*self.well, *self.failed))


def bounded(folders: Iterable[str]) -> Folders:
    found = tuple(dict.fromkeys(folders))
    return found if len(found) <= _MAX_FOLDERS else ("",)


class Found:
    """Collects the parts of a line, and of the lines within it."""

    def __init__(self, home: str, folder: str) -> None:
        self.home = home  # empty once it may be another
        self.folder = folder
        self.commands: list[Command] = []
        self.possible: list[Command] = []
        self.files: list[FileUse] = []
        self.unknown: list[Unknown] = []
        self.variables: set[str] = set()
        self.unsure: set[str] = set()
        self.quoted: set[str] = set()  # what a shell that evaluates values would run
        self.code: list[str] = []  # of each line, without quoted texts
        self.is_sure = True  # what is being read runs in every reading
        self.within = 0  # as many commands that each run the next
        self.deep = 0  # as many statements within each other
        self.is_one_of_several = False  # readings of the same words
        self.is_possible = False  # what is being read may be no command at all

    def not_known(self, text: str, why: str, *, is_signal: bool = False) -> None:
        if self.is_possible:
            return
        text = " ".join(text.split())
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        self.unknown.append(Unknown(shown, why, is_signal))

    def read(self, line: str, folders: Folders, depth: int, nested: int) -> Folders:
        """Take in a line; return the directories in which it leaves its shell."""
        raise NotImplementedError
