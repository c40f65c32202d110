"""A shell line, to the commands in it: what it would run, which files it opens for them, and what
isn't known before it runs.

Everything is taken to be run that may be: both sides of `&&`, each branch, a function's body where
it is defined. A command that stands behind `cd` has the folders in which it may be then. Nothing is
looked at here but the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sigwrap.hooks.evaluated import RUNS_QUOTED
from sigwrap.hooks.words import Word
from sigwrap.tuples import NamedTuple

MAX_COMMANDS = 2000
MAX_NESTED = 8

_MAX_FOLDERS = 8
_SHOWN = 60

Folders = tuple[str, ...]  # in one of which the shell is; empty: not known


class Command(NamedTuple):
    words: tuple[Word, ...]
    text: str  # as it was written
    folders: Folders
    depth: int
    is_function: bool = False  # the line defines one of that name


class FileUse(NamedTuple):
    """By a redirection."""

    writes: bool
    word: Word
    text: str
    folders: Folders


class Unknown(NamedTuple):
    """What can't be parsed, or isn't known before it runs."""

    text: str
    why: str
    is_signal: bool = False  # only whom it reaches


class Line(NamedTuple):
    commands: tuple[Command, ...]
    files: tuple[FileUse, ...]
    unknown: tuple[Unknown, ...]
    variables: frozenset[str]  # set anywhere in it
    unsure: frozenset[str] = frozenset()  # of these, whose values it does not show
    text: str = ""
    folder: str = ""  # in which it starts


class After(NamedTuple):
    """The folders where a command that went well leaves the shell, and where one that failed."""

    well: Folders
    failed: Folders

    @property
    def either(self) -> Folders:
        return bounded((*self.well, *self.failed))


def bounded(folders: Iterable[str]) -> Folders:
    found = tuple(dict.fromkeys(folders))
    return found if len(found) <= _MAX_FOLDERS else ("",)


def read_line(text: str, *, folder: str, home: str, depth: int) -> Line:
    """`depth`: of what the line itself runs."""
    found = Found(home)
    found.read_all([text], folder, depth)
    return found.line()


def read_words(argv: Sequence[str], *, folder: str, home: str, depth: int) -> Line | None:
    """What the shell that they start runs; None where they start none that is given a line."""
    from sigwrap.hooks.shells import SHELLS, script_of
    from sigwrap.hooks.wrapped import chain_of

    scripts = [
        script_of(name, each, (folder,)).line for name, each in chain_of(argv) if name in SHELLS
    ]
    lines = [line for line in scripts if line]
    if not lines:
        return None
    found = Found(home)
    found.read_all(lines, folder, depth + 1)
    return found.line()


class Found:
    """In a line, and in those in it."""

    def __init__(self, home: str) -> None:
        # Kept for a second reading:
        self.home = home  # empty once it may be another
        self.has_cdpath = False
        self.globs_otherwise = False  # than bash does without options
        self.functions: set[str] = set()
        self.git_aliases: set[str] = set()  # that the line defines
        self.moved = False
        self.reached: set[str] = set()  # folders, by any shell in it
        self.moving: set[tuple[bytes, int]] = set()  # loops in which the folder changes
        self.functions_move = False
        self.evaluates = False  # values, as an index or a number
        self._lines: Sequence[str] = ()
        self.folder = ""
        self.begin_again()

    def begin_again(self) -> None:
        self.moves = 0  # of the shell that is read
        self.commands: list[Command] = []
        self.files: list[FileUse] = []
        self.variables: set[str] = set()
        self.unsure: set[str] = set()
        self.quoted: set[str] = set()  # what a shell that evaluates values would run
        self._unknown: list[Unknown] = []

    def line(self) -> Line:
        if self.evaluates:
            for text in sorted(self.quoted):
                self.not_known(text, RUNS_QUOTED)
        return Line(
            tuple(dict.fromkeys(self.commands)),
            tuple(dict.fromkeys(self.files)),
            tuple(dict.fromkeys(self._unknown)),
            frozenset(self.variables),
            frozenset(self.unsure),
            "\n".join(self._lines),
            self.folder,
        )

    def move(self, folders: Folders) -> None:
        self.moved = True
        self.moves += 1
        self.reached.update(folders)

    def anywhere(self, folders: Folders) -> Folders:
        """Where a shell may be that runs something later, or over and over."""
        if not self.moved:
            return folders
        return bounded((*folders, "", *sorted(self.reached)))

    def not_known(self, text: str, why: str, *, is_signal: bool = False) -> None:
        text = " ".join(text.split())
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        self._unknown.append(Unknown(shown, why, is_signal))

    def read_all(self, lines: Sequence[str], folder: str, depth: int) -> None:
        """Each in that folder. Where they change the folder or HOME, that counts for what stands
        before, too: they are read twice."""
        home = self.home
        self._lines, self.folder = lines, folder
        for line in lines:
            self.read(line, (folder,), depth, 0)
        if self.moved or self.home != home:
            self.begin_again()
            for line in lines:
                self.read(line, (folder,), depth, 0)

    def read(self, line: str, folders: Folders, depth: int, nested: int) -> Folders:
        """The folders in which it leaves its shell."""
        from sigwrap.hooks.shell_tree import Unparsable, doubt, parsed
        from sigwrap.hooks.shell_visit import Visitor

        self.quoted.discard(line)
        try:
            if nested > MAX_NESTED:
                raise Unparsable("its shells are nested too deeply")
            text = _encoded(line)
            root = parsed(text)
            why = doubt(root, text)
        except Unparsable as failure:
            self.not_known(line, str(failure))
            return ("",)
        if why:
            self.not_known(line, why)
        return Visitor(self, root, text, depth, nested).sequence(root, folders)


def _encoded(line: str) -> bytes:
    from sigwrap.hooks.shell_tree import Unparsable

    try:
        return line.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as failure:
        raise Unparsable("it contains a lone surrogate") from failure
