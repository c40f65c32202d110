"""The client of the control protocol: it asks all running sessions of a store at once.

Any process of this user can put sockets into the store: many, silent ones, and full ones. So one
loop asks all within a bounded time. It asks each socket once, under any number of names, and the
reachable ones first. If the time is too short for all, each call asks others. A thread waits for a
full socket in connect(2): the kernel admits waiting threads in order, so repeated attempts would
always come too late.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from sigwrap.approve.control_protocol import (
    SOCKET_SUFFIX,
    ControlReply,
    ControlRequest,
    control_folder,
    decode_reply,
    encode,
    socket_path,
)
from sigwrap.bare import NamedTuple
from sigwrap.errors import SessionError, StoreError
from sigwrap.kernel.peer import objection_to_listener
from sigwrap.text import printable

WITHIN_S = 4.0  # for all requests; a session keeps a silent connection a second longer
PATIENCE_S = 2.5  # the part of it for the first request
_MOST_WAITING = 64
_MAX_REPLY_BYTES = 16 << 20
_DOES_NOT_WAIT = socket.SOCK_STREAM | socket.SOCK_NONBLOCK


class Unreachable(SessionError):
    """A session cannot be asked; `session_id` is empty if it concerns no single session."""

    def __init__(self, message: str, session_id: str = "", hint: str = "") -> None:
        super().__init__(message, hint)
        self.session_id = session_id


class ControlClient(NamedTuple):
    """A connection to a running session, as `ask_all` gives it."""

    session_id: str
    connection: socket.socket
    ends_at_s: float

    def ask(self, request: ControlRequest) -> ControlReply:
        exchange = _Exchange(self.session_id, self.connection, encode(request))
        poll = select.poll()
        poll.register(self.connection, exchange.waits_for)
        while not exchange.is_over:
            left_s = self.ends_at_s - time.monotonic()
            for _ in poll.poll(max(0.0, left_s) * 1000):
                exchange.go_on()
            if left_s <= 0 and not exchange.is_over:  # even if a byte comes now and then
                raise exchange.silence()
            poll.modify(self.connection, exchange.waits_for)
        return exchange.reply()


class Answered(NamedTuple):
    client: ControlClient
    reply: ControlReply


@contextmanager
def ask_all(
    store: str, request: ControlRequest, first: Collection[str] = ()
) -> Iterator[tuple[list[Answered], list[Unreachable]]]:
    """Return the replies of the running sessions, and the failures. A socket without a listener is
    left out. `first`: the sessions to ask before all others."""
    with ExitStack() as stack:
        folder_fd = _open_folder(control_folder(store))
        if folder_fd is None:
            yield [], []
            return
        stack.callback(os.close, folder_fd)
        names = _names(folder_fd)
        asked = _Round(folder_fd, request, stack, names)
        asked.ask(sorted(names, key=lambda each: (each not in first, os.urandom(4))))
        asked.answered.sort(key=lambda each: each.client.session_id)
        asked.failures.sort(key=lambda each: each.session_id)
        yield asked.answered, asked.failures


@contextmanager
def ask_one(store: str, session_id: str, request: ControlRequest) -> Iterator[Answered]:
    """Ask one session, or raise SessionError."""
    with ExitStack() as stack:
        folder_fd = _open_folder(control_folder(store))
        if folder_fd is None:
            raise _takes_none(session_id)
        stack.callback(os.close, folder_fd)
        asked = _Round(folder_fd, request, stack, {session_id: [session_id]})
        asked.ask([session_id])
        if asked.failures:
            raise asked.failures[0]
        if not asked.answered:
            raise _takes_none(session_id)
        yield asked.answered[0]


def _takes_none(session_id: str) -> Unreachable:
    return Unreachable(
        f"session {session_id} does not accept requests", session_id, "it may have ended"
    )


class _Round:
    def __init__(
        self,
        folder_fd: int,
        request: ControlRequest,
        stack: ExitStack,
        names: Mapping[str, Collection[str]],
    ) -> None:
        """Take all names of each socket, keyed by one of them."""
        self.answered: list[Answered] = []
        self.failures: list[Unreachable] = []
        self._names = names
        self._folder_fd = folder_fd
        self._request = encode(request)
        self._stack = stack
        now_s = time.monotonic()
        self._until_s, self._ends_at_s = now_s + PATIENCE_S, now_s + WITHIN_S
        self._poll = select.poll()
        self._exchanges: dict[int, _Exchange] = {}

    def ask(self, session_ids: list[str]) -> None:
        full = self._connect_at_once(session_ids)
        waiting = _Waiting(self._folder_fd, full, self._until_s) if full else None
        if waiting is not None:
            self._stack.callback(waiting.close)
            self._poll.register(waiting.wakes, select.POLLIN)
        while self._exchanges or (waiting is not None and not waiting.is_over):
            left_s = self._until_s - time.monotonic()
            for fd, _ in self._poll.poll(max(0.0, left_s) * 1000):
                if fd in self._exchanges:
                    self._go_on(self._exchanges[fd])
            for session_id, connection in [] if waiting is None else waiting.connected():
                self._begin(session_id, connection)
            if left_s <= 0:  # checked last: on a busy machine the replies may be there already
                break
        self.failures += [each.silence() for each in self._exchanges.values()]
        if waiting is not None:
            self.failures += [_silent(session_id) for session_id in waiting.not_connected()]

    def _connect_at_once(self, session_ids: list[str]) -> list[str]:
        """Connect without waiting; return the sessions with full sockets."""
        full = []
        for number, session_id in enumerate(session_ids):
            if time.monotonic() > self._until_s:
                left = len(session_ids) - number
                self.failures.append(Unreachable(f"no time to ask {left} more sessions"))
                break
            try:
                connection = socket.socket(socket.AF_UNIX, _DOES_NOT_WAIT)
            except OSError as error:
                self.failures.append(_unreachable(session_id, error))
                continue
            try:
                connection.connect(socket_path(self._folder_fd, session_id + SOCKET_SUFFIX))
            except OSError as error:
                connection.close()
                match error:
                    case BlockingIOError():
                        full.append(session_id)
                    case ConnectionRefusedError() | FileNotFoundError():
                        pass
                    case _:
                        self.failures.append(_unreachable(session_id, error))
            else:
                self._begin(session_id, connection)
        return full

    def _begin(self, session_id: str, connection: socket.socket) -> None:
        objection = objection_to_listener(connection)
        if objection:
            connection.close()
            self.failures.append(
                Unreachable(
                    f"can't trust the process that answers for session {session_id}: {objection}",
                    session_id,
                    "it must be outside every session",
                )
            )
            return
        self._stack.callback(connection.close)
        exchange = _Exchange(session_id, connection, self._request)
        self._exchanges[connection.fileno()] = exchange
        self._poll.register(connection, exchange.waits_for)

    def _go_on(self, exchange: _Exchange) -> None:
        exchange.go_on()
        if not exchange.is_over:
            self._poll.modify(exchange.connection, exchange.waits_for)
            return
        self._poll.unregister(exchange.connection)
        del self._exchanges[exchange.connection.fileno()]
        try:
            reply = exchange.reply()
        except Unreachable as failure:
            self.failures.append(failure)
            return
        session_id = exchange.session_id
        its_own = reply.get("session_id")
        if its_own in self._names[session_id]:
            session_id = str(its_own)
        client = ControlClient(session_id, exchange.connection, self._ends_at_s)
        self.answered.append(Answered(client, reply))


class _Exchange:
    """One request and its reply, on a non-blocking connection."""

    def __init__(self, session_id: str, connection: socket.socket, request: bytes) -> None:
        self.session_id = session_id
        self.connection = connection
        self.is_over = False
        self._to_send = request
        self._received = bytearray()

    @property
    def waits_for(self) -> int:
        return select.POLLIN | (select.POLLOUT if self._to_send else 0)

    def go_on(self) -> None:
        try:
            if self._to_send:
                self._send()
            data = self.connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            self._received.clear()
            self.is_over = True
            return
        self._received += data
        whole = self._received.endswith(b"\n") or len(self._received) >= _MAX_REPLY_BYTES
        self.is_over = whole or not data

    def _send(self) -> None:
        try:
            self._to_send = self._to_send[self.connection.send(self._to_send) :]
        except BlockingIOError:
            pass
        except ConnectionError:
            self._to_send = b""  # a session that refuses a peer replies and closes before it reads

    def reply(self) -> ControlReply:
        try:
            return decode_reply(self._received)
        except ValueError as failure:
            raise Unreachable(
                f"session {self.session_id} closed the connection", self.session_id
            ) from failure

    def silence(self) -> Unreachable:
        return _silent(self.session_id)


class _Waiting:
    """Threads that wait for room in full sockets, one after the other, so each socket gets a share
    of the time."""

    def __init__(self, folder_fd: int, session_ids: list[str], until_s: float) -> None:
        rounds = -(-len(session_ids) // _MOST_WAITING)
        self._each_s = max(0.0, until_s - time.monotonic()) / rounds
        self._until_s = until_s
        self._folder_fd = folder_fd
        self._next = deque(session_ids)
        self._without = set(session_ids)
        self._connected: deque[tuple[str, socket.socket]] = deque()
        self._ended, self._lock = 0, threading.Lock()
        self.wakes, self._wake = socket.socketpair()
        self.wakes.setblocking(False)
        self._threads: list[threading.Thread] = []
        for _ in range(min(len(session_ids), _MOST_WAITING)):
            thread = threading.Thread(target=self._wait, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the thread limit is reached
                break
            self._threads.append(thread)

    @property
    def is_over(self) -> bool:
        return self._ended == len(self._threads) and not self._connected

    def connected(self) -> Iterator[tuple[str, socket.socket]]:
        """Yield the connections made by now."""
        with suppress(BlockingIOError):
            self.wakes.recv(1 << 12)
        while self._connected:
            session_id, connection = self._connected.popleft()
            self._without.discard(session_id)
            yield session_id, connection

    def not_connected(self) -> list[str]:
        return sorted(self._without)

    def close(self) -> None:
        for thread in self._threads:
            thread.join()
        for _, connection in self.connected():
            connection.close()
        self.wakes.close()
        self._wake.close()

    def _wait(self) -> None:
        while self._next and time.monotonic() < self._until_s:
            with suppress(IndexError, OSError):  # another thread popped it, or it is unreachable
                self._wait_for(self._next.popleft())
        with self._lock:
            self._ended += 1
        self._wake.send(b".")

    def _wait_for(self, session_id: str) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._connect(connection, session_id)
        except (ConnectionRefusedError, FileNotFoundError):
            self._without.discard(session_id)
            connection.close()
        except BaseException:
            connection.close()
            raise
        else:
            self._connected.append((session_id, connection))
            self._wake.send(b".")

    def _connect(self, connection: socket.socket, session_id: str) -> None:
        wait_s = min(self._each_s, max(0.001, self._until_s - time.monotonic()))
        timeout = struct.pack("@ll", int(wait_s), int(wait_s % 1 * 1_000_000) or 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
        connection.connect(socket_path(self._folder_fd, session_id + SOCKET_SUFFIX))
        connection.setblocking(False)


def _silent(session_id: str) -> Unreachable:
    return Unreachable(f"session {session_id} does not answer", session_id)


def _unreachable(session_id: str, error: OSError) -> Unreachable:
    return Unreachable(f"can't reach session {session_id}: {error.strerror}", session_id)


def _names(folder_fd: int) -> dict[str, list[str]]:
    """Return the names of each socket in the directory, without suffix, keyed by the first."""
    names: dict[int, list[str]] = {}
    with os.scandir(folder_fd) as entries:
        for entry in entries:
            if _is_of_a_session(entry.name) and not entry.is_symlink():
                names.setdefault(entry.inode(), []).append(entry.name.removesuffix(SOCKET_SUFFIX))
    return {each[0]: each for each in names.values()}


def _is_of_a_session(name: str) -> bool:
    """Return whether the name is a socket's, and cannot break a printed line."""
    return name.endswith(SOCKET_SUFFIX) and name != SOCKET_SUFFIX and printable(name) == name


def _open_folder(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"can't read {path}: {error.strerror}") from error
