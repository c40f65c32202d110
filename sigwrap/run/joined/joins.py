"""The supervisor's side of a session that commands join.

Who may join is this user, outside of every session, with the rights and in the surroundings that
the session has itself. What he asks for is in the log before it has an effect. The session is over
when nothing has run in it for a while.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from sigwrap import status
from sigwrap.bare import signal, socket
from sigwrap.events import Payload, number, text
from sigwrap.hints import Any, NoReturn
from sigwrap.linux import memory_library, procfs
from sigwrap.linux import process as linux_process
from sigwrap.linux.peer import Peer
from sigwrap.linux.proc_files import link
from sigwrap.linux.rights import Rights
from sigwrap.mediate.masking import masked, masked_text
from sigwrap.policy.judge.rules import EnvPolicy
from sigwrap.policy.judge.signals import signal_name
from sigwrap.protocols.front import Place
from sigwrap.protocols.joined import (
    KIND,
    MAX_BYTES,
    BadMessage,
    Call,
    decode,
    encode,
    file_of_words,
    header,
)
from sigwrap.run.entrance import Entrance
from sigwrap.run.joined.calls import Caller
from sigwrap.run.joined.fork_server import serve
from sigwrap.run.loop import Loop
from sigwrap.run.recorder import Recorder
from sigwrap.run.settings import RunSettings, differing
from sigwrap.start.command import HostEnvironment, Inherited

_MOST_CALLERS = 128
_LOOKS_EVERY_S = 5.0
_BACKLOG = 64
_ERRORS, _STATUSES = 0xFFF, 0xFFFF  # there are no larger ones
_PATIENCE_S = 10.0  # with who has come and asks for nothing


class Joins:
    def __init__(self, settings: RunSettings, tell: Callable[[str], None]) -> None:
        """Who comes from now on waits until it has begun."""
        self._settings = settings
        self._tell_at_start = tell
        self._rights = Rights()
        self._callers: dict[int, Caller] = {}
        self._asked: dict[int, Caller] = {}  # whose command is to be forked
        self._running: dict[int, Caller] = {}  # by the pid of the command
        self._count = 0
        self._is_open = False
        self._idle_since_s = time.monotonic()
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, KIND)
        self._door = socket.socket(fileno=settings.door_fd)
        self._door.setblocking(False)
        self._door.listen(_BACKLOG)  # who comes is told that it is us who listens

    def serve(self, session_id: str, inherited: Inherited) -> NoReturn:
        """In the child that is to be the fork server."""
        serve(self._theirs, session_id, inherited)

    def begin(
        self,
        *,
        fork_server: int,
        loop: Loop,
        recorder: Recorder,
        env_policy: EnvPolicy,
        on_refused: Callable[[Peer], None],
        was_told: Callable[[int], bool],
        is_frozen: Callable[[], bool],
    ) -> None:
        """From now on commands can join. `was_told`: the denial of this process's exec."""
        self._theirs.close()
        self._fork_server = fork_server
        self._loop = loop
        self._recorder = recorder
        self._env_policy = env_policy
        self._on_refused = on_refused
        self._was_told = was_told
        self._is_frozen = is_frozen
        self._ours.setblocking(False)
        loop.watch(self._ours.fileno(), self._on_fork_server)
        self._is_open = True
        self._entrance = Entrance(loop, self._on_arrival)
        self._entrance.open(self._door)
        self._look()
        self._is_ready()
        self._tell_at_start = lambda _text: None

    def _is_ready(self) -> None:
        try:
            os.write(self._settings.ready_fd, b"ready")
        except BrokenPipeError:
            pass  # who started it was killed; the next one has it
        os.close(self._settings.ready_fd)

    def tell(self, text: str) -> None:
        """To whoever waits for a command; before anybody has joined, to who starts the session."""
        self._tell_at_start(text)
        for caller in self._callers.values():
            caller.tell({"say": text})

    def end(self, exit_status: int) -> None:
        """The session is over, and with it what has joined."""
        for caller in tuple(self._callers.values()):
            if caller.has_asked:
                caller.tell({"over": exit_status})
            caller.close()
        self._callers.clear()

    def close(self) -> None:
        """Nobody joins any more. The address stays ours as long as we are there: who comes waits
        for the end of this session, and then there is another."""
        if self._is_open:
            self._is_open = False
            self._entrance.close()

    def _look(self) -> None:
        """The fork server is the one process that is always there."""
        now = time.monotonic()
        if self._callers or linux_process.count_descendants(os.getpid()) > 1:
            self._idle_since_s = now
        elif now - self._idle_since_s >= self._idle_s:
            self.close()
            self._loop.unwatch(self._ours.fileno())
            self._ours.close()  # it ends by that, and the session with it
            return
        self._loop.call_at(now + min(_LOOKS_EVERY_S, self._idle_s), self._look)

    @property
    def _idle_s(self) -> float:
        """Who started it is on the way."""
        idle_s = self._settings.join_idle_s
        return idle_s if self._count else max(idle_s, _PATIENCE_S)

    # Who comes

    def _on_arrival(self, accepted: socket.socket, peer: Peer) -> None:
        objection = peer.objection or self._rights.difference(peer.pid)
        if objection or len(self._callers) >= _MOST_CALLERS:
            if peer.objection:
                self._on_refused(peer)
            why = objection or f"{_MOST_CALLERS} commands have joined already"
            self._refuse(accepted, why)
            return
        self._count += 1
        try:
            caller = Caller(
                self._count,
                accepted,
                peer,
                self._loop,
                on_call=self._on_call,
                on_signal=self._on_signal,
                on_gone=self._on_gone,
                is_forked=self._is_its_child,
            )
        except OSError as error:  # nothing more can be watched
            self._refuse(accepted, f"the session cannot watch it: {error.strerror}")
            return
        self._callers[self._count] = caller
        self._loop.call_at(time.monotonic() + _PATIENCE_S, lambda: self._hurry(caller))

    def _hurry(self, caller: Caller) -> None:
        if not caller.has_asked and self._callers.get(caller.number) is caller:
            self._on_gone(caller)

    def _refuse(self, accepted: socket.socket, why: str) -> None:
        self._entrance.refuse(accepted, encode({"refused": f"refused: {why}"}))

    def _on_call(self, caller: Caller, message: dict[str, Any], call: Call, fds: list[int]) -> None:
        if not self._is_open:
            self._on_gone(caller)  # who isn't answered comes again, and waits for the next session
            return
        name = self._settings.join_name
        if other := differing(self._settings, message["settings"]):
            caller.tell(
                {
                    "refused": f"session {name} runs {other}",
                    "hint": f"end it (sigwrap stop {name}), or join another session",
                }
            )
            self._on_gone(caller)
            return
        environment = HostEnvironment.under(self._env_policy, call.environment)
        payload = {
            "call": caller.number,
            "command": masked([os.fsdecode(word) for word in call.words]),
            "cwd": link(f"/proc/self/fd/{fds[1]}") or "",
            "environment_removed": [masked_text(os.fsdecode(n)) for n in environment.removed],
        }
        if not self._recorder.record("command_joined", caller.by.pid, payload):
            caller.tell({"refused": f"the command was not run: {self._recorder.why_not}"})
            self._on_gone(caller)
            return
        caller.tell({"taken": caller.number})  # before it has an effect: it isn't run once more
        if self._is_frozen():
            how = f"continue it: sigwrap resume {name}"
            caller.tell({"say": f"session {name} was stopped by SIGSTOP ({how})"})
        given = call._replace(environment=environment.given)
        words = memory_library.sealed("words", file_of_words(given))
        try:
            packet = encode({"number": caller.number, **header(given)})
            socket.send_fds(self._ours, [packet], [words, *fds[1:]])
            self._asked[caller.number] = caller
        except OSError as error:
            caller.tell({"refused": f"cannot start the command: {error.strerror}"})
            self._on_gone(caller)
        finally:
            os.close(words)

    def _on_signal(self, caller: Caller, message: dict[str, Any]) -> None:
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

    def _record_passed_on(self, caller: Caller, given: int, sender: Payload) -> None:
        payload = {"signal": given, "signal_name": signal_name(given), **sender}
        self._recorder.record("interrupt_forwarded", caller.command_pid, payload)

    def _kill(self, caller: Caller) -> None:
        """With its command, all that was in its job."""
        if not caller.command_pid:
            return
        by = {
            "sender_pid": caller.by.pid,
            "sender_uid": caller.by.uid,
            "sender_place": Place.CALLER_ENDED.value,
            "sender_cmd": masked_text(caller.by.command),
        }
        self._record_passed_on(caller, signal.SIGKILL, by)
        caller.kill()

    def _on_gone(self, caller: Caller) -> None:
        """It was killed, or has been told how it went."""
        self._kill(caller)
        caller.close()
        self._callers.pop(caller.number, None)
        self._idle_since_s = time.monotonic()

    # What becomes of it

    def _on_fork_server(self, _happened: int) -> None:
        try:
            packet = self._ours.recv(MAX_BYTES)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            self._loop.unwatch(self._ours.fileno())  # it has ended, and so does the session
            self.close()
            return
        try:
            message = decode(packet)
        except BadMessage:
            return
        match message:
            case {"forked": int(pid), "number": int(call)} if call in self._asked:
                if self._is_its_child(pid):
                    self._forked(pid, self._asked.pop(call))
            case {"not_forked": int(error), "number": int(call)} if call in self._asked:
                why = f"cannot start a process: {os.strerror(error & _ERRORS)}"
                self._left(self._asked.pop(call), status.REFUSED, 0, why)
            case {"ended": int(pid), "status": int(wait_status), "error": int(error)} if (
                pid in self._running and _has_ended(pid)
            ):
                self._ended(self._running.pop(pid), wait_status & _STATUSES, error & _ERRORS)

    def _is_its_child(self, pid: int) -> bool:
        """Also one that has ended and waits to be reaped."""
        found = procfs.stat(pid)
        return found is not None and found.ppid == self._fork_server

    def _forked(self, pid: int, caller: Caller) -> None:
        self._running[pid] = caller
        caller.has_command(pid)
        if caller.number not in self._callers:  # it is gone since
            self._kill(caller)

    def _ended(self, caller: Caller, wait_status: int, error: int) -> None:
        pid = caller.command_pid
        died_of = os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else 0
        code = status.from_signal(died_of) if died_of else os.WEXITSTATUS(wait_status)
        if error == errno.ENOENT:
            code = status.NOT_FOUND
        is_told = error == errno.EACCES and self._was_told(pid)
        self._left(caller, code, died_of, "" if is_told or not error else os.strerror(error))
        caller.command_pid = 0
        try:
            self._ours.send(encode({"reap": pid}))
        except OSError:
            pass

    def _left(self, caller: Caller, code: int, died_of: int, why: str) -> None:
        payload = {"call": caller.number, "exit_status": code, "signal": died_of}
        self._recorder.record("command_left", caller.command_pid, payload)
        caller.tell({"ended": code, "signal": died_of, "why": why}, however_late=True)


def _has_ended(pid: int) -> bool:
    found = procfs.stat(pid)
    return found is None or found.has_ended
