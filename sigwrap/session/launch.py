"""Start the command's process, up to its first exec, and find what this machine lacks for a run.

The child looks the command up on PATH, enters the filter, and hands the listener over. It then
makes one mediated call to check that the supervisor answers, and waits for permission to exec. The
exec is mediated like any other, so the supervisor judges it before anything runs. A successful exec
closes the channel; otherwise the channel carries the errno.
"""

from __future__ import annotations

import errno
import os
import select
import struct
from collections.abc import Callable

from sigwrap.bare import NamedTuple, NoReturn, signal, socket
from sigwrap.calls import Under
from sigwrap.errors import DOCTOR, NOT_EXECUTABLE, KernelError, NoInterception, SessionError
from sigwrap.events import LEFT_TO_ANOTHER
from sigwrap.kernel import landlock, libc, paths, seccomp
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.descriptors import take_descriptor
from sigwrap.kernel.seccomp import Listener
from sigwrap.machine import Capability
from sigwrap.session.sandbox import FileSandbox, Sandbox
from sigwrap.session.settings import Nested, RunSettings
from sigwrap.start.command import Inherited, exec_command

_HANDSHAKE_TIMEOUT_S = 10.0
_PROBE_ANSWER = 0x5A
_NO_LISTENER = b"E"
_LISTENER = b"L"
_KILLABLE_LISTENER = b"K"
_ANSWERED = b"A"
_UNANSWERED = b"U"
_GO = b"G"
_NUMBER = struct.Struct("<i")  # of the listener's descriptor, or an errno
_NO_FILE_SANDBOX = FileSandbox(frozenset(), (), by_policy=False)


class Launch(NamedTuple):
    """A child that waits for permission to exec."""

    pid: int
    channel: socket.socket
    listener: Listener | None
    waits_through_signals: bool
    missing: KernelError | None

    def go(self) -> None:
        try:
            self.channel.send(_GO)
        except OSError:
            pass  # it was killed: the supervisor sees its end elsewhere

    def exec_failure(self) -> int | None:
        """Return the errno; None if the exec succeeded or the child was killed. Call it when the
        channel is readable."""
        try:
            data = self.channel.recv(16)
        except ConnectionResetError:  # it was killed before it read the permission
            return None
        return _NUMBER.unpack(data)[0] if len(data) == 4 else None


def launch(
    program: bytes,
    arguments: tuple[str, ...],
    session_id: str,
    inherited: Inherited,
    sandbox: Sandbox,
    become: Callable[[], NoReturn] | None = None,
) -> Launch:
    """Start the child; without a listener it has no filter, and `missing` says why. `become` runs
    in the child instead of the command."""

    def child(channel: socket.socket, supervisor: int, *, filtered: bool) -> None:
        _prepare(supervisor)
        if filtered:
            _enter_filter(sandbox, channel)
        if channel.recv(1) == _GO:
            if become is not None:
                channel.close()
                become()
            added = {b"SIGWRAP_SESSION": session_id.encode()}
            error = exec_command(program, arguments, inherited, added)
            channel.sendall(_NUMBER.pack(error))

    pid, channel = _fork(child, filtered=True)
    try:
        return _shake_hands(pid, channel)
    except KernelError as refusal:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        channel.close()
        pid, channel = _fork(child, filtered=False)
        missing = NoInterception(refusal.message, refusal.errno, refusal.hint or seccomp.NEEDS)
        return Launch(
            pid=pid, channel=channel, listener=None, waits_through_signals=False, missing=missing
        )


def _fork(child: Callable[..., None], *, filtered: bool) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair()
    supervisor = os.getpid()
    pid = linux_process.fork()
    if pid == 0:
        try:
            ours.close()
            child(theirs, supervisor, filtered=filtered)
        finally:
            os._exit(NOT_EXECUTABLE)
    theirs.close()
    ours.settimeout(_HANDSHAKE_TIMEOUT_S)
    return pid, ours


def _shake_hands(pid: int, channel: socket.socket) -> Launch:
    try:
        message, fds, _flags, _address = socket.recv_fds(channel, 512, 1)
        if message[:1] == _NO_LISTENER:
            raise _decode_failure(message)
        if message[:1] not in (_LISTENER, _KILLABLE_LISTENER):
            raise NoInterception("the command's process ended before it was ready", 0)
        fd = fds[0] if fds else _taken(pid, message[1:])
        os.set_inheritable(fd, False)
        listener = Listener(fd)
        waits_through_signals = message[:1] == _KILLABLE_LISTENER
        _answer_probe(listener, pid, waits_through_signals)
        if channel.recv(1) != _ANSWERED:
            raise NoInterception(
                "the seccomp listener was installed, but its answers don't arrive", 0
            )
    except TimeoutError as silence:
        raise NoInterception("the command's process did not get ready in time", 0) from silence
    return Launch(
        pid=pid,
        channel=channel,
        listener=listener,
        waits_through_signals=waits_through_signals,
        missing=None,
    )


def _taken(pid: int, number: bytes) -> int:
    try:
        return take_descriptor(pid, *_NUMBER.unpack(number))
    except OSError as refusal:
        why = f"the seccomp listener cannot be taken: {refusal.strerror}"
        raise NoInterception(why, refusal.errno or 0) from refusal


def _answer_probe(listener: Listener, child: int, waits_through_signals: bool) -> None:
    poll = select.poll()
    poll.register(listener.fd, select.POLLIN)
    if not poll.poll(_HANDSHAKE_TIMEOUT_S * 1000):
        raise NoInterception("the seccomp listener was installed, but receives nothing", 0)
    probe = listener.receive()
    if probe is None or not listener.is_waiting(probe.id):
        raise NoInterception("the seccomp listener lost its first request", 0)
    if waits_through_signals:
        os.kill(child, signal.SIGUSR1)  # the kernel promised that it does not interrupt the request
    listener.succeed(probe.id, _PROBE_ANSWER)


def _decode_failure(message: bytes) -> NoInterception:
    (code,) = _NUMBER.unpack(message[1:5])
    text, _, hint = message[5:].decode("utf-8", "replace").partition("\0")
    return NoInterception(text, code, hint)


def _prepare(supervisor: int) -> None:
    libc.set_parent_death_signal(signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(NOT_EXECUTABLE)


def _enter_filter(sandbox: Sandbox, channel: socket.socket) -> None:
    try:
        seccomp.demand_known_calls()
        paths.demand_openat2()
        restricted, allowed, *_ = sandbox.files or _NO_FILE_SANDBOX
        if sandbox.domain or restricted:
            landlock.enter_domain(
                restricted,
                allowed,
                keeps_signals=sandbox.domain,
                connects=Under.NETWORK_RULES not in sandbox.filtered,
            )
        listener_fd, killable = seccomp.install_listener(
            sandbox.unlogged_signals,
            under=sandbox.filtered,
            questions=sandbox.domain,
        )
    except RuntimeError as failure:
        channel.sendall(_NO_LISTENER + _NUMBER.pack(errno.EAGAIN) + f"{failure}\0".encode())
        return
    except KernelError as refusal:
        text = f"{refusal.message}\0{refusal.hint}".encode()
        channel.sendall(_NO_LISTENER + _NUMBER.pack(refusal.errno) + text)
        return
    message = _KILLABLE_LISTENER if killable else _LISTENER
    if Under.DATAGRAM_RULES in sandbox.filtered:  # the filter holds up sendmsg
        channel.sendall(message + _NUMBER.pack(listener_fd))
    else:
        socket.send_fds(channel, [message], [listener_fd])
    is_answered = _is_answered()
    os.close(listener_fd)
    channel.sendall(_ANSWERED if is_answered else _UNANSWERED)


def _is_answered() -> bool:
    signal.signal(signal.SIGUSR1, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    return int(libc.libc.kill(os.getpid(), signal.SIGCONT)) == _PROBE_ANSWER


# Find what a run lacks here, and whether it may start. `sigwrap doctor` does the same.

Tell = Callable[[str], None]

NOT_TRACED = f"sigwrap may not read or trace the command's process ({DOCTOR})"
_OF_THE_MACHINE = ("rule builtin:unreadable", "rule builtin:traced")


def missing_interception(
    launched: Launch, settings: RunSettings, inherited: Inherited, tell: Tell
) -> list[str]:
    """Return what this run lacks. Raises if the user did not agree to run without interception."""
    if launched.missing is None:
        return []
    refusal = launched.missing
    outer = outer_session(launched, inherited)
    is_nested = refusal.errno == errno.EBUSY
    where = f"session {outer}" if outer else "another supervisor"
    if is_nested and settings.nested is Nested.JOIN:
        tell(f"in {where}: the command runs under its rules and in its log")
        return [f"{LEFT_TO_ANOTHER}{where}"]
    if is_nested and outer:
        raise SessionError(
            f"already in session {outer}",
            "--nested join runs the command under that session's rules",
        )
    if settings.best_effort:
        tell(f"running without interception: {refusal.message}")
        return [f"{LEFT_TO_ANOTHER}{where}" if is_nested else f"interception: {refusal.message}"]
    raise refusal


def outer_session(launched: Launch, inherited: Inherited) -> str:
    """Return the outer session's name; empty if there is none, or its variable is missing."""
    if launched.missing is None or launched.missing.errno != errno.EBUSY:
        return ""
    return inherited.environment.get(b"SIGWRAP_SESSION", b"").decode("utf-8", "replace")


def capabilities_of(launched: Launch, sandbox: Sandbox) -> list[str]:
    if launched.listener is None:
        return []
    found = [
        Capability.INTERCEPTION,
        Capability.VERIFICATION,
        Capability.REPLACEMENT,
        Capability.DELIVERY,
    ]
    if sandbox.takes_descriptors and launched.listener.can_put_descriptors():
        found.append(Capability.RECORDING)
    if launched.waits_through_signals:
        found.append(Capability.WAITS_THROUGH_SIGNALS)
    return [each.value for each in (*found, *sandbox.capabilities)]


def is_of_the_machine(denial: str) -> bool:
    """Return whether a denial of the command's own process shows a limit of the machine."""
    return any(rule in denial for rule in _OF_THE_MACHINE)
