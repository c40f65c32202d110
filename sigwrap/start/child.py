"""The command's process, from its fork to its first exec.

It is forked before the supervisor imports its modules. Two processes share their memory from a
fork to an exec, and the kernel copies each page for the one that writes to it: here, few pages.

The child enters the Landlock domain and the filter, and hands the listener over. It then makes one
mediated call to check that the supervisor answers, and waits for permission to exec. The exec is
mediated like any other, so the supervisor judges it before anything runs. A successful exec closes
the channel; otherwise the channel carries the errno.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable

from sigwrap.bare import NamedTuple, NoReturn, signal, socket
from sigwrap.errors import NOT_EXECUTABLE, KernelError
from sigwrap.kernel import landlock, libc, memory, seccomp
from sigwrap.kernel import process as linux_process
from sigwrap.start.command import Inherited, exec_command

PROBE_ANSWER = 0x5A
ANSWERED = b"A"
GO = b"G"
_LENGTH_BYTES = 8


class Orders(NamedTuple):
    """What the child does, in values that marshal knows."""

    program: bytes
    environment: dict[bytes, bytes]
    removed: tuple[bytes, ...]  # variables that its /proc/PID/environ may not show
    session_id: str
    filter: bytes = b""  # empty: no filter and no domain
    hands_over_listener: bool = True  # otherwise the filter holds up sendmsg


class Ready(NamedTuple):
    """The first message of the child: its listener, or why there is none."""

    number: int  # of the descriptor, or the errno
    waits_through_signals: bool = False
    refusal: str = ""
    hint: str = ""


class Child(NamedTuple):
    """A child that waits for orders."""

    pid: int
    channel: socket.socket

    def order(self, orders: Orders, ruleset: int | None = None) -> None:
        """Send the orders, and the Landlock ruleset of the domain to enter."""
        data = marshal.dumps(tuple(orders))
        fds = [] if ruleset is None else [ruleset]
        try:
            length = len(data).to_bytes(_LENGTH_BYTES, "little")
            socket.send_fds(self.channel, [length], fds)
            self.channel.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it was killed: the supervisor sees its end elsewhere


def fork_child(
    arguments: tuple[str, ...],
    inherited: Inherited,
    become: Callable[[], NoReturn] | None = None,
) -> Child:
    """Start the child. `become` runs in it instead of the command."""
    ours, theirs = socket.socketpair()
    supervisor = os.getpid()
    pid = linux_process.fork()
    if pid == 0:
        try:
            ours.close()
            libc.set_parent_death_signal(signal.SIGKILL)
            if os.getppid() == supervisor:
                _obey(theirs, arguments, inherited, become)
        finally:
            os._exit(NOT_EXECUTABLE)
    theirs.close()
    return Child(pid, ours)


def _obey(
    channel: socket.socket,
    arguments: tuple[str, ...],
    inherited: Inherited,
    become: Callable[[], NoReturn] | None,
) -> None:
    length, fds, _flags, _address = socket.recv_fds(channel, _LENGTH_BYTES, 1)
    data = channel.recv(int.from_bytes(length, "little"), socket.MSG_WAITALL)
    orders = Orders(*marshal.loads(data))
    if orders.removed:
        memory.forget(orders.removed)
    is_ready = not orders.filter or _enter(orders, fds, channel)
    if not is_ready or channel.recv(1) != GO:
        return
    if become is not None:
        channel.close()
        become()
    inherited = inherited._replace(environment=orders.environment)
    added = {b"SIGWRAP_SESSION": orders.session_id.encode()}
    error = exec_command(orders.program, arguments, inherited, added)
    channel.sendall(marshal.dumps(error))


def _enter(orders: Orders, rulesets: list[int], channel: socket.socket) -> bool:
    """Enter the Landlock domain and the filter. Return whether the supervisor answers."""
    try:
        for ruleset in rulesets:
            landlock.enter_domain(ruleset)
            os.close(ruleset)
        listener_fd, killable = seccomp.install_listener(orders.filter)
    except KernelError as refusal:
        failed = Ready(refusal.errno, refusal=refusal.message, hint=refusal.hint)
        channel.sendall(marshal.dumps(tuple(failed)))
        return False
    ready = marshal.dumps(tuple(Ready(listener_fd, killable)))
    if orders.hands_over_listener:
        socket.send_fds(channel, [ready], [listener_fd])
    else:
        channel.sendall(ready)
    signal.signal(signal.SIGUSR1, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    is_answered = int(libc.libc.kill(os.getpid(), signal.SIGCONT)) == PROBE_ANSWER
    os.close(listener_fd)
    if is_answered:
        channel.sendall(ANSWERED)
    return is_answered
