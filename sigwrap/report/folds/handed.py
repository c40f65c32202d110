"""Work that was handed to servers outside of the session, one for each server and socket."""

from __future__ import annotations

from sigwrap.events import Event, number, text, texts, times
from sigwrap.report.folds.tree import CommandLine, command_line
from sigwrap.tuples import NamedTuple

_SERVERS_KEPT = 20
_CHARACTERS_KEPT = 200


class Handed(NamedTuple):
    first: Event
    pid: int  # of the server; 0: in another container
    command: CommandLine  # empty where it had ended
    socket: str
    by: str  # the first who did
    often: int


class HandedFold:
    def __init__(self) -> None:
        self._found: dict[tuple[int, CommandLine, str], Handed] = {}
        self.more = 0  # how often to others

    def add(self, event: Event) -> None:
        get = event.payload.get
        argv = texts(get("peer_argv")) or [text(get("peer_cmd"))]
        pid, socket = number(get("peer_pid")), text(get("socket"))[:_CHARACTERS_KEPT]
        key = pid, command_line(argv), socket
        known, count = self._found.get(key), times(event.payload)
        if known is not None:
            self._found[key] = known._replace(often=known.often + count)
        elif len(self._found) < _SERVERS_KEPT:
            by = text(get("comm"))[:_CHARACTERS_KEPT]
            self._found[key] = Handed(event, *key, by, count)
        else:
            self.more += count

    def result(self) -> tuple[Handed, ...]:
        return tuple(self._found.values())
