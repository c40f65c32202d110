"""Which exec may go on: one of a process at a time, and none while the session stands still.

Requests wait here in the order in which they came. An exec that has gone on is in flight until it
is over; a stop of the session waits for those.
"""

from __future__ import annotations

from sigwrap.bare.collections import deque
from sigwrap.hints import TYPE_CHECKING
from sigwrap.mediate.effects import Turn
from sigwrap.mediate.lineage import Process
from sigwrap.run.perform import PAUSED, Scope

if TYPE_CHECKING:
    from sigwrap.run.session import Session


class Turns:
    def __init__(self, session: Session) -> None:
        self._session = session
        self.is_closed = False  # the session stands still
        self._held: deque[Scope] = deque()
        self._busy: set[int] = set()  # pids of processes that are at an exec
        self._behind: dict[int, deque[tuple[Scope, object]]] = {}  # by these pids; with a reply
        self._in_flight: set[object] = set()

    def wait(self, scope: Scope, _effect: Turn) -> object:
        """Carry out Turn: PAUSED until it is the request's turn."""
        if self.is_closed:
            self._held.append(scope)
        elif self.is_busy(scope.process):
            # That exec may wait for this thread to end, which its tracer has to let go.
            scope.holdings.let_others_go()
            self.wait_behind(scope.process, scope, None)
        else:
            return None
        return PAUSED

    def _let_go(self, scope: Scope, reply: object) -> None:
        """Resume a request, unless it has to wait for something else now."""
        mediation = self._session.mediation
        assert mediation is not None, "the request came from it"
        if reply is not None or self.wait(scope, Turn()) is not PAUSED:
            mediation.performer.wake(scope, reply)

    # The session stands still

    @property
    def held(self) -> int:
        return len(self._held)

    def close(self) -> None:
        self.is_closed = True

    def open(self) -> None:
        self.is_closed = False
        # One of them may close it again.
        while self._held and not self.is_closed:
            self._let_go(self._held.popleft(), None)

    # A process is at an exec

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

    # Execs that have gone on

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def goes_on(self, exec_: object) -> None:
        self._in_flight.add(exec_)

    def is_over(self, exec_: object) -> None:
        if exec_ in self._in_flight:
            self._in_flight.remove(exec_)
            if not self._in_flight:
                self._session.agent_signals.no_exec_in_flight()
