"""The supervisor's side of a session that commands join.

Only processes of this user outside every session can join, with the privileges and namespaces that
the session has itself. The log has a command before it is forked. The session ends when nothing has
run in it for a while.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable

from sigwrap import errors
from sigwrap.approve.control_socket import GuardedListener
from sigwrap.bare import TYPE_CHECKING, Any, NoReturn, signal, socket
from sigwrap.events import Payload, number, text
from sigwrap.front.messages import Place, Sender
from sigwrap.join.fork_server import (
    KIND,
    MAX_BYTES,
    MAX_WORDS_BYTES,
    MOST_DESCRIPTORS,
    READY,
    BadMessage,
    Call,
    decode,
    encode,
    file_of_words,
    header,
    read_call,
    serve,
)
from sigwrap.kernel import process as linux_process
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import let_go
from sigwrap.kernel.peer import Peer
from sigwrap.kernel.process import Rights
from sigwrap.kernel.procfs import link
from sigwrap.policy.judge.signals import signal_name
from sigwrap.session.settings import RunSettings, differing
from sigwrap.start import own_code
from sigwrap.start.command import HostEnvironment, Inherited
from sigwrap.text import masked, masked_text

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_MOST_CALLERS = 128
_LOOK_EVERY_S = 5.0
_BACKLOG = 64
_ERRORS, _STATUSES = 0xFFF, 0xFFFF  # the largest possible ones
_ASKS_WITHIN_S = 10.0
_SEND_AGAIN_S = 0.2
# A signal that ends or stops the caller's job is meant for all of the command's job, its group.
_FOR_THE_JOB = frozenset(
    {
        *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGKILL),
        *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT),
    }
)


class Joins:
    def __init__(self, settings: RunSettings, tell: Callable[[str], None]) -> None:
        """Callers wait from now on, until `begin`."""
        self._settings = settings
        self._tell_at_start = tell
        self._rights = Rights()
        self._callers: dict[int, _Caller] = {}
        self._asked: dict[int, _Caller] = {}  # their commands are about to be forked
        self._running: dict[int, _Caller] = {}  # by the pids of their commands
        self._count = 0
        self._is_open = self._has_begun = False
        self._idle_since_s = time.monotonic()
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, KIND)
        self._door = socket.socket(fileno=settings.door_fd)
        self._door.setblocking(False)
        self._door.listen(_BACKLOG)  # the kernel names the process that listens to each caller

    def serve(self, session_id: str, inherited: Inherited) -> NoReturn:
        """Become the fork server, in its process."""
        serve(self._theirs, session_id, inherited)

    def begin(self, session: Session) -> None:
        """Let commands join."""
        self._theirs.close()
        self._session = session
        self._fork_server = session.command_pid
        self.loop = loop = session.loop
        self._recorder = session.recorder
        self._ours.setblocking(False)
        loop.watch(self._ours.fileno(), self._on_fork_server)
        self._is_open = True
        self._listener = GuardedListener(loop, self._door, self._on_arrival)
        self._look()
        self._report_ready()
        self._has_begun = True

    def _report_ready(self) -> None:
        """Tell the caller that started the session, which closes its end of standard error."""
        os.set_blocking(2, False)
        try:
            os.write(2, READY)
        except OSError:
            pass  # the caller was killed; the next one uses the session

    def tell(self, text: str) -> None:
        """Print a line for all callers; at the start, for the one that starts the session."""
        if not self._has_begun:
            self._tell_at_start(text)
        for caller in self._callers.values():
            caller.tell({"say": text})

    def end(self, exit_status: int) -> None:
        """Tell the callers that the session is over."""
        for caller in tuple(self._callers.values()):
            if caller.has_asked:
                caller.tell({"over": exit_status})
            caller.close()
        self._callers.clear()

    def close(self) -> None:
        """Let no command join any more. The address stays taken until this process ends: callers
        wait for that, and then start another session."""
        if self._is_open:
            self._is_open = False
            self._listener.close()

    def _look(self) -> None:
        """End the session if only the fork server has run for a while."""
        now = time.monotonic()
        # The one that started it is on the way.
        idle_s = self._settings.join_idle_s
        idle_s = idle_s if self._count else max(idle_s, _ASKS_WITHIN_S)
        if self._callers or linux_process.count_descendants(os.getpid()) > 1:
            self._idle_since_s = now
        elif now - self._idle_since_s >= idle_s:
            self.close()
            self.loop.unwatch(self._ours.fileno())
            self._ours.close()  # the fork server ends by that, and the session with it
            return
        self.loop.call_at(now + min(_LOOK_EVERY_S, idle_s), self._look)

    # Callers

    def _on_arrival(self, accepted: socket.socket, peer: Peer) -> None:
        objection = peer.objection or self._rights.difference(peer.pid)
        if objection or len(self._callers) >= _MOST_CALLERS:
            if peer.objection:
                self._session.approvals.refused(peer)
            self._refuse(accepted, objection or f"{_MOST_CALLERS} commands have joined already")
            return
        self._count += 1
        try:
            caller = _Caller(self, self._count, accepted, peer)
        except OSError as error:  # epoll takes no more
            self._refuse(accepted, f"the session cannot watch it: {error.strerror}")
            return
        self._callers[self._count] = caller

    def _refuse(self, accepted: socket.socket, why: str) -> None:
        self._listener.refuse(accepted, encode({"refused": f"refused: {why}"}))

    def on_call(self, caller: _Caller, message: dict[str, Any], fds: list[int]) -> None:
        """Run a caller's command. Raises BadMessage if there is none in the message."""
        call = _call(message, fds)
        if not self._is_open:
            self.on_gone(caller)  # it tries again, and waits for the next session
            return
        name = self._settings.join_name
        if other := differing(self._settings, message["settings"]):
            hint = f"end it (sigwrap stop {name}), or join another session"
            self._turn_away(caller, f"session {name} runs {other}", hint)
            return
        environment = HostEnvironment.under(self._session.policy.env_policy, call.environment)
        payload = {
            "call": caller.number,
            "command": masked([os.fsdecode(word) for word in call.words]),
            "cwd": link(f"/proc/self/fd/{fds[1]}") or "",
            "environment_removed": [masked_text(os.fsdecode(n)) for n in environment.removed],
        }
        if not self._recorder.record("command_joined", caller.peer.pid, payload):
            self._turn_away(caller, f"the command was not run: {self._recorder.why_not}")
            return
        caller.tell({"taken": caller.number})  # first: the caller does not try once more then
        if self._session.freezing.is_frozen:
            how = f"continue it: sigwrap resume {name}"
            caller.tell({"say": f"session {name} was stopped by SIGSTOP ({how})"})
        given = call._replace(environment=environment.given)
        words = own_code.sealed("words", file_of_words(given))
        try:
            packet = encode({"number": caller.number, **header(given)})
            socket.send_fds(self._ours, [packet], [words, *fds[1:]])
            self._asked[caller.number] = caller
        except OSError as error:
            self._turn_away(caller, f"cannot start the command: {error.strerror}")
        finally:
            os.close(words)

    def _turn_away(self, caller: _Caller, why: str, hint: str = "") -> None:
        caller.tell({"refused": why, "hint": hint})
        self.on_gone(caller)

    def on_signal(self, caller: _Caller, message: dict[str, Any]) -> None:
        given, sender = message["signal"], message.get("sender")
        if type(given) is not int or given not in signal.valid_signals():
            return
        if not isinstance(sender, dict):
            return
        sender_of = {
            "sender_pid": number(sender.get("sender_pid")),
            "sender_uid": number(sender.get("sender_uid")),
            "sender_place": text(sender.get("sender_place")),
            "sender_cmd": masked_text(text(sender.get("sender_cmd"))),
        }
        self._record_passed_on(caller, given, sender_of)
        caller.signal(given)

    def _record_passed_on(self, caller: _Caller, given: int, sender: Payload) -> None:
        payload = {"signal": given, "signal_name": signal_name(given), **sender}
        self._recorder.record("interrupt_forwarded", caller.command_pid, payload)

    def _kill(self, caller: _Caller) -> None:
        """Kill a command whose caller is gone, and all of its job."""
        if not caller.command_pid:
            return
        peer = caller.peer
        by = Sender(peer.pid, peer.uid, Place.CALLER_ENDED, masked_text(peer.command))
        self._record_passed_on(caller, signal.SIGKILL, by.payload)
        if self.is_forked(caller.command_pid):
            _send(caller.command_pid, signal.SIGKILL)

    def on_gone(self, caller: _Caller) -> None:
        """The caller was killed, or knows how its command ended."""
        self._kill(caller)
        caller.close()
        self._callers.pop(caller.number, None)
        self._idle_since_s = time.monotonic()

    # Commands

    def _on_fork_server(self, _happened: int) -> None:
        try:
            packet = self._ours.recv(MAX_BYTES)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            self.loop.unwatch(self._ours.fileno())  # it has ended, and so does the session
            self.close()
            return
        try:
            message = decode(packet)
        except BadMessage:
            return
        match message:
            case {"forked": int(pid), "number": int(call)} if call in self._asked:
                if self.is_forked(pid):
                    self._forked(pid, self._asked.pop(call))
            case {"not_forked": int(error), "number": int(call)} if call in self._asked:
                why = f"cannot start a process: {os.strerror(error & _ERRORS)}"
                self._left(self._asked.pop(call), errors.REFUSED, 0, why)
            case {"ended": int(pid), "status": int(wait_status), "error": int(error)} if (
                pid in self._running and procfs.has_ended(pid)
            ):
                self._ended(self._running.pop(pid), wait_status & _STATUSES, error & _ERRORS)

    def is_forked(self, pid: int) -> bool:
        """Return whether this pid is still that of a command, which may wait to be reaped."""
        found = procfs.stat(pid)
        return found is not None and found.ppid == self._fork_server

    def _forked(self, pid: int, caller: _Caller) -> None:
        self._running[pid] = caller
        caller.has_command(pid)
        if caller.number not in self._callers:  # it is gone since
            self._kill(caller)

    def _ended(self, caller: _Caller, wait_status: int, error: int) -> None:
        pid = caller.command_pid
        died_of = os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else 0
        code = errors.from_signal(died_of) if died_of else os.WEXITSTATUS(wait_status)
        if error == errno.ENOENT:
            code = errors.NOT_FOUND
        is_told = error == errno.EACCES and self._session.was_told_of_denial(pid)
        self._left(caller, code, died_of, "" if is_told or not error else os.strerror(error))
        caller.command_pid = 0
        try:
            self._ours.send(encode({"reap": pid}))
        except OSError:
            pass

    def _left(self, caller: _Caller, code: int, died_of: int, why: str) -> None:
        payload = {"call": caller.number, "exit_status": code, "signal": died_of}
        self._recorder.record("command_left", caller.command_pid, payload)
        caller.tell({"ended": code, "signal": died_of, "why": why}, is_retried=True)


class _Caller:
    """The process that asked for a command, and waits for its exit status."""

    def __init__(self, joins: Joins, number: int, end: socket.socket, peer: Peer) -> None:
        self.number = number
        self.peer = peer
        self.command_pid = 0
        self.has_asked = False
        self._early: dict[int, None] = {}  # signals from before the command was forked
        self._joins = joins
        self._end = end
        joins.loop.watch(end.fileno(), self._on_readable)

    def tell(self, message: dict[str, Any], *, is_retried: bool = False) -> None:
        """Send a message. `is_retried`: also to a caller that does not read now."""
        try:
            self._end.send(encode(message), socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
        except BlockingIOError:
            if is_retried:
                again_s = time.monotonic() + _SEND_AGAIN_S
                self._joins.loop.call_at(again_s, lambda: self.tell(message, is_retried=True))
        except OSError:
            pass  # it is gone: _on_readable sees that

    def close(self) -> None:
        if self._end.fileno() >= 0:
            self._joins.loop.unwatch(self._end.fileno())
            let_go(self._end.detach())

    def has_command(self, pid: int) -> None:
        self.command_pid = pid
        for each in self._early:
            self.signal(each)

    def signal(self, number: int) -> None:
        if not self.command_pid:
            self._early[number] = None
        elif self._joins.is_forked(self.command_pid):
            _send(self.command_pid, number)

    def _on_readable(self, _happened: int) -> None:
        fds: list[int] = []
        try:
            packet, fds, _flags, _address = socket.recv_fds(
                self._end, MAX_BYTES, MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
            if not packet:
                self._joins.on_gone(self)
                return
            message = decode(packet)
            if not self.has_asked:
                self.has_asked = True
                self._joins.on_call(self, message, fds)
            elif "signal" in message:
                self._joins.on_signal(self, message)
        except BlockingIOError:
            return
        except BadMessage as bad:
            self.tell({"refused": f"bad request: {bad}"})
            self._joins.on_gone(self)
        except OSError:
            self._joins.on_gone(self)
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
    """Read a memory file: the server of any other file could block the read."""
    try:
        is_sealed = fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE
    except OSError:
        is_sealed = 0
    size = os.fstat(fd).st_size if is_sealed else 0
    if not is_sealed or size > MAX_WORDS_BYTES:
        raise BadMessage("the arguments are not in a sealed memory file")
    return os.pread(fd, size, 0)


def _send(command: int, number: int) -> None:
    """Send a signal to a command, or to its job if the signal is for all of that."""
    if number not in _FOR_THE_JOB or not linux_process.send(-command, number):
        linux_process.send(command, number)
