"""The process that forks the commands of a joined session.

It is under the filter, and so are its children. It executes nothing itself, and takes requests from
the supervisor alone. The supervisor signals no process only because the fork server names it: root
inside the session can write its memory. It reaps a command when the supervisor says so: until then
no other process gets the pid, and the supervisor can signal by it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import select
import termios

from sigwrap.bare import Any, NoReturn, signal, socket
from sigwrap.errors import KernelError
from sigwrap.linux import libc
from sigwrap.linux import process as linux_process
from sigwrap.linux.descriptors import close_all_but
from sigwrap.linux.limits import Limit
from sigwrap.linux.peer import FORK_SERVER_NAME
from sigwrap.linux.sigfd import SignalFd
from sigwrap.protocols.joined import (
    MAX_BYTES,
    MOST_DESCRIPTORS,
    Call,
    decode,
    encode,
    read_call,
)
from sigwrap.start.command import Inherited, exec_command, restore_signals
from sigwrap.status import NOT_EXECUTABLE

_STREAMS = frozenset({0, 1, 2})


def serve(end: socket.socket, session_id: str, inherited: Inherited) -> NoReturn:
    import json  # noqa: F401  # now, while no process of the session can change its file

    close_all_but((end.fileno(),))
    libc.set_process_name(FORK_SERVER_NAME.encode())
    libc.set_undumpable()
    restore_signals(inherited)
    _ForkServer(end, session_id).run()


class _ForkServer:
    def __init__(self, end: socket.socket, session_id: str) -> None:
        self._end = end
        self._added = {b"SIGWRAP_SESSION": session_id.encode()}
        self._signals = SignalFd({signal.SIGCHLD})
        self._running: dict[int, int] = {}  # pid -> a pipe that gets the errno of a failed exec
        self._poll = select.epoll()
        self._poll.register(end.fileno(), select.EPOLLIN)
        self._poll.register(self._signals.fd, select.EPOLLIN)

    def run(self) -> NoReturn:
        while True:
            for fd, _ in self._poll.poll():
                if fd == self._end.fileno():
                    self._take()
                else:
                    self._signals.read()
            self._tell_of_ends()

    def _take(self) -> None:
        packet, fds, _flags, _address = socket.recv_fds(
            self._end, MAX_BYTES, MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        if not packet:
            os._exit(0)  # the session is over
        message = decode(packet)
        if "reap" in message:
            self._reap(message["reap"])
            return
        try:
            words, folder, *descriptors = fds
            call = read_call(message, os.pread(words, os.fstat(words).st_size, 0))
            pid = self._fork(call, folder, descriptors)
            self._tell({"forked": pid, "number": message["number"]})
        except KernelError as refusal:
            self._tell({"not_forked": refusal.errno, "number": message["number"]})
        except (OSError, ValueError):  # some descriptors did not arrive
            self._tell({"not_forked": errno.EMFILE, "number": message["number"]})
        finally:
            for fd in fds:
                os.close(fd)

    def _fork(self, call: Call, folder: int, descriptors: list[int]) -> int:
        readable, writable = os.pipe()
        # Block signals until the command ignores those that its caller ignores.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = linux_process.fork()
            if pid == 0:
                _become(call, folder, descriptors, writable, self._added)
        except BaseException:
            os.close(readable)
            os.close(writable)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(writable)
        self._running[pid] = readable
        return pid

    def _tell(self, message: dict[str, Any]) -> None:
        self._end.send(encode(message))

    def _tell_of_ends(self) -> None:
        for pid in tuple(self._running):
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                exited = found.si_code == os.CLD_EXITED
                status = found.si_status << 8 if exited else found.si_status
                error = _errno_from(self._running.pop(pid))
                self._tell({"ended": pid, "status": status, "error": error})

    def _reap(self, pid: int) -> None:
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass


def _errno_from(readable: int) -> int:
    """Return the errno of the exec, 0 if it succeeded."""
    try:
        return int(os.read(readable, 16) or b"0")
    finally:
        os.close(readable)


def _become(
    call: Call,
    folder: int,
    descriptors: list[int],
    writable: int,
    added: dict[bytes, bytes],
) -> NoReturn:
    try:
        # A process that traces this one before its exec finds no way to the others.
        close_all_but((writable, folder, *descriptors))
        writable = _move_from(writable, frozenset(call.descriptors))
        try:
            error = _exec(call, folder, descriptors, added)
        except OSError as refusal:
            error = refusal.errno or errno.EIO
        except ValueError:  # setrlimit's EPERM
            error = errno.EPERM
        os.write(writable, b"%d" % error)
    finally:
        os._exit(NOT_EXECUTABLE)


def _exec(call: Call, folder: int, descriptors: list[int], added: dict[bytes, bytes]) -> int:
    os.setsid()
    inherited = Inherited(
        environment=call.environment,
        signal_mask=frozenset(call.signal_mask),
        ignored_signals=frozenset(call.ignored_signals),
        limits=tuple(_within_ours(Limit(*each)) for each in call.limits),
    )
    os.fchdir(folder)
    os.umask(call.umask)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, call.niceness)
    except PermissionError:
        pass  # the session is nicer than its caller
    wanted = frozenset(call.descriptors)
    held = [_move_from(fd, wanted) for fd in descriptors]
    for fd in _STREAMS - wanted:
        os.close(fd)  # every other one is close-on-exec
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    for number, fd in zip(call.descriptors, held, strict=True):
        if number < limit:  # the caller lowered its limit after opening it
            os.dup2(fd, number)
    if call.terminal >= 0:
        fcntl.ioctl(call.terminal, termios.TIOCSCTTY, 0)
    libc.set_dumpable()  # the supervisor reads the exec's arguments
    words = tuple(map(os.fsdecode, call.words))
    return exec_command(call.program, words, inherited, added)


def _move_from(fd: int, wanted: frozenset[int]) -> int:
    """Return the same file under a number that the command does not want."""
    tried = []
    while fd in wanted:
        tried.append(fd)
        fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 0)
    for each in tried[1:]:
        os.close(each)
    return fd


def _within_ours(limit: Limit) -> Limit:
    """Return the limit, lowered to a hard limit of ours, which cannot be raised."""
    _, hard = resource.getrlimit(limit.resource)
    if hard == resource.RLIM_INFINITY or os.geteuid() == 0:
        return limit

    def within(value: int) -> int:
        return hard if value == resource.RLIM_INFINITY else min(value, hard)

    return Limit(limit.resource, within(limit.soft), within(limit.hard))
