"""The client of the control protocol: asks all running sessions of a store in a bounded time, and
finds the sockets whose session has ended.

Any process of this user can put sockets into the store: many, silent ones, and full ones. So
threads ask at the same time, each socket gets an equal share of the time, and each call asks in
another order. A full socket is waited for in connect(2): the kernel admits waiting threads in
order, so repeated attempts would always come too late.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import struct
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from sigwrap.approve.control_socket import (
    CALLS_SUFFIX,
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

WITHIN_S = 2.5  # for all sessions; a session keeps a silent connection longer
_MOST_THREADS = 128
_MAX_REPLY_BYTES = 16 << 20


class Unreachable(SessionError):
    """A session cannot be asked; `session_id` is empty if it concerns no single session."""

    def __init__(self, message: str, session_id: str = "", hint: str = "") -> None:
        super().__init__(message, hint)
        self.session_id = session_id


class Answered(NamedTuple):
    session_id: str
    reply: ControlReply


def ask_all(
    store: str, request: ControlRequest, first: Collection[str] = ()
) -> tuple[list[Answered], list[Unreachable]]:
    """Return the replies of the running sessions, and the failures. A socket without a listener is
    left out. `first`: the sessions to ask before all others."""
    try:
        with _folder(store) as folder_fd:
            names = _names(folder_fd)
            order = sorted(names, key=lambda each: (each not in first, os.urandom(4)))
            found, failures = _ask_each(folder_fd, request, order)
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise _unreadable(store, error) from error
    answered = []
    for session_id, reply in sorted(found, key=lambda each: each.session_id):
        # A socket with several names is asked under one of them, and tells its own.
        own = reply.get("session_id")
        answered.append(Answered(str(own) if own in names[session_id] else session_id, reply))
    return answered, sorted(failures, key=lambda each: each.session_id)


def ask_one(store: str, session_id: str, request: ControlRequest) -> ControlReply:
    """Ask one session, or raise SessionError."""
    try:
        with _folder(store) as folder_fd:
            reply = _ask(folder_fd, session_id, request, time.monotonic() + WITHIN_S)
    except FileNotFoundError:
        reply = None
    except OSError as error:
        raise _unreadable(store, error) from error
    if reply is None:
        why = f"session {session_id} does not accept requests"
        raise Unreachable(why, session_id, "it may have ended")
    return reply


def _ask_each(
    folder_fd: int, request: ControlRequest, session_ids: list[str]
) -> tuple[list[Answered], list[Unreachable]]:
    answered, failures = list[Answered](), list[Unreachable]()
    left, until_s = deque(session_ids), time.monotonic() + WITHIN_S
    threads = list[threading.Thread]()

    def ask_in_turn() -> None:
        while (now_s := time.monotonic()) < until_s:
            try:
                session_id = left.popleft()
            except IndexError:
                return
            turns = -(-(len(left) + 1) // (len(threads) + 1))
            try:
                reply = _ask(folder_fd, session_id, request, now_s + (until_s - now_s) / turns)
            except Unreachable as failure:
                failures.append(failure)
            else:
                if reply is not None:
                    answered.append(Answered(session_id, reply))

    for _ in range(min(len(session_ids), _MOST_THREADS) - 1):
        threads.append(threading.Thread(target=ask_in_turn, daemon=True))
    for position, thread in enumerate(threads):
        try:
            thread.start()
        except RuntimeError:  # the thread limit is reached
            del threads[position:]
            break
    ask_in_turn()
    for thread in threads:
        thread.join()
    if left:
        failures.append(Unreachable(f"no time to ask {len(left)} more sessions"))
    return answered, failures


def _ask(
    folder_fd: int, session_id: str, request: ControlRequest, until_s: float
) -> ControlReply | None:
    """Return the reply, or None if no process listens; raise Unreachable."""
    received = bytearray()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
            wait_s = _left_s(until_s)
            timeout = struct.pack("@ll", int(wait_s), int(wait_s % 1 * 1_000_000))
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
            end.connect(socket_path(folder_fd, session_id + SOCKET_SUFFIX))
            if objection := objection_to_listener(end):
                raise Unreachable(
                    f"can't trust the process that answers for session {session_id}: {objection}",
                    session_id,
                    "it must be outside every session",
                )
            try:
                end.sendall(encode(request))
            except ConnectionError:
                pass  # a session that refuses a peer replies and closes before it reads
            while not received.endswith(b"\n") and len(received) < _MAX_REPLY_BYTES:
                end.settimeout(_left_s(until_s))
                data = end.recv(1 << 16)
                if not data:
                    break
                received += data
        return decode_reply(received)
    except (ConnectionRefusedError, FileNotFoundError):
        return None
    except (BlockingIOError, TimeoutError):
        raise Unreachable(f"session {session_id} does not answer", session_id) from None
    except (ConnectionError, ValueError) as failure:
        raise Unreachable(f"session {session_id} closed the connection", session_id) from failure
    except OSError as error:
        why = f"can't reach session {session_id}: {error.strerror}"
        raise Unreachable(why, session_id) from error


def _left_s(until_s: float) -> float:
    """Return the time that is left: at least a moment, as 0 would mean to wait for ever, or not at
    all."""
    return max(0.001, until_s - time.monotonic())


def _names(folder_fd: int) -> dict[str, list[str]]:
    """Return the names of each socket in the directory, without suffix, keyed by the first."""
    names: dict[int, list[str]] = {}
    with os.scandir(folder_fd) as entries:
        for entry in entries:
            name = entry.name.removesuffix(SOCKET_SUFFIX)
            if name in ("", entry.name) or printable(name) != name:  # it could break a printed line
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # its session has ended
            if stat.S_ISSOCK(found.st_mode):
                names.setdefault(found.st_ino, []).append(name)
    return {each[0]: each for each in names.values()}


@contextmanager
def _folder(store: str) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(control_folder(store), flags)
    try:
        yield fd
    finally:
        os.close(fd)


def _unreadable(store: str, error: OSError) -> StoreError:
    return StoreError(f"can't read {control_folder(store)}: {error.strerror}")


# The sockets of sessions whose supervisor was killed

_UNFINISHED = re.compile(rf"(?s)(.+)(?:{SOCKET_SUFFIX}(?:\.new-[0-9a-f]{{12}})?|{CALLS_SUFFIX})")


class LeftSocket(NamedTuple):
    session_id: str
    name: str


def left_sockets(store: str) -> list[LeftSocket]:
    """Return this user's sockets that have no listener."""
    with suppress(OSError), _folder(store) as fd:
        return [
            LeftSocket(named[1], name)
            for name in sorted(os.listdir(fd))
            if (named := _UNFINISHED.fullmatch(name)) and is_left(fd, name)
        ]
    return []


def is_listened_at(store: str, session_id: str) -> bool:
    with suppress(OSError), _folder(store) as fd:
        return _is_listened_at(fd, session_id + SOCKET_SUFFIX)
    return False


def remove_left(store: str, sockets: list[LeftSocket]) -> int:
    """Remove them unless they have a listener by now, and return how many were removed."""
    count = 0
    with suppress(OSError), _folder(store) as fd:
        for each in sockets:
            with suppress(OSError):  # another removed it
                if is_left(fd, each.name):
                    os.unlink(each.name, dir_fd=fd)
                    count += 1
    return count


def is_left(folder_fd: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except OSError:
        return False
    is_ours = stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()
    return is_ours and not _is_listened_at(folder_fd, name)


def _is_listened_at(folder_fd: int, name: str) -> bool:
    """Return whether it has a listener. A new socket, under a temporary name, has none yet."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as end:
        try:
            end.connect(socket_path(folder_fd, name))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # it may be full
    return True
