"""Looks up for a hook: programs in PATH, names that match a glob, real paths."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from os.path import isdir, join

from sigwrap.cli.tool_files import with_shadows
from sigwrap.exec.host import SystemCommands
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.files import IN_A_FOLDER, FileRules
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.policy.judge.network import (
    BadDestination,
    Direction,
    Protocol,
    endpoint_of,
)
from sigwrap.policy.judge.request import CommandRequest, Decision, Operation, Program, strictest
from sigwrap.policy.tools.cases import command_request, with_variables
from sigwrap.session.sandbox import held_file_rules

MAX_NAMES = 2000
MAX_LOOKED_AT = 20_000

_CLASS = re.compile(r"\[[:.=]")


class TooMany(Exception):
    """There are too many names in the directories of a glob."""


class ThisMachine:
    def __init__(self, engine: Engine, *, runs_in_session: bool = True) -> None:
        """Set up the lookups. With `runs_in_session`, a run decides too, and knows which tools its
        session has changed. Without one, every program that comes before a system command in PATH
        shadows it."""
        self.runs_in_session = runs_in_session
        self._engine = engine
        self._files: FileRules | None = None
        self._commands: SystemCommands | None = None

    def request(
        self, words: Sequence[str], folder: str, depth: int, variables: frozenset[str]
    ) -> CommandRequest:
        request = self.by_name(words, folder, depth)
        programs = tuple(with_variables(_resolved(each), variables) for each in request.programs)
        return request._replace(programs=programs)

    def by_name(self, words: Sequence[str], folder: str, depth: int) -> CommandRequest:
        """Return a request whose files are not looked at, but for those that shadow a command."""
        if self._commands is None:
            since_ns = None if self.runs_in_session else 0
            self._commands = SystemCommands(os.environ.get("PATH", ""), since_ns)
        return with_shadows(command_request(words, folder=folder, depth=depth), self._commands)

    def names(self, pattern: str, folder: str) -> tuple[str, ...] | None:
        if _CLASS.search(pattern) or not (folder or pattern.startswith("/")):
            return None
        try:
            return tuple(sorted(_expanded(pattern, folder)))
        except (OSError, TooMany, re.error):
            return None

    def where(self, word: str, folder: str) -> str:
        if UNTOLD in word or "://" in word or word.startswith("-"):
            return word
        if not (folder or word.startswith("/")):
            return word
        whole = os.path.join(folder, word)
        if "/" not in word and word != ".." and not os.path.lexists(whole):
            return word
        above, name = os.path.split(whole)
        if name in ("", ".", ".."):
            above, name = whole, ""
        led = os.path.join(_real(above), name).rstrip("/") or "/"
        return word if led == os.path.normpath(whole) else led

    def file(self, path: str, folder: str, *, writes: bool) -> Decision | None:
        if not (folder or path.startswith("/")):
            return None
        whole = os.path.join(folder, path)
        operation = Operation.READ
        if writes:
            operation = Operation.WRITE if os.path.exists(whole) else Operation.CREATE
        return self.operation(operation, whole)

    def exists(self, path: str, folder: str) -> bool:
        try:
            os.lstat(os.path.join(folder, path))
        except PermissionError:  # in a directory that this user cannot search
            return True
        except (OSError, ValueError):
            return False
        return True

    def variable(self, name: str) -> str | None:
        return os.environ.get(name)

    def reads_everything_below(self, path: str) -> bool:
        path = _real(path)
        rules = (self._file_rules, self._engine.files)
        return all(each.holds_for_all(Operation.READ, path) for each in rules)

    def operation(self, operation: Operation, path: str) -> Decision:
        path = real_path(operation, path)
        decision = self._file_rules.decide(operation, path)
        if operation is Operation.READ and not os.path.lexists(path):
            # The kernel enforces no rule for a missing directory; it may be there soon.
            return strictest((decision, self._engine.files.by_rules(operation, path)))
        return decision

    @property
    def _file_rules(self) -> FileRules:
        if self._files is None:
            self._files = held_file_rules(self._engine)
        return self._files

    def connection(self, host: str, port: int) -> Decision | None:
        """Return None if `host` is not a valid host name."""
        shown = f"[{host}]" if ":" in host else host
        try:
            endpoint = endpoint_of(f"{shown}:{port}", Direction.CONNECT, Protocol.TCP)
        except BadDestination:
            return None
        return self._engine.network.decide(endpoint)


def real_path(operation: Operation, path: str) -> str:
    """Resolve all links, but not the last name where the operation acts on the link itself."""
    if operation not in IN_A_FOLDER:
        return _real(path)
    above, name = os.path.split(os.path.abspath(path))
    return os.path.join(_real(above), name)


def _real(path: str) -> str:
    """Resolve links, but those that this user cannot follow, such as /proc/1/root."""
    try:
        return os.path.realpath(path)
    except OSError:
        return os.path.abspath(path)


def _resolved(program: Program) -> Program:
    """Return the program with its real file, as a run sees it."""
    if not program.path_is_told or program.found or not os.path.exists(program.path):
        return program
    return program._replace(path=_real(program.path))


def _expanded(pattern: str, folder: str) -> Iterator[str]:
    """Expand a glob as bash does; hidden names match only a pattern with the dot."""
    start = "/" if pattern.startswith("/") else ""
    parts = [part for part in pattern.split("/") if part]
    found, looked_at = [start], 0
    for position, part in enumerate(parts):
        is_last = position == len(parts) - 1
        below: list[str] = []
        if not set(part) & set("*?["):
            below = [each + part for each in found if os.path.lexists(join(folder, each + part))]
        else:
            fits = re.compile(fnmatch.translate(part.replace("[^", "[!"))).match
            for each in found:
                for name in _listed(join(folder, each or ".")):
                    looked_at += 1
                    if looked_at > MAX_LOOKED_AT or len(below) > MAX_NAMES:
                        raise TooMany
                    if fits(name) and (part.startswith(".") or not name.startswith(".")):
                        below.append(each + name)
        found = below if is_last else [f"{each}/" for each in below if isdir(join(folder, each))]
    end = "/" if pattern.endswith("/") else ""
    yield from (each + end for each in found)


def _listed(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.name
    except (NotADirectoryError, FileNotFoundError):
        return
