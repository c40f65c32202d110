"""A command that joined, from its first message to its status."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable

from sigwrap.bare import signal, socket
from sigwrap.hints import Any
from sigwrap.linux import process as linux_process
from sigwrap.linux.foreign_fds import let_go
from sigwrap.linux.peer import Peer
from sigwrap.protocols.joined import (
    MAX_BYTES,
    MAX_WORDS_BYTES,
    MOST_DESCRIPTORS,
    BadMessage,
    Call,
    decode,
    encode,
    read_call,
)
from sigwrap.run.loop import Loop

_READS_AGAIN_S = 0.2
# What ends or stops a caller's job is meant for all of it.
_FOR_ITS_GROUP = frozenset(
    {
        *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM),
        *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT),
    }
)


class Caller:
    """The other end of a command: who asked for it, waits for it, and is told."""

    def __init__(
        self,
        number: int,
        end: socket.socket,
        by: Peer,
        loop: Loop,
        *,
        on_call: Callable[[Caller, dict[str, Any], Call, list[int]], None],
        on_signal: Callable[[Caller, dict[str, Any]], None],
        on_gone: Callable[[Caller], None],
        is_forked: Callable[[int], bool],
    ) -> None:
        """`is_forked`: this pid is still that of a command that was forked for one who joined."""
        self.number = number
        self.by = by
        self.command_pid = 0
        self.has_asked = False
        self._early: dict[int, None] = {}  # signals, before there was a command
        self._end = end
        self._loop = loop
        self._on_call = on_call
        self._on_signal = on_signal
        self._on_gone = on_gone
        self._is_forked = is_forked
        loop.watch(end.fileno(), self._on_readable)

    def tell(self, message: dict[str, Any], *, however_late: bool = False) -> None:
        """`however_late`: what it waits for, also where it doesn't read now."""
        try:
            self._end.send(encode(message), socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
        except BlockingIOError:
            if however_late:
                again_s = time.monotonic() + _READS_AGAIN_S
                self._loop.call_at(again_s, lambda: self.tell(message, however_late=True))
        except OSError:
            pass  # it is gone: its end is seen elsewhere

    def close(self) -> None:
        if self._end.fileno() >= 0:
            self._loop.unwatch(self._end.fileno())
            let_go(self._end.detach())

    def kill(self) -> None:
        """As who kills a caller's job kills all of it."""
        if self.command_pid and self._is_forked(self.command_pid):
            _send_to_group(self.command_pid, signal.SIGKILL)

    def has_command(self, pid: int) -> None:
        self.command_pid = pid
        for number in self._early:
            self.signal(number)

    def signal(self, number: int) -> None:
        if not self.command_pid:
            self._early[number] = None
        elif not self._is_forked(self.command_pid):
            return
        elif number in _FOR_ITS_GROUP:
            _send_to_group(self.command_pid, number)
        else:
            linux_process.send(self.command_pid, number)

    def _on_readable(self, _happened: int) -> None:
        fds: list[int] = []
        try:
            packet, fds, _flags, _address = socket.recv_fds(
                self._end, MAX_BYTES, MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
            if not packet:
                self._on_gone(self)
                return
            message = decode(packet)
            if not self.has_asked:
                self.has_asked = True
                self._on_call(self, message, _call(message, fds), fds)
            elif "signal" in message:
                self._on_signal(self, message)
        except BlockingIOError:
            return
        except BadMessage as bad:
            self.tell({"refused": f"bad request: {bad}"})
            self._on_gone(self)
        except OSError:
            self._on_gone(self)
        finally:
            for fd in fds:
                let_go(fd)


def _call(message: dict[str, Any], fds: list[int]) -> Call:
    if len(fds) < 2:
        raise BadMessage("descriptors are missing")
    call = read_call(message, _sealed_words(fds[0]))
    if not isinstance(message.get("settings"), dict):
        raise BadMessage("settings are missing")
    if len(call.descriptors) != len(fds) - 2:
        raise BadMessage("descriptors are missing")
    return call


def _sealed_words(fd: int) -> bytes:
    """Of a file in memory: to read another one may take as long as who serves it likes."""
    try:
        is_sealed = fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE
    except OSError:
        is_sealed = 0
    size = os.fstat(fd).st_size if is_sealed else 0
    if not is_sealed or size > MAX_WORDS_BYTES:
        raise BadMessage("the arguments are not in a sealed memory file")
    return os.pread(fd, size, 0)


def _send_to_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        linux_process.send(pid, number)
