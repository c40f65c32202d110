"""What an exec would run: the file, its interpreters, and what a wrapper wraps.

Worked out while the caller waits, held by descriptors until the exec is over. The caller can still
change its memory and the files' names; what the kernel then loads is compared with this.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Mapping

from sigwrap.calls import I386
from sigwrap.linux.execs.loading import Environment
from sigwrap.linux.execs.ownership import is_the_systems
from sigwrap.linux.execs.script import (
    HEADER_BYTES,
    MAX_INTERPRETERS,
    NotExecutableFormat,
    command_line,
    interpreter_argv,
    shebang,
)
from sigwrap.linux.memory import Memory, Unreadable
from sigwrap.linux.paths import AT_FDCWD, Caller, Place
from sigwrap.linux.seccomp import Notification, int32
from sigwrap.policy.judge.request import Fact, Program
from sigwrap.policy.judge.wrappers import unwrap

MATCHED_BYTES = 64 * 1024
_ENVIRONMENT_BYTES = 2 * 1024 * 1024
_DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"
_LOADER_NAMES = ("ld-", "ld.so", "ld64.so")
_UNSEEN_FOLDER = "/usr/bin/"  # of a wrapped program that can't be found
_AT_EMPTY_PATH = 0x1000
_AT_EXECVE_CHECK = 0x10000
_MAX_HASHED_BYTES = 1 << 30
_HEADERS_KEPT = 4096
_CTIME_GRAIN_NS = 100_000_000  # two writes within one tick of a coarse clock look the same

Inode = tuple[int, int]


class ExecRefused(Exception):
    """The kernel would refuse the exec; `errno` is what it would say."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.errno = error


def only_asks(notification: Notification, syscall: str) -> bool:
    """Whether the call asks (Linux 6.14) if the file could be executed, and nothing more."""
    return syscall == "execveat" and bool(notification.argument4 & _AT_EXECVE_CHECK)


class Asked:
    """The call's arguments. The strings can be rewritten after we read them."""

    __slots__ = (
        "argv",
        "argv_at",
        "environment_at",
        "flags",
        "folder_fd",
        "path",
        "path_at",
        "truncated",
        "word_size",
    )

    def __init__(self, notification: Notification, syscall: str, memory: Memory) -> None:
        """Without argv. Raises Unreadable, and ExecRefused."""
        self.word_size = 4 if notification.arch == I386 else 8
        if syscall == "execve":
            self.folder_fd, self.flags = AT_FDCWD, 0
            self.path_at, self.argv_at = notification.argument0, notification.argument1
            self.environment_at = notification.argument2
        else:
            self.folder_fd, self.flags = int32(notification.argument0), notification.argument4
            self.path_at, self.argv_at = notification.argument1, notification.argument2
            self.environment_at = notification.argument3
        if self.word_size == 4:
            self.path_at &= 0xFFFFFFFF
            self.argv_at &= 0xFFFFFFFF
            self.environment_at &= 0xFFFFFFFF
        self.path, cut = memory.string(self.path_at)
        if cut:
            raise ExecRefused(errno.ENAMETOOLONG)
        self.argv: list[bytes] = []
        self.truncated = False

    def read_argv(self, memory: Memory) -> tuple[list[bytes], bool]:
        """Raises Unreadable."""
        self.argv, self.truncated = memory.strings(self.argv_at, self.word_size, MATCHED_BYTES)
        return self.argv, self.truncated

    def variable(self, tid: int, name: bytes) -> bytes | None:
        """None as well where the environment is too large, or can't be read."""
        start = name + b"="
        found = self.environment(tid) or ()
        return next((entry[len(start) :] for entry in found if entry.startswith(start)), None)

    def environment(self, tid: int) -> list[bytes] | None:
        """None where it is too large, or can't be read."""
        try:
            with Memory(tid) as memory:
                found, cut = memory.strings(self.environment_at, self.word_size, _ENVIRONMENT_BYTES)
        except Unreadable:
            return None
        return None if cut else found


class Executable:
    """What an exec would run. `programs` are what the policy judges, `here` those of them that this
    very exec would run; `image` is the file whose code would run, and `command_line` what it would
    see as its arguments (the start of it, where they were cut)."""

    __slots__ = (
        "_caller",
        "_fds",
        "command_line",
        "cut",
        "digests",
        "environment",
        "here",
        "image",
        "programs",
        "readable",
    )

    def __init__(
        self,
        caller: Caller,
        path: bytes,
        argv: Callable[[], tuple[list[bytes], bool]],
        *,
        folder_fd: int = AT_FDCWD,
        flags: int = 0,
        search_path: Callable[[], bytes] | None = None,
        environment: Environment | None = None,
    ) -> None:
        """`argv` says whether it is cut as well, and is asked for once the file is found, as the
        kernel does it: a search along PATH fails before. OSError and ExecRefused carry what the
        kernel would say. Without `search_path`, wrappers are not looked into."""
        self._caller = caller
        self.environment = environment
        self._fds: list[int] = []
        self.digests: list[tuple[int, str]] = []
        self.readable = True
        try:
            self._resolve(path, argv, folder_fd, flags, search_path)
        except NotExecutableFormat as refusal:
            self.close()
            raise ExecRefused(errno.ENOEXEC) from refusal
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()

    def inodes(self) -> list[Inode]:
        """Of the file and its interpreters."""
        states = map(os.fstat, self._fds)
        return [(state.st_dev, state.st_ino) for state in states]

    def digests_hold(self) -> bool:
        """At the exec stop, when nobody can write to the file any more."""
        return all(_digest(fd) == digest for fd, digest in self.digests)

    def _resolve(
        self,
        path: bytes,
        read_argv: Callable[[], tuple[list[bytes], bool]],
        folder_fd: int,
        flags: int,
        search_path: Callable[[], bytes] | None,
    ) -> None:
        called = path
        if not path and flags & _AT_EMPTY_PATH and folder_fd != AT_FDCWD:
            fd = self._caller.open_descriptor(folder_fd)
            called = b"/dev/fd/%d" % folder_fd
        else:
            fd = self._caller.open(path, folder_fd)
            if folder_fd != AT_FDCWD and not path.startswith(b"/"):
                called = b"/dev/fd/%d/%b" % (folder_fd, path)
        state = self._pin(fd)
        argv, self.cut = read_argv()
        programs = [self._program(fd, path, argv)]
        header = self._header(fd, state)
        for depth in range(MAX_INTERPRETERS + 1):
            script = None if header is None else shebang(header)
            if script is None:
                break
            if depth == MAX_INTERPRETERS:
                raise ExecRefused(errno.ELOOP)
            argv = interpreter_argv(script, called, argv)
            called = script.interpreter
            fd = self._caller.open(called)
            state = self._pin(fd)
            programs.append(self._program(fd, called, argv))
            header = self._header(fd, state)
        self.readable = header is not None
        self.image: Inode = (state.st_dev, state.st_ino)
        whole = command_line(argv)
        self.command_line = whole[:-1] if self.cut else whole
        here, later = list(programs), list[Program]()
        if search_path is not None:
            for program in programs:
                own, others = self._wrapped(program, search_path)
                here += own
                later += others
        self.here = tuple(here)
        self.programs = (*here, *later)

    def _pin(self, fd: int) -> os.stat_result:
        self._fds.append(fd)
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode) or not state.st_mode & 0o111:
            raise ExecRefused(errno.EACCES)
        return state

    def _program(self, fd: int, called: bytes, argv: list[bytes]) -> Program:
        path = os.readlink(f"/proc/self/fd/{fd}")
        name = os.fsdecode(called.rpartition(b"/")[2]) or path.rpartition("/")[2]
        return Program(
            path=path,
            name=name,
            argv=tuple(map(os.fsdecode, argv)),
            sha256=self._digester(fd),
            system_file=self._system_file(fd, called, path),
            loads_code=self._loads_code((name, path.rpartition("/")[2])),
        )

    def _system_file(self, fd: int, called: bytes, path: str) -> Fact:
        if not self._caller.shares_our_root:
            return False
        return lambda: is_the_systems(fd, os.fsdecode(called), path)

    def _loads_code(self, names: tuple[str, str], added: tuple[str, ...] = ()) -> Fact:
        environment = self.environment
        if environment is None:
            return False
        return lambda: environment.loads_code(names, added)

    def _digester(self, fd: int) -> Callable[[], str]:
        def digest() -> str:
            for known_fd, known in self.digests:
                if known_fd == fd:
                    return known
            found = _digest(fd)
            self.digests.append((fd, found))
            return found

        return digest

    def _header(self, fd: int, state: os.stat_result) -> bytes | None:
        """None where we may not read it. Known by the file's state: a write changes its ctime, and
        one that doesn't (through a mapping) is found out when another image is loaded."""
        key = (state.st_dev, state.st_ino, state.st_ctime_ns, state.st_size)
        known = _headers.get(key)
        if known is not None:
            return known
        try:
            readable = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            return None
        try:
            header = os.read(readable, HEADER_BYTES)
        finally:
            os.close(readable)
        if time.time_ns() - state.st_ctime_ns > _CTIME_GRAIN_NS:
            if len(_headers) >= _HEADERS_KEPT:
                _headers.clear()
            _headers[key] = header
        return header

    def _wrapped(
        self, program: Program, search_path: Callable[[], bytes]
    ) -> tuple[list[Program], list[Program]]:
        """What runs within this exec (an applet, what ld.so maps), and what execs of its own."""
        basename = program.path.rpartition("/")[2]
        wrapped = unwrap(basename, program.argv)
        if not wrapped and program.name != basename:
            wrapped = unwrap(program.name, program.argv)
        here: list[Program] = []
        later: list[Program] = []
        outer = program
        for inner in wrapped:
            name = inner.argv[0].rpartition("/")[2]
            is_mapped = outer.path.rpartition("/")[2].startswith(_LOADER_NAMES)
            if inner.same_file:
                path, digest, system_file = outer.path, outer.sha256, outer.system_file
            else:
                path, digest, system_file = self._look_up(inner.argv[0], search_path)
            loads_code = self._loads_code((name, path.rpartition("/")[2]), inner.variables)
            outer = Program(
                path=path,
                name=name,
                argv=inner.argv,
                sha256=digest,
                spelling=inner.spelling,
                system_file=system_file,
                loads_code=loads_code,
            )
            comes_later = later or not (inner.same_file or is_mapped)
            (later if comes_later else here).append(outer)
        return here, later

    def _look_up(
        self, command: str, search_path: Callable[[], bytes]
    ) -> tuple[str, Callable[[], str] | None, Fact]:
        word = os.fsencode(command)
        folders = [b""] if b"/" in word else search_path().split(b":")
        for folder in folders:
            called = os.path.join(folder, word)
            try:
                fd = self._caller.open(called)
            except OSError:
                continue
            self._fds.append(fd)
            mode = os.fstat(fd).st_mode
            if stat.S_ISREG(mode) and mode & 0o111:
                path = os.readlink(f"/proc/self/fd/{fd}")
                return path, self._digester(fd), self._system_file(fd, called, path)
        if command.startswith("/"):
            return command, None, False
        return _UNSEEN_FOLDER + command.rpartition("/")[2], None, False


_headers: dict[tuple[int, int, int, int], bytes] = {}


def resolve(
    tid: int, pid: int, asked: Asked, memory: Memory, our_root: Place, own: Mapping[str, bytes]
) -> Executable:
    """Raises Unreadable where the caller can't be looked into."""

    def search_path() -> bytes:
        path = asked.variable(tid, b"PATH")
        return _DEFAULT_PATH if path is None else path

    return Executable(
        _caller(tid, pid, our_root),
        asked.path,
        lambda: asked.read_argv(memory),
        folder_fd=asked.folder_fd,
        flags=asked.flags,
        search_path=search_path,
        environment=Environment(lambda: asked.environment(tid), own),
    )


def resolve_replacement(
    tid: int, pid: int, command: str, argv: list[bytes], our_root: Place
) -> tuple[bytes, Executable]:
    """Looked up along sigwrap's own PATH: the caller's is the caller's to choose."""
    caller = _caller(tid, pid, our_root)
    word = os.fsencode(command)
    folders = [b""] if b"/" in word else os.environb.get(b"PATH", _DEFAULT_PATH).split(b":")
    failure: OSError | ExecRefused = ExecRefused(errno.ENOENT)
    for folder in folders:
        path = os.path.join(folder, word)
        try:
            return path, Executable(caller, path, lambda: (argv, False))
        except (OSError, ExecRefused) as missing:
            failure = missing
    raise failure


def _caller(tid: int, pid: int, our_root: Place) -> Caller:
    try:
        return Caller(tid, pid, our_root)
    except OSError as refusal:
        raise Unreadable from refusal


def _digest(fd: int) -> str:
    """Empty, which no rule names, where the file can't be read or is too large to wait for."""
    try:
        if os.fstat(fd).st_size > _MAX_HASHED_BYTES:
            return ""
        with open(f"/proc/self/fd/{fd}", "rb", buffering=0) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
