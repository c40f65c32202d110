"""A session and the kill switch: `sigwrap killswitch on` tells it, and it believes nobody inside.

The file that keeps others from starting lies where whoever runs as the user can write. While it is
there, and nobody has told this session within the time in which who turned it on would have ended
it, somebody else has put it there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from sigwrap.bare import socket
from sigwrap.linux import session_line
from sigwrap.linux.peer import Peer, examine
from sigwrap.linux.pinned_path import PinnedPath
from sigwrap.run.loop import Loop
from sigwrap.run.recorder import Recorder
from sigwrap.store import killswitch
from sigwrap.store.killswitch import State

_LOOKS_EVERY_S = 0.5
_DISBELIEVED_AFTER_S = 3.0
_RECORDED_AGAIN_AFTER_S = 10.0
_PATIENCE_S = 2.0
_MOST_CONNECTIONS = 16
_AT_ONCE = 64
_PAUSE_S = 0.005


class KillSwitch:
    def __init__(
        self,
        line: socket.socket | None,
        stores: tuple[str, ...],
        loop: Loop,
        recorder: Recorder,
        on_activated: Callable[[State], None],
        on_refused: Callable[[Peer], None],
    ) -> None:
        """`line`: listens since before the files were looked for, so nobody who has put them there
        since can have missed us."""
        self._line = line
        self._places = [_Store(store) for store in stores]
        self._loop = loop
        self._recorder = recorder
        self._on_activated = on_activated
        self._on_refused = on_refused
        self._is_on = False
        self._connections: set[socket.socket] = set()
        self._recorded_s = self._refused_s = 0.0
        self._invented = 0
        if line is not None:
            self._listen()
        self._look_regularly()

    def close(self) -> None:
        """Nobody is left whom it could end."""
        self._is_on = True
        for end in tuple(self._connections):
            self._hang_up(end)
        if self._line is not None:
            self._loop.unwatch(self._line.fileno())
            self._line.close()

    # Who tells

    def _listen(self) -> None:
        if self._line is None or self._is_on:
            return
        try:
            self._loop.watch(self._line.fileno(), self._on_connection)
        except OSError:  # no watch is left: it is tried again
            self._loop.call_at(time.monotonic() + _PAUSE_S, self._listen)

    def _on_connection(self, _happened: int) -> None:
        """Many at once, and a short pause: whoever crowds the line keeps nobody else from it, and
        us from nothing else."""
        for _ in range(_AT_ONCE):
            if self._line is None or self._is_on:
                return
            try:
                end, _address = self._line.accept()
            except BlockingIOError:
                return
            except OSError:
                break
            self._take(end)
        self._pause()

    def _take(self, end: socket.socket) -> None:
        peer = examine(end)
        if peer.objection or len(self._connections) >= _MOST_CONNECTIONS:
            end.close()
            if peer.objection:
                self._note_refused(peer)
            return
        end.setblocking(False)
        self._connections.add(end)
        try:
            self._loop.watch(end.fileno(), lambda _: self._on_message(end))
        except OSError:
            self._connections.discard(end)
            end.close()
            return
        self._loop.call_at(time.monotonic() + _PATIENCE_S, lambda: self._hang_up(end))

    def _note_refused(self, peer: Peer) -> None:
        now_s = time.monotonic()
        if not self._refused_s or now_s - self._refused_s > _RECORDED_AGAIN_AFTER_S:
            self._refused_s = now_s
            self._on_refused(peer)

    def _pause(self) -> None:
        if self._line is not None and not self._is_on:
            self._loop.unwatch(self._line.fileno())
            self._loop.call_at(time.monotonic() + _PAUSE_S, self._listen)

    def _on_message(self, end: socket.socket) -> None:
        data = session_line.received(end)
        if data is None:
            return
        self._hang_up(end)
        state = killswitch.of_message(data)
        if state is not None and not self._is_on:
            self._is_on = True
            self._on_activated(state)

    def _hang_up(self, end: socket.socket) -> None:
        if end in self._connections:
            self._connections.discard(end)
            self._loop.unwatch(end.fileno())
            end.close()

    # The files

    def _look_regularly(self) -> None:
        if self._is_on:
            return
        now_s = time.monotonic()
        for place in self._places:
            self._look(place, now_s)
        self._loop.call_at(now_s + _LOOKS_EVERY_S, self._look_regularly)

    def _look(self, place: _Store, now_s: float) -> None:
        try:
            folder = place.open()
        except OSError:  # the log's files are in one of them: who took it away is noticed
            return
        try:
            state = killswitch.look_in(folder)
            if state is None:
                place.first_seen_s = 0.0
            elif not place.first_seen_s:
                place.first_seen_s = now_s
            elif now_s - place.first_seen_s > _DISBELIEVED_AFTER_S:
                place.first_seen_s = 0.0
                self._take_away(folder, place.path, state, now_s)
        finally:
            os.close(folder)

    def _take_away(self, folder: int, store: str, state: State, now_s: float) -> None:
        """Or others couldn't start. Who turns the switch on in this very moment puts it there
        anew."""
        done = "sigwrap removed it"
        try:
            killswitch.remove_from(folder)
        except OSError as error:
            done = f"sigwrap cannot remove it: {error.strerror}"
        self._invented += 1
        if self._recorded_s and now_s - self._recorded_s < _RECORDED_AGAIN_AFTER_S:
            return
        path = killswitch.path_in(store)
        if not self._recorded_s:
            self._recorder.tell(f"{path} was not written by sigwrap killswitch on: {done}")
        self._recorded_s = now_s
        payload = {"path": path, "reason": state.reason, "count": self._invented}
        self._recorder.record("killswitch_invented", os.getpid(), payload)


class _Store:
    """A store, on the mounts that it was on at the start: a later mount could block the look."""

    def __init__(self, store: str) -> None:
        self.path = os.path.abspath(store)
        self.first_seen_s = 0.0
        self._pinned = PinnedPath(os.path.realpath(self.path))

    def open(self) -> int:
        """Return a descriptor of the directory; raise OSError if it is missing."""
        return self._pinned.open(os.O_DIRECTORY)
