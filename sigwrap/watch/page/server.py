"""The server: it accepts connections, has their processes identified, and starts a thread for each
that may ask, until a signal.

If too many are open, the server closes the one that has been silent longest, first of all those
without the cookie. It never closes a stream for others.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from sigwrap.approve.control_client import is_left
from sigwrap.errors import UsageError
from sigwrap.kernel.descriptors import refuse_descriptors
from sigwrap.kernel.peer import Peer, examine
from sigwrap.text import printable
from sigwrap.watch.board import Order
from sigwrap.watch.page.connection import Bounds, Connection, Events, Streams
from sigwrap.watch.page.gate import Gate
from sigwrap.watch.page.messages import plain
from sigwrap.watch.page.peers import Peers, Refusals
from sigwrap.watch.page.site import Site

_HOST = "127.0.0.1"
_BACKLOG = 4_096
_MODE = 0o600


def at_port(port: int) -> socket.socket:
    """Listen on a port, 0 for any free one; UsageError if that fails."""
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # an earlier server's TIME_WAIT
        end.bind((_HOST, port))
        end.listen(_BACKLOG)
    except OSError as error:
        end.close()
        is_used = error.errno == errno.EADDRINUSE
        why = f"port {port} is in use" if is_used else f"port {port}: {error.strerror}"
        raise UsageError(why, "choose another port, or omit --port") from error
    return end


class SocketFile:
    """A socket file, removed at the end if it is still this one."""

    def __init__(self, path: str) -> None:
        """Listen; UsageError if that fails."""
        self.path = os.path.abspath(path)
        self.end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        umask = os.umask(0o777 & ~_MODE)
        try:
            self._check_folder()
            self._remove_if_left_over()
            self.end.bind(self.path)
            self._found = os.lstat(self.path)
            refuse_descriptors(self.end)
            self.end.listen(_BACKLOG)
        except OSError as error:
            why = "the file exists" if error.errno == errno.EADDRINUSE else error.strerror
            raise self._refused(why or str(error)) from error
        finally:
            os.umask(umask)

    @property
    def is_in_place(self) -> bool:
        """Return whether the path still leads to this socket."""
        try:
            return os.path.samestat(os.lstat(self.path), self._found)
        except OSError:
            return False

    def close(self) -> None:
        self.end.close()
        if self.is_in_place:
            with suppress(OSError):
                os.unlink(self.path)

    def _check_folder(self) -> None:
        found = os.stat(os.path.dirname(self.path))
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
            raise self._refused("other users may write to its directory")

    def _refused(self, why: str) -> UsageError:
        self.end.close()
        hint = "choose a path in a directory that only you may write to, such as $XDG_RUNTIME_DIR"
        return UsageError(f"--socket {printable(self.path)}: {why}", hint)

    def _remove_if_left_over(self) -> None:
        """Remove the file of a server that was killed: no process listens on it."""
        folder, name = os.path.split(self.path)
        folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if is_left(folder_fd, name):
                os.unlink(name, dir_fd=folder_fd)
        finally:
            os.close(folder_fd)


_LOOKS_EVERY_S = 0.5
_PAUSE_S = 0.1
_REFUSALS_ANSWERED = 30  # in a second
_ENDS_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(
    listener: socket.socket,
    store: str,
    source: Events,
    carry_out: Callable[[Order], str],
    *,
    report_line: Sequence[str],
    tell: Callable[[str], None],
    ready: Callable[[str], None],
    bounds: Bounds | None = None,
    is_in_place: Callable[[], bool] = lambda: True,
) -> bool:
    """Serve until a signal; return False if `listener` is no longer in place.

    `ready` gets the path that lets the first browser in.
    """
    bounds = bounds or Bounds()
    port = listener.getsockname()[1] if listener.family == socket.AF_INET else None
    gate = Gate(port, os.urandom)
    site = Site(gate, carry_out, Streams(source, bounds), report_line)
    server = Server(listener, bounds, Refusals(store, tell).add, site.serve, tell)
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def end(_number: int, _frame: object) -> None:
        with suppress(BlockingIOError):
            os.write(wake, b".")

    before = {number: signal.signal(number, end) for number in _ENDS_BY}
    try:
        ready(gate.entry)
        return server.run(woken, is_in_place)
    finally:
        site.finish()
        server.close()
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(woken)
        os.close(wake)


class Server:
    def __init__(
        self,
        listener: socket.socket,
        bounds: Bounds,
        on_refused: Callable[[Peer], None],
        serve_one: Callable[[Connection], None],
        tell: Callable[[str], None],
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._bounds = bounds
        self._peers = Peers(bounds.identified_s)
        self._on_refused = on_refused
        self._serve_one = serve_one
        self._tell = tell
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()
        self._refused: deque[float] = deque(maxlen=_REFUSALS_ANSWERED)

    def run(self, woken: int, is_in_place: Callable[[], bool]) -> bool:
        """Accept connections until `woken` is readable; return False if the socket is replaced."""
        poll = select.poll()
        for fd in (woken, self._listener.fileno()):
            poll.register(fd, select.POLLIN)
        while is_in_place():
            ready = {fd for fd, _ in poll.poll(_LOOKS_EVERY_S * 1000)}
            if woken in ready:
                return True
            self._peers.give_up_late()
            if self._listener.fileno() in ready:
                self._accept()
        return False

    def close(self) -> None:
        with self._lock:
            for each in self._connections:
                each.cut()

    def _accept(self) -> None:
        """Accept one; if there is no room, it waits in the kernel."""
        if self._peers.sought >= self._bounds.unknown:
            time.sleep(_PAUSE_S)
            return
        try:
            end, _address = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:  # the client has left, or there are no descriptors
            time.sleep(_PAUSE_S)
            return
        connection = Connection(end, self._bounds)
        if end.family == socket.AF_UNIX:
            self._on_identified(connection, examine(end))
            return
        try:
            self._peers.examine(end, lambda peer: self._on_identified(connection, peer))
        except OSError:  # the client has left
            connection.close()

    def _on_identified(self, connection: Connection, peer: Peer) -> None:
        if peer.objection:
            self._on_refused(peer)
            now_s = time.monotonic()
            is_flood = len(self._refused) == _REFUSALS_ANSWERED and now_s - self._refused[0] < 1.0
            self._refused.append(now_s)
            if is_flood:
                connection.close()
                return
        self._start(connection, peer.objection)

    def _start(self, connection: Connection, objection: str) -> None:
        with self._lock:
            has_room = self._make_room()
            if has_room:
                self._connections.add(connection)
        try:
            if has_room:
                run = threading.Thread(target=self._run, args=(connection, objection), daemon=True)
                run.start()
                return
        except RuntimeError:  # the system has no room for another thread
            pass
        self._end(connection)

    def _make_room(self) -> bool:
        if len(self._connections) < self._bounds.connections:
            return True
        others = [each for each in self._connections if not (each.is_stream or each.is_cut)]
        if not others or len(self._connections) >= 2 * self._bounds.connections:
            return False
        min(others, key=lambda each: (each.is_let_in, each.heard_s)).cut()
        return True

    def _run(self, connection: Connection, objection: str) -> None:
        try:
            if objection:
                connection.answer(plain(403, f"the page refused this browser: {objection}"))
            else:
                self._serve_one(connection)
        except OSError:
            pass  # the client left, or was too slow
        except Exception as bug:
            self._tell(f"internal error: {type(bug).__name__}: {bug}")
        finally:
            self._end(connection)

    def _end(self, connection: Connection) -> None:
        with self._lock:
            self._connections.discard(connection)
            connection.close()
