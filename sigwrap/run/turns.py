"""Decide which exec may go on: one for each process, and none while the session is frozen.

Requests wait here in order of arrival. An exec that has gone on is in flight until it is over; a
freeze of the session waits for those.
"""

from __future__ import annotations

from sigwrap.bare import TYPE_CHECKING, deque
from sigwrap.mediate.effects import Turn
from sigwrap.mediate.lineage import Process
from sigwrap.run.perform import PAUSED, Scope

if TYPE_CHECKING:
    from sigwrap.run.session import Session


class Turns:
    def __init__(self, session: Session) -> None:
        self._session = session
        self.is_closed = False  # the session is frozen
        self._held: deque[Scope] = deque()
        self._busy: set[int] = set()  # pids of processes with an exec
        self._behind: dict[int, deque[tuple[Scope, object]]] = {}  # by these pids; with a reply
        self._in_flight: set[object] = set()

    def wait(self, scope: Scope, _effect: Turn) -> object:
        """Wait for the request's turn. The reply to Turn: PAUSED until then."""
        if self.is_closed:
            self._held.append(scope)
        elif self.is_busy(scope.process):
            self.wait_behind(scope.process, scope, None)
        else:
            return None
        scope.holdings.free_tracer()  # the exec that goes first may need it
        return PAUSED

    def _let_go(self, scope: Scope, reply: object) -> None:
        """Resume a request, unless it must wait for something else now."""
        mediation = self._session.mediation
        assert mediation is not None, "the request came from it"
        if reply is not None or self.wait(scope, Turn()) is not PAUSED:
            mediation.performer.wake(scope, reply)

    # Freezing

    @property
    def held(self) -> int:
        return len(self._held)

    def close(self) -> None:
        self.is_closed = True

    def open(self) -> None:
        self.is_closed = False
        # A released request may close it again.
        while self._held and not self.is_closed:
            self._let_go(self._held.popleft(), None)

    # Processes with an exec

    def is_busy(self, process: Process) -> bool:
        return process.pid in self._busy

    def wait_behind(self, process: Process, scope: Scope, reply: object) -> None:
        self._behind.setdefault(process.pid, deque()).append((scope, reply))

    def take(self, process: Process) -> None:
        self._busy.add(process.pid)

    def give_back(self, process: Process) -> None:
        pid = process.pid
        self._busy.discard(pid)
        behind = self._behind.get(pid)
        while behind and pid not in self._busy:
            self._let_go(*behind.popleft())
        if not behind:
            self._behind.pop(pid, None)

    # Execs in flight

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def begun(self, exec_: object) -> None:
        self._in_flight.add(exec_)

    def ended(self, exec_: object) -> None:
        if exec_ in self._in_flight:
            self._in_flight.remove(exec_)
            if not self._in_flight:
                self._session.agent_signals.no_exec_in_flight()
