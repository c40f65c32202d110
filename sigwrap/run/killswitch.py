"""End a session when `sigwrap killswitch on` signals it. It refuses this signal from a process in a
session.

Any process of the user can write the file that keeps sessions from starting. So the file ends no
session: the supervisor removes a file that stays there without a signal.
"""

from __future__ import annotations

import os
import time

from sigwrap.hints import TYPE_CHECKING
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
_RECORDED_AGAIN_AFTER_S = 10.0


class KillSwitch:
    def __init__(self, session: Session) -> None:
        self._places = [_Place(store) for store in session.plan.stores]
        self._session = session
        self._loop = session.loop
        self._recorder = session.recorder
        self._is_on = False
        self._recorded_s = self._refused_s = 0.0
        self._invented = 0
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
        if not self._refused_s or now_s - self._refused_s > _RECORDED_AGAIN_AFTER_S:
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
        elif not place.first_seen_s:
            place.first_seen_s = now_s
        elif now_s - place.first_seen_s > _DISBELIEVED_AFTER_S:
            place.first_seen_s = 0.0
            self._remove(place, state, now_s)

    def _remove(self, place: _Place, state: State, now_s: float) -> None:
        """Remove the file, which would keep other sessions from starting.

        If the switch is turned on at this moment, `sigwrap killswitch on` writes the file again.
        """
        done = "sigwrap removed it"
        try:
            place.remove()
        except OSError as error:
            done = f"sigwrap cannot remove it: {error.strerror}"
        self._invented += 1
        if self._recorded_s and now_s - self._recorded_s < _RECORDED_AGAIN_AFTER_S:
            return
        path = killswitch.path_in(place.path)
        if not self._recorded_s:
            self._recorder.tell(f"{path} was not written by sigwrap killswitch on: {done}")
        self._recorded_s = now_s
        payload = {"path": path, "reason": state.reason, "count": self._invented}
        self._recorder.record("killswitch_invented", os.getpid(), payload)


class _Place:
    """A store, on the mounts that it had at the start: a later mount could block the look."""

    def __init__(self, store: str) -> None:
        self.path = os.path.abspath(store)
        self.first_seen_s = 0.0
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

    def remove(self) -> None:
        folder = self._pinned.open(os.O_DIRECTORY)
        try:
            killswitch.remove_from(folder)
        finally:
            os.close(folder)
