"""Runs a command in a session that other commands join as well.

This process connects to the session of a name, or starts it in the background. It stays where its
caller looks for the command, passes signals on, and ends with the command's exit status. The
session's abstract address is bound before the session starts, and handed to it: the kernel gives an
address to one process only.
"""

from __future__ import annotations

import errno
import os
import select
import struct
import time
from collections.abc import Callable

from sigwrap import errors
from sigwrap.bare import Any, NamedTuple, json, signal, socket
from sigwrap.errors import REFUSED, SessionError, SigwrapError
from sigwrap.front.interrupts import JOB_STOPS
from sigwrap.front.terminal import sender_of
from sigwrap.join.fork_server import (
    KIND,
    MAX_BYTES,
    MOST_DESCRIPTORS,
    READY,
    BadMessage,
    Call,
    address,
    decode,
    encode,
    file_of_words,
    header,
)
from sigwrap.join.relay import Relay, without_keys
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.descriptors import close_all_but
from sigwrap.kernel.descriptors import inherited as inherited_descriptors
from sigwrap.kernel.peer import objection_to_listener, pid_and_uid
from sigwrap.kernel.signals import SignalFd, SignalInfo, take_signals
from sigwrap.start import onefile, own_code
from sigwrap.start.command import Inherited, find_program, restore_signals

_READY_WITHIN_S = 30.0
_LISTENS_WITHIN_S = 40.0
_ENDS_WITHIN_S = 5.0
_ACCEPTS_WITHIN_S = 10
_TRY_EVERY_S = 0.01
_SECOND_SIGTERM_AFTER_S = 1.0
_ANSWERS_WITHIN_S = 60.0
_ATTEMPTS = 3  # a session may end while a command joins it


class Left(NamedTuple):
    status: int
    signal: int  # by which the command died, or 0


class NotStarted(SigwrapError):
    """The session ended at its start with this status, and has printed why."""

    def __init__(self, status: int) -> None:
        super().__init__("")
        self.status = status


class _NotTrusted(SessionError):
    """A process that is no supervisor of this user answers, maybe left by a session that ends."""


class _GivenUp(Exception):
    pass


class _NotTaken(Exception):
    """The session has ended before it took the command."""


def join(
    words: tuple[str, ...],
    inherited: Inherited,
    tell: Callable[[str], None],
    *,
    store: str,
    name: str,
    settings: dict[str, Any],
) -> Left:
    program = find_program(words[0], inherited.environment)
    umask = os.umask(0o077)
    os.umask(umask)
    for _ in range(_ATTEMPTS):
        connection = connect_or_start(inherited, store=store, name=name, settings=settings)
        relay = Relay.of_our_terminal()
        call = Call(
            program=program,
            words=tuple(map(os.fsencode, words)),
            environment=inherited.environment,
            descriptors=_inherited_descriptors(),
            terminal=-1 if relay is None else relay.first,
            umask=umask,
            niceness=os.getpriority(os.PRIO_PROCESS, 0),
            ignored_signals=tuple(sorted(inherited.ignored_signals)),
            signal_mask=tuple(sorted(inherited.signal_mask)),
            limits=tuple((r, soft, hard) for r, soft, hard in inherited.limits),
        )
        try:
            return _Joining(connection, call, relay, tell).run(settings)
        except _NotTaken:
            connection.close()
    raise SessionError(
        f"session {name} ended while the command joined it", f"sigwrap report {name}"
    )


def _inherited_descriptors() -> tuple[int, ...]:
    found = inherited_descriptors()
    if len(found) > MOST_DESCRIPTORS - 2:
        raise SessionError(
            f"{len(found)} open files are too many to hand to a session",
            f"close some: at most {MOST_DESCRIPTORS - 2} can be handed over",
        )
    return tuple(found)


def connect_or_start(
    inherited: Inherited, *, store: str, name: str, settings: dict[str, Any]
) -> socket.socket:
    at = address(store, name, os.geteuid())
    began_s = time.monotonic()
    while True:
        try:
            connection = _connected(at, name)
            if connection is None and (door := _bound(at, name)) is not None:
                _start(inherited, settings, door)
                connection = _connected(at, name)
                if connection is None:
                    raise SessionError(f"session {name} was started but can't be joined")
            if connection is not None:
                return connection
        except _NotTrusted:
            if time.monotonic() - began_s > _ENDS_WITHIN_S:
                raise
        if time.monotonic() - began_s > _LISTENS_WITHIN_S:
            raise SessionError(
                f"session {name} is still starting after {_LISTENS_WITHIN_S:.0f} s",
                "try again, or choose another name",
            )
        time.sleep(_TRY_EVERY_S)


def _connected(at: bytes, name: str) -> socket.socket | None:
    """Return None if no process listens."""
    connection = socket.socket(socket.AF_UNIX, KIND)
    try:
        accepts_within = struct.pack("@ll", _ACCEPTS_WITHIN_S, 0)  # if the backlog is full
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, accepts_within)
        connection.connect(at)
    except ConnectionRefusedError:
        connection.close()
        return None
    except BlockingIOError as silence:
        connection.close()
        raise SessionError(
            f"too many commands wait to join session {name}", "try again, or end the session"
        ) from silence
    except OSError as error:
        connection.close()
        raise SessionError(f"can't reach session {name}: {error.strerror}") from error
    _pid, uid = pid_and_uid(connection)
    objection = objection_to_listener(connection)
    if uid not in (os.geteuid(), 0):
        objection = "it belongs to another user"
    if objection:
        connection.close()
        raise _NotTrusted(
            f"can't trust the process that answers for session {name}: {objection}",
            "end that process (ss -lxp shows its pid), or choose another name",
        )
    return connection


def _bound(at: bytes, name: str) -> socket.socket | None:
    """Return a socket with this address, or None if another process has it."""
    door = socket.socket(socket.AF_UNIX, KIND)
    try:
        door.bind(at)
    except OSError as error:
        door.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise SessionError(f"can't start session {name}: {error.strerror}") from error
    return door


def _start(inherited: Inherited, settings: dict[str, Any], door: socket.socket) -> None:
    printed, stderr = os.pipe()
    whole = {**settings, "door_fd": door.fileno()}
    settings_fd = own_code.sealed("settings", json.dumps(whole).encode())
    pid = linux_process.fork()
    if pid == 0:
        try:
            _become_session(inherited, settings_fd, door.fileno(), stderr)
        finally:
            os._exit(REFUSED)
    for fd in (stderr, settings_fd, door.detach()):  # the session holds them from now on
        os.close(fd)
    try:
        _await_ready(pid, printed)
    finally:
        os.close(printed)


def _become_session(inherited: Inherited, settings_fd: int, door_fd: int, stderr: int) -> None:
    """Execute the session, with none of our streams: a reader of a pipe would wait for its end."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(stderr, 2)
    close_all_but({0, 1, 2, settings_fd, door_fd})
    for fd in (settings_fd, door_fd):
        os.set_inheritable(fd, True)
    line = [*onefile.own_line(), "--as", "joined", str(settings_fd)]
    restore_signals(inherited)
    os.execve(line[0], line, inherited.environment)


def _await_ready(pid: int, printed: int) -> None:
    """Print what the session prints until it is ready (READY)."""
    poll = select.poll()
    poll.register(printed, select.POLLIN)
    until_s = time.monotonic() + _READY_WITHIN_S
    while poll.poll(max(0.0, until_s - time.monotonic()) * 1000):
        data = os.read(printed, 1 << 16)
        text, is_ready, _ = data.partition(READY)
        os.write(2, text)
        if is_ready:
            return
        if not data:
            _, wait_status = os.waitpid(pid, 0)
            raise NotStarted(os.waitstatus_to_exitcode(wait_status))
    linux_process.send(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise SessionError(f"the session did not start within {_READY_WITHIN_S:.0f} s")


class _Joining:
    def __init__(
        self,
        connection: socket.socket,
        call: Call,
        relay: Relay | None,
        tell: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._call = call
        self._relay = relay
        self._tell = tell
        self._signals: SignalFd = take_signals()
        self._left: Left | None = None
        self._is_taken = False
        self._first_sigterm_s = 0.0
        self._poll = select.epoll()
        self._poll.register(connection.fileno(), select.EPOLLIN)
        self._poll.register(self._signals.fd, select.EPOLLIN)
        self._bootloader_pid = onefile.bootloader_pid()
        self._bootloader = -1
        if self._bootloader_pid:
            self._bootloader = os.pidfd_open(self._bootloader_pid)
            self._poll.register(self._bootloader, select.EPOLLIN)

    def run(self, settings: dict[str, Any]) -> Left:
        self._ask(settings)
        if self._relay is not None:
            self._relay.begin(self._poll)
        try:
            while self._left is None or self._has_last_output():
                ready = self._poll.poll(None if self._is_taken else _ANSWERS_WITHIN_S)
                if not ready:
                    raise SessionError(
                        f"the session has not answered for {_ANSWERS_WITHIN_S:.0f} s",
                        "its supervisor may be stopped, or still ending the session",
                    )
                for fd, happened in ready:
                    if fd == self._connection.fileno():
                        self._on_message()
                    elif fd == self._signals.fd:
                        for info in self._signals.read():
                            self._on_signal(info)
                    elif fd == self._bootloader:
                        raise _GivenUp  # the process that our caller knows was killed
                    elif self._relay is not None:
                        self._relay.pump(fd, happened)
        except _GivenUp:
            self._left = Left(errors.from_signal(signal.SIGTERM), signal.SIGTERM)
        finally:
            if self._relay is not None:
                self._relay.end()
            self._signals.close()
        return self._left

    def _has_last_output(self) -> bool:
        if self._relay is None:
            return False
        self._relay.drain()
        return self._relay.has_output

    def _ask(self, settings: dict[str, Any]) -> None:
        call, relay = self._call, self._relay
        words = own_code.sealed("words", file_of_words(call))
        try:
            folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as refusal:
            raise SessionError(
                f"can't hand the current directory to the session: {refusal.strerror}",
                "change to another directory",
            ) from refusal
        instead_of = without_keys if relay is None else relay.instead_of
        own = tuple(map(instead_of, call.descriptors))
        packet = encode({"settings": settings, **header(call)})
        try:
            socket.send_fds(self._connection, [packet], [words, folder, *own])
        except (BrokenPipeError, ConnectionResetError):
            pass  # the session's last message comes next
        finally:
            os.close(words)
            os.close(folder)

    def _on_message(self) -> None:
        try:
            packet = self._connection.recv(MAX_BYTES)
        except ConnectionResetError:  # the session did not read our call; its message comes next
            packet = self._connection.recv(MAX_BYTES)
        if self._left is not None:  # nothing matters after the command's end
            self._poll.unregister(self._connection.fileno())
            return
        if not packet and self._is_taken:
            raise SessionError(
                "the session ended before it reported the exit status of the command"
            )
        if not packet:
            raise _NotTaken
        try:
            message = decode(packet)
        except BadMessage as bad:
            raise SessionError(f"invalid reply of the session: {bad}") from bad
        match message:
            case {"taken": int()}:
                self._is_taken = True
            case {"say": str(text)}:
                self._tell(text)
            case {"refused": str(why)}:
                raise SessionError(why, str(message.get("hint", "")))
            case {"ended": int(code), "signal": int(number), "why": str(why)}:
                if why:
                    self._tell(f"{os.fsdecode(self._call.program)}: {why}")
                self._left = Left(code, number)
            case {"over": int(code)}:
                self._left = Left(code or errors.REFUSED, 0)

    def _on_signal(self, info: SignalInfo) -> None:
        if info.number == signal.SIGCHLD or info.is_our_own:
            return
        if self._relay is not None:
            if info.number == signal.SIGWINCH:
                self._relay.resize()
                return
            if info.number == signal.SIGCONT:
                self._relay.take()
            if self._left is not None:  # the terminal may accept nothing
                self._relay.drop_output()
        if info.number == signal.SIGTERM and self._is_second_sigterm():
            raise _GivenUp
        sender = sender_of(info, supervisor=0, bootloader=self._bootloader_pid)
        try:
            self._connection.send(encode({"signal": info.number, "sender": sender.payload}))
        except OSError:
            return  # the session has ended; its last message comes next
        if info.number in JOB_STOPS:
            self._stop()

    def _is_second_sigterm(self) -> bool:
        """Return whether the first did not end the command. The second is for this process, and the
        session kills the command of a caller that is gone."""
        now_s = time.monotonic()
        first_s, self._first_sigterm_s = self._first_sigterm_s, self._first_sigterm_s or now_s
        return first_s != 0.0 and now_s - first_s > _SECOND_SIGTERM_AFTER_S

    def _stop(self) -> None:
        if self._relay is not None:
            self._relay.give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        if self._relay is not None:
            self._relay.take()
