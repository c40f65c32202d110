"""The process that forks the commands of a joined session, and the messages, one in a packet,
between a command that joins, the session and this process.

The fork server is under the filter, and so are its children. It executes nothing itself, and takes
requests from the supervisor alone. The supervisor signals no process only because the fork server
names it: root inside the session can write its memory. It reaps a command when the supervisor says
so: until then no other process gets the pid, and the supervisor can signal by it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import select
import termios

from sigwrap.bare import Any, NamedTuple, NoReturn, blake2b, json, signal, socket
from sigwrap.errors import NOT_EXECUTABLE, KernelError
from sigwrap.kernel import libc, procfs
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.descriptors import close_all_but
from sigwrap.kernel.limits import Limit
from sigwrap.kernel.peer import FORK_SERVER_NAME
from sigwrap.kernel.signals import SignalFd
from sigwrap.start.command import Inherited, exec_command, restore_signals

VERSION = 1
MAX_BYTES = 64 * 1024  # in a message
MOST_DESCRIPTORS = 253  # in a message; the kernel takes no more
MAX_WORDS_BYTES = 8 << 20
READY = b"\0"  # a session prints it once commands can join; no message has it
KIND = socket.SOCK_SEQPACKET
_LARGEST = 1 << 64  # a number may be a resource limit
_PREFIX = "sigwrap-joined"
_WHERE = ("/proc/self/ns/mnt", "/proc/self/root")  # paths depend on these
_IN_FILE = ("program", "words", "environment")
_STREAMS = frozenset({0, 1, 2})


class BadMessage(ValueError):
    pass


class Call(NamedTuple):
    """A command that joins."""

    program: bytes
    words: tuple[bytes, ...]
    environment: dict[bytes, bytes]
    descriptors: tuple[int, ...]  # their numbers in the command
    terminal: int  # the number of its controlling terminal, or -1
    umask: int
    niceness: int
    ignored_signals: tuple[int, ...]
    signal_mask: tuple[int, ...]
    limits: tuple[tuple[int, int, int], ...]


def address(store: str, name: str, uid: int) -> bytes:
    """Return the address for an absolute store path.

    It does not depend on the file system at that path, which the session could change.
    """
    where = [(found.st_dev, found.st_ino) for found in map(procfs.file_status, _WHERE)]
    digest = blake2b(os.fsencode(f"{where} {name} {store}"), digest_size=16)
    return f"\0{_PREFIX}/{uid}/{digest.hexdigest()}".encode()


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps({"v": VERSION, **message}).encode()


def decode(packet: bytes) -> dict[str, Any]:
    try:
        message = json.loads(packet)
    except (ValueError, RecursionError) as error:
        raise BadMessage("not JSON") from error
    if not isinstance(message, dict) or message.get("v") != VERSION:
        raise BadMessage(f"protocol version {VERSION} expected")
    return message


def file_of_words(call: Call) -> bytes:
    """Join program, arguments and variables with NUL, which none of them contains."""
    variables = (name + b"=" + value for name, value in call.environment.items())
    return b"\0".join((call.program, *call.words, *variables))


def header(call: Call) -> dict[str, Any]:
    """Return the fields of a message, for what is not in the file of words."""
    return {
        "words": len(call.words),
        **{name: value for name, value in call._asdict().items() if name not in _IN_FILE},
    }


def read_call(message: dict[str, Any], words: bytes) -> Call:
    """Return the command of a message, or raise BadMessage."""
    try:
        parts = words.split(b"\0")
        count = int(message["words"])
        variables = (part.partition(b"=") for part in parts[1 + count :])
        call = Call(
            program=parts[0],
            words=tuple(parts[1 : 1 + count]),
            environment={name: value for name, _, value in variables},
            descriptors=tuple(map(_number, message["descriptors"])),
            terminal=_number(message["terminal"]),
            umask=_number(message["umask"]),
            niceness=_number(message["niceness"]),
            ignored_signals=tuple(map(_number, message["ignored_signals"])),
            signal_mask=tuple(map(_number, message["signal_mask"])),
            limits=tuple((_number(r), _number(s), _number(h)) for r, s, h in message["limits"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadMessage(f"incomplete message: {error}") from error
    if not call.words or len(call.words) != count or len(parts) < 1 + count:
        raise BadMessage("no command in the message")
    return call


def _number(value: Any) -> int:
    number = int(value)
    if abs(number) > _LARGEST:
        raise ValueError("a number is too large")
    return number


def serve(end: socket.socket, session_id: str, inherited: Inherited) -> NoReturn:
    import json  # noqa: F401  # now, while no process of the session can change its file

    close_all_but((0, 1, 2, end.fileno()))
    libc.set_process_name(FORK_SERVER_NAME.encode())
    libc.set_dumpable(False)
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
        close_all_but({0, 1, 2, writable, folder, *descriptors})
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
    libc.set_dumpable(True)  # the supervisor reads the exec's arguments
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
