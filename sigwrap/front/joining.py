"""A command in a session that others have joined as well: this process stands where its caller
looks for it, passes signals on, and ends with its status.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from sigwrap import status
from sigwrap.bare import signal, socket
from sigwrap.errors import SessionError
from sigwrap.front.background import connect_or_start
from sigwrap.front.parent import take_signals
from sigwrap.front.relay import Relay, without_keys
from sigwrap.front.sender import sender_of
from sigwrap.hints import Any
from sigwrap.linux import memory_library
from sigwrap.linux.descriptors import inherited as inherited_descriptors
from sigwrap.linux.sigfd import SignalFd, SignalInfo
from sigwrap.mediate.interrupts import JOB_STOPS
from sigwrap.protocols.joined import (
    MAX_BYTES,
    MOST_DESCRIPTORS,
    BadMessage,
    Call,
    decode,
    encode,
    file_of_words,
    header,
)
from sigwrap.start import onefile
from sigwrap.start.command import Inherited, find_program
from sigwrap.tuples import NamedTuple

_AGAIN_AFTER_S = 1.0
_ANSWERS_WITHIN_S = 60.0
_ATTEMPTS = 3  # a session may end in the moment in which it is joined


class Left(NamedTuple):
    status: int
    signal: int  # that the command died of; 0: it ended otherwise


class _GivenUp(Exception):
    pass


class _NobodyAnswers(Exception):
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
        except _NobodyAnswers:
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
        self._is_taken = self._was_answered = False
        self._answers_until_s = time.monotonic() + _ANSWERS_WITHIN_S
        self._terminated_s = 0.0
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
                for fd, happened in self._poll.poll(self._patience_s()):
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
            self._left = Left(status.from_signal(signal.SIGTERM), signal.SIGTERM)
        finally:
            if self._relay is not None:
                self._relay.end()
            self._signals.close()
        return self._left

    def _patience_s(self) -> float | None:
        """None: for ever, as long as the command may take."""
        if self._was_answered:
            return None
        left_s = self._answers_until_s - time.monotonic()
        if left_s <= 0.0:
            raise SessionError(
                f"the session has not answered for {_ANSWERS_WITHIN_S:.0f} s",
                "its supervisor may be stopped, or still ending the session",
            )
        return left_s

    def _has_last_output(self) -> bool:
        if self._relay is None:
            return False
        self._relay.drain()
        return self._relay.has_output

    def _ask(self, settings: dict[str, Any]) -> None:
        call, relay = self._call, self._relay
        words = memory_library.sealed("words", file_of_words(call))
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
            pass  # what was said before is read next
        finally:
            os.close(words)
            os.close(folder)

    def _on_message(self) -> None:
        try:
            packet = self._connection.recv(MAX_BYTES)
        except ConnectionResetError:  # our call was not read; what was said before comes next
            packet = self._connection.recv(MAX_BYTES)
        if self._left is not None:  # and all that it has to say
            self._poll.unregister(self._connection.fileno())
            return
        if not packet and self._is_taken:
            raise SessionError(
                "the session ended before it reported the exit status of the command"
            )
        if not packet:
            raise _NobodyAnswers
        self._was_answered = True
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
                self._left = Left(code or status.REFUSED, 0)

    def _on_signal(self, info: SignalInfo) -> None:
        if info.number == signal.SIGCHLD or info.is_our_own:
            return
        if info.number == signal.SIGWINCH and self._relay is not None:
            self._relay.resize()
            return
        if info.number == signal.SIGCONT and self._relay is not None:
            self._relay.take()
        if self._left is not None and self._relay is not None:  # a terminal that takes nothing
            self._relay.drop_output()
        if info.number == signal.SIGTERM and self._is_told_again():
            raise _GivenUp
        sender = sender_of(info, supervisor=0, bootloader=self._bootloader_pid)
        fields = {
            "sender_pid": sender.pid,
            "sender_uid": sender.uid,
            "sender_place": sender.place.value,
            "sender_cmd": sender.command,
        }
        try:
            self._connection.send(encode({"signal": info.number, "sender": fields}))
        except OSError:
            return  # it has ended; its last word is read next
        if info.number in JOB_STOPS:
            self._stop()

    def _is_told_again(self) -> bool:
        """It was passed on, and the command, or the session, didn't end by it: a second one is for
        us, and who we wait for is killed by our end."""
        now_s = time.monotonic()
        first_s, self._terminated_s = self._terminated_s, self._terminated_s or now_s
        return first_s != 0.0 and now_s - first_s > _AGAIN_AFTER_S

    def _stop(self) -> None:
        if self._relay is not None:
            self._relay.give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        if self._relay is not None:
            self._relay.take()
