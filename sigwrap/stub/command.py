"""Start the command that a stub stands in for.

The command is a fork of the stub, so it has what the caller set up for its children (folder,
limits, terminal, namespaces). Its standard input is a socket to the stub. At its exec, the
supervisor takes that socket, and puts three pipes in place of the streams. It allows this exec
once, for this program and these arguments.
"""

from __future__ import annotations

import errno
import os

from sigwrap.bare import signal, socket
from sigwrap.escape import bounded, printable
from sigwrap.linux.descriptors import reserve_standard_streams
from sigwrap.linux.sigfd import SignalFd
from sigwrap.status import NOT_EXECUTABLE, NOT_FOUND
from sigwrap.stub.stand_in import Lost, StandIn, end_like, take_signals

# Python ignores these two from its start; the supervisor checked whether the caller did.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def stand_in_for(path: str, argv: list[str], ignored_signals: frozenset[int]) -> int:
    reserve_standard_streams()
    signals, mask = take_signals()
    ours, theirs = socket.socketpair()
    command = os.fork()
    if command == 0:
        try:
            _become(path, argv, theirs.fileno(), ignored_signals, mask)
        finally:
            os._exit(NOT_EXECUTABLE)
    theirs.close()
    _close_others(keep={0, 1, 2, ours.fileno(), signals.fd})
    return end_with(path, ours, command, signals)


def end_with(path: str, supervisor: socket.socket, command: int, signals: SignalFd) -> int:
    try:
        status = StandIn(supervisor, command, signals).run()
    except Lost as lost:
        _say(path, str(lost))
        try:
            os.kill(command, signal.SIGKILL)
        except OSError:
            pass  # without a supervisor every signal fails, and the front process ends the tree
        return NOT_EXECUTABLE
    return end_like(status)


def _become(
    path: str,
    argv: list[str],
    supervisor: int,
    ignored_signals: frozenset[int],
    mask: set[int],
) -> None:
    for number in _IGNORED_BY_PYTHON:
        if number not in ignored_signals:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.dup2(supervisor, 0)
    try:
        os.execve(path, argv, {})
    except OSError as failure:
        _say(path, os.strerror(failure.errno or errno.EIO))
        os._exit(NOT_FOUND if failure.errno == errno.ENOENT else NOT_EXECUTABLE)


def _close_others(keep: set[int]) -> None:
    """Close inherited descriptors: a pipe closes when the command closes it."""
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:
        if fd not in keep:
            try:
                os.close(fd)
            except OSError:
                continue  # the listing's own


def _say(path: str, text: str) -> None:
    line = bounded(printable(f"{os.path.basename(path)}: {text}"))
    try:
        os.write(2, f"sigwrap-stub: {line}\n".encode())
    except OSError:
        pass
