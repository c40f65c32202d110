"""End a session when `sigwrap killswitch on` signals it. It refuses this signal from a process in a
session.

Any process of the user can write the file that keeps sessions from starting, a process in a session
too. So the file ends no session: a supervisor records a file that stays there without a signal.
"""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING
from sigwrap.linux.peer import Peer, examine_sender
from sigwrap.linux.pinned_path import PinnedPath
from sigwrap.linux.sigfd import KILL_SWITCH_SIGNAL, SignalFd
from sigwrap.mediate.run_end import SwitchedOff
from sigwrap.store import killswitch
from sigwrap.store.killswitch import State

if TYPE_CHECKING:
    from sigwrap.run.session import Session

_LOOKS_EVERY_S = 0.5
_DISBELIEVED_AFTER_S = 3.0
_REFUSED_AGAIN_AFTER_S = 10.0


class KillSwitch:
    def __init__(self, session: Session) -> None:
        self._places = [_Place(store) for store in session.plan.stores]
        self._session = session
        self._loop = session.loop
        self._recorder = session.recorder
        self._is_on = False
        self._refused_s = 0.0
        self._unannounced = 0
        self._signals = SignalFd({KILL_SWITCH_SIGNAL})
        self._loop.watch(self._signals.fd, self._on_signal)
        self._look_regularly()

    def close(self) -> None:
        """Stop listening: the process tree has ended."""
        self._is_on = True
        self._loop.unwatch(self._signals.fd)
        self._signals.close()

    def _on_signal(self, _happened: int) -> None:
        for info in self._signals.read():
            if self._is_on:
                return
            peer = examine_sender(info)
            if peer.objection:
                self._note_refused(peer)
            else:
                self._is_on = True
                state = self._state(peer.pid)
                self._session.ending.on(SwitchedOff(state.reason, state.by, state.since_ns))

    def _state(self, sender_pid: int) -> State:
        """Return what the sender says, or else the file. The sender is unreadable in another
        namespace, but a process in a session can change the file."""
        said = killswitch.announced_by(sender_pid) if sender_pid else None
        if said is not None:
            return said
        for place in self._places:
            state = place.look()
            if state is not None:
                return state
        return State()

    def _note_refused(self, peer: Peer) -> None:
        now_s = time.monotonic()
        if not self._refused_s or now_s - self._refused_s > _REFUSED_AGAIN_AFTER_S:
            self._refused_s = now_s
            self._session.approvals.refused(peer)

    def _look_regularly(self) -> None:
        if self._is_on:
            return
        now_s = time.monotonic()
        for place in self._places:
            self._look(place, now_s)
        self._loop.call_at(now_s + _LOOKS_EVERY_S, self._look_regularly)

    def _look(self, place: _Place, now_s: float) -> None:
        state = place.look()
        if state is None:
            place.first_seen_s = 0.0
            place.is_noted = False
        elif not place.first_seen_s:
            place.first_seen_s = now_s
        elif not place.is_noted and now_s - place.first_seen_s > _DISBELIEVED_AFTER_S:
            place.is_noted = True
            self._note_unannounced(place, state)

    def _note_unannounced(self, place: _Place, state: State) -> None:
        """Record a file that came without a signal.

        It stays, as the user may have turned the switch on in another container.
        """
        path = killswitch.path_in(place.path)
        if not self._unannounced:
            self._recorder.tell(
                f"{path} keeps new sessions from starting, but sigwrap killswitch on "
                "did not signal this session: if you did not turn it on, sigwrap killswitch off"
            )
        self._unannounced += 1
        payload = {"path": path, "reason": state.reason, "count": self._unannounced}
        self._recorder.record("killswitch_invented", os.getpid(), payload)


class _Place:
    """A store, on the mounts that it had at the start: a later mount could block the look."""

    def __init__(self, store: str) -> None:
        self.path = os.path.abspath(store)
        self.first_seen_s = 0.0
        self.is_noted = False
        self._pinned = PinnedPath(os.path.realpath(self.path))

    def look(self) -> State | None:
        """Return what the file says; None if there is no file."""
        try:
            folder = self._pinned.open(os.O_DIRECTORY)
        except OSError:  # the log is in one of the stores: its checks report a missing one
            return None
        try:
            return killswitch.look_in(folder)
        finally:
            os.close(folder)
