"""Work that was handed to servers outside the session: one entry for each server and socket."""

from __future__ import annotations

from collections.abc import Iterator

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.events import Event, number, text, texts, times
from sigwrap.report.folds.tree import CommandLine, command_line, words
from sigwrap.tuples import NamedTuple

_SERVERS_KEPT = 20
_CHARACTERS_KEPT = 200
_COMMAND_CHARACTERS = 80


class Handed(NamedTuple):
    first: Event
    pid: int  # of the server; 0: in another container
    command: CommandLine  # empty if it had ended
    socket: str
    by: str  # the first caller
    often: int

    @property
    def line(self) -> str:
        """What happened, escaped for a terminal."""
        times = f", {self.often} times" if self.often > 1 else ""
        by = f", by {printable(self.by)}" if self.by else ""
        through = f"{printable(self.socket)}{by}{times}"
        return f"handed work outside the session, to {self._server()} ({through})"

    def _server(self) -> str:
        if not self.pid:
            return "a process in another container"
        if not self.command:
            return f"PID {self.pid}, which has ended"
        program, *rest = words(self.command)
        line = shell_words([program.rpartition("/")[2] or program, *rest])
        return f"PID {self.pid} {shortened(line, _COMMAND_CHARACTERS)}"


class HandedFold:
    def __init__(self) -> None:
        self._found: dict[tuple[int, CommandLine, str], Handed] = {}
        self.more = 0  # how often to other servers

    def add(self, event: Event) -> None:
        new = handed_by(event)
        key = new.pid, new.command, new.socket
        known = self._found.get(key)
        if known is not None:
            self._found[key] = known._replace(often=known.often + new.often)
        elif len(self._found) < _SERVERS_KEPT:
            self._found[key] = new
        else:
            self.more += new.often

    @property
    def found(self) -> list[Handed]:
        return list(self._found.values())

    def lines(self) -> Iterator[str]:
        yield from (each.line for each in self.found)
        if self.more:
            yield f"and {self.more} times to other processes outside the session"


def handed_by(event: Event) -> Handed:
    get = event.payload.get
    argv = texts(get("peer_argv")) or [text(get("peer_cmd"))]
    return Handed(
        event,
        number(get("peer_pid")),
        command_line(argv),
        text(get("socket"))[:_CHARACTERS_KEPT],
        text(get("comm"))[:_CHARACTERS_KEPT],
        times(event.payload),
    )
