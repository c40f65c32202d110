"""Real processes, awaited by their events: a line, a pidfd, the end of a pipe. Never by time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sigwrap.events import Event
from sigwrap.linux import libc, procfs
from sigwrap.report.verify import Outcome, verify_session
from sigwrap.store.catalog import list_sessions, open_session

PATIENCE_S = float(os.environ.get("SIGWRAP_TEST_PATIENCE_S", "30"))
"""How long a loaded machine may take for what should be at once."""

NOBODY = 65534
EXECS = ("exec_allowed", "exec_audited")
REFUSED = 125

_BESIDE_PYTHON = Path(sys.executable).with_name("sigwrap")
UNDER_TEST = os.environ.get("SIGWRAP_UNDER_TEST") or str(_BESIDE_PYTHON)
IS_BINARY = Path(UNDER_TEST).read_bytes()[:2] != b"#!"
PYTHON = (os.path.realpath(sys.executable), "-I", "-S")
"""Every user may run it, and it starts in no time."""

_MARK = "SIGWRAP_TEST_MARK"


class Late(AssertionError):
    """What a test waited for did not come."""


# The program under test


@dataclass(slots=True)
class Sigwrap:
    """The program under test, as one user, with a store of its own."""

    folder: Path
    store: Path
    user: int | None = None
    policy: str = ""
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    env: dict[str, str] = field(default_factory=dict)
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _terminals: list[Terminal] = field(default_factory=list)

    def __post_init__(self) -> None:
        kept = ("PATH", "LANG", "LC_ALL", "USER", "TERM")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env["HOME"] = str(self.folder)
        self.env["TMPDIR"] = str(self.folder)
        self.env["SIGWRAP_STORE"] = str(self.store)
        self.env[_MARK] = self.mark

    def line(self, *words: str | bytes, program: str = UNDER_TEST) -> list[str | bytes]:
        """Without the switch to the user: for a caller that has switched."""
        return [program, *(["--policy", self.policy] if self.policy else []), *words]

    def as_user(self) -> list[str]:
        if self.user is None:
            return []
        return ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", "--"]

    def native(self, *words: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
        return self._finish(self._start([*self.as_user(), *words], **options), options)

    def run(self, *words: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """`words` are sigwrap's own, `--` included."""
        return self._finish(self._start([*self.as_user(), *self.line(*words)], **options), options)

    def start(self, *words: str | bytes, **options: Any) -> subprocess.Popen[bytes]:
        return self._start([*self.as_user(), *self.line(*words)], **options)

    def start_line(self, line: list[str | bytes], **options: Any) -> subprocess.Popen[bytes]:
        return self._start(line, **options)

    def on_terminal(self, *words: str | bytes, **options: Any) -> Terminal:
        return self.terminal_for([*self.as_user(), *self.line(*words)], **options)

    def terminal_for(self, line: list[str | bytes], **options: Any) -> Terminal:
        terminal = Terminal(line, {**self.env, **options.pop("env", {})}, self.folder, **options)
        self._terminals.append(terminal)
        return terminal

    def _start(self, line: list[str | bytes], **options: Any) -> subprocess.Popen[bytes]:
        options.pop("input", None)
        options.pop("within_s", None)
        options.setdefault("stdin", subprocess.PIPE)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("cwd", self.folder)
        options.setdefault("start_new_session", True)
        environment = {**self.env, **options.pop("env", {})}
        process = subprocess.Popen(line, env=environment, **options)
        self._started.append(process)
        return process

    def _finish(
        self, process: subprocess.Popen[bytes], options: dict[str, Any]
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            within_s = options.get("within_s", PATIENCE_S)
            out, err = process.communicate(options.get("input", b""), within_s)
        except subprocess.TimeoutExpired as late:
            raise Late(f"{process.args!r} did not end; stderr: {late.stderr!r}") from None
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    # Its log

    def events(self, *types: str) -> list[Event]:
        found = open_session(str(self.store), "").events()
        return [event for event in found if not types or event.type in types]

    def has_sessions(self) -> bool:
        return bool(list_sessions(str(self.store)))

    def sealed_events(self, *types: str) -> list[Event]:
        """Of a session that ended cleanly, whose chain holds."""
        self.verify(ended=True)
        return self.events(*types)

    def verify(self, *, ended: bool) -> None:
        found = verify_session(open_session(str(self.store), ""), None)
        assert (found.outcome, found.problem, found.ended) == (Outcome.INTACT, "", ended)

    # Its processes

    def alive(self) -> list[int]:
        """Every process that was started in this test, by its environment."""
        return [pid for pid in procfs.all_pids() if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        if pid == os.getpid():
            return False
        try:
            return f"{_MARK}={self.mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False

    def clean_up(self) -> None:
        for terminal in self._terminals:
            terminal.close()
        for process in self._started:
            if process.poll() is None:
                process.kill()
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.wait(PATIENCE_S)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


@dataclass(frozen=True, slots=True)
class Roles:
    front: int
    supervisor: int

    @classmethod
    def of(cls, pid: int) -> Roles:
        """`pid` as its caller knows it: the front process, or the binary's outer one."""
        for process in [pid, *children(pid)]:
            for child in children(process):
                if procfs.comm(child) == "sigwrap-super":
                    return cls(process, child)
        raise AssertionError(f"no supervisor under {pid}")


def children(pid: int) -> list[int]:
    return [
        found.pid
        for other in procfs.all_pids()
        if (found := procfs.stat(other)) is not None and found.ppid == pid
    ]


def tree(pid: int) -> list[int]:
    below = [pid]
    for parent in below:
        below += children(parent)
    return below


# Waiting


@dataclass(slots=True)
class Watched:
    """A process as of now: its end can be awaited, and no other is taken for it."""

    pid: int
    pidfd: int
    start_time: int
    name: str

    @property
    def remains(self) -> bool:
        """Alive, or a zombie."""
        found = procfs.stat(self.pid)
        return found is not None and found.start_time == self.start_time


class Watch:
    """Processes whose end is awaited together."""

    def __init__(self, pids: Iterable[int]) -> None:
        self.processes: list[Watched] = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                pidfd = os.pidfd_open(pid)
                found = procfs.stat(pid)
                if found is None:
                    os.close(pidfd)
                    continue
                name = procfs.command_line(pid) or found.comm
                self.processes.append(Watched(pid, pidfd, found.start_time, name))

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self.processes:
            os.close(process.pidfd)

    def await_ends(self, within_s: float = PATIENCE_S) -> float:
        """How long it took."""
        started = time.monotonic()
        for process in self.processes:
            left = started + within_s - time.monotonic()
            poll = select.poll()
            poll.register(process.pidfd, select.POLLIN)
            if not poll.poll(max(0.0, left) * 1000):
                raise Late(f"still there after {within_s} s: {process.pid} {process.name}")
        return time.monotonic() - started

    @property
    def zombies(self) -> list[Watched]:
        return [process for process in self.processes if process.remains]


def await_end(pid: int, within_s: float = PATIENCE_S) -> float:
    with Watch([pid]) as watch:
        return watch.await_ends(within_s)


class Reader:
    """Reads a descriptor until something has been said."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.seen = b""
        self._taken = 0
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def line(self, within_s: float = PATIENCE_S) -> bytes:
        return self.until(rb"[^\n]*\n", within_s).strip()

    def until(self, pattern: bytes, within_s: float = PATIENCE_S) -> bytes:
        """The first match behind the one before."""
        deadline = time.monotonic() + within_s
        while True:
            match = re.compile(pattern).search(self.seen, self._taken)
            if match:
                self._taken = match.end()
                return match.group()
            if not self._more(deadline):
                rest = self.seen[self._taken :]
                raise Late(f"{pattern!r} was not said within {within_s} s, but {rest!r}")

    def rest(self, within_s: float = PATIENCE_S) -> bytes:
        """Everything up to the end, from the last match on."""
        deadline = time.monotonic() + within_s
        while self._more(deadline):
            pass
        if time.monotonic() >= deadline:
            raise Late(f"no end within {within_s} s, after {self.seen[-500:]!r}")
        rest, self._taken = self.seen[self._taken :], len(self.seen)
        return rest

    def _more(self, deadline: float) -> bool:
        if not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return False
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:  # EIO: the last one on a terminal is gone
            data = b""
        self.seen += data
        return bool(data)


def reader(stream: Any) -> Reader:
    return Reader(stream.fileno())


def await_state(pid: int, states: str, within_s: float = PATIENCE_S) -> None:
    """A stop tells only the parent; everybody else has to look."""
    await_that(lambda: (s := procfs.stat(pid)) is not None and s.state in states, within_s)


def await_key_taken(outermost: int, number: int = signal.SIGINT) -> None:
    """By sigwrap's processes that pass it on. A signal that still waits for one of them would
    swallow the next of its number: no two keys of a person are that close."""
    processes = [outermost, *children(outermost)] if IS_BINARY else [outermost]
    for pid in processes:
        await_that(lambda pid=pid: not _is_pending(pid, number))  # type: ignore[misc]


def _is_pending(pid: int, number: int) -> bool:
    """Also while its handler runs."""
    found = procfs.stat(pid)
    if found is None:
        return False
    status = Path(f"/proc/{pid}/status").read_text()
    (pending,) = re.findall(r"^ShdPnd:\t(\w+)$", status, re.MULTILINE)
    return found.state != "S" or bool(int(pending, 16) >> (number - 1) & 1)


def await_that(holds: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    """For what announces itself to nobody. Yields the processor between looks."""
    deadline = time.monotonic() + within_s
    pause = select.poll()
    while not holds():
        if time.monotonic() > deadline:
            raise Late(f"did not become true within {within_s} s")
        pause.poll(2)


# A terminal


class Terminal:
    """A pseudo-terminal with one job in its foreground, under a parent that does what a shell
    does: a process group for the job, the terminal for the group, and waiting."""

    def __init__(
        self, line: list[str | bytes], env: dict[str, str], cwd: Path, *, stdout: int | None = None
    ) -> None:
        self.master, slave = os.openpty()
        _keep_what_is_on_its_way(slave)
        reports, reporter = os.pipe()
        self.keeper = os.fork()
        if self.keeper == 0:
            try:
                _keep(line, env, cwd, slave, reporter, stdout)
            finally:
                os._exit(99)
        os.close(slave)
        os.close(reporter)
        self._reports = Reader(reports)
        self._reports_fd = reports
        self.output = Reader(self.master)
        self.pid = int(self._reports.line())

    def press(self, key: str) -> None:
        os.write(self.master, bytes([ord(key.upper()) - 64]))

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def await_stop(self) -> None:
        self._reports.until(rb"stopped\n")

    def await_status(self, within_s: float = PATIENCE_S) -> int:
        """As a shell shows it."""
        return int(self._reports.until(rb"ended \d+\n", within_s).split()[1])

    def foreground(self) -> int:
        return os.tcgetpgrp(self.master)

    def take_back(self) -> None:
        """What a shell's `bg` leaves: the job runs, without the terminal."""
        os.tcsetpgrp(self.master, os.getpgid(self.keeper))

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.keeper, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.keeper, 0)
        for fd in (self.master, self._reports_fd):
            with contextlib.suppress(OSError):
                os.close(fd)


def _keep_what_is_on_its_way(slave: int) -> None:
    """A key that signals also discards output, a moment after the signal: by then it may be the
    signal handler's."""
    settings = termios.tcgetattr(slave)
    settings[3] |= termios.NOFLSH
    termios.tcsetattr(slave, termios.TCSANOW, settings)


def _keep(
    line: list[str | bytes],
    env: dict[str, str],
    cwd: Path,
    slave: int,
    reporter: int,
    stdout: int | None,
) -> None:
    libc.set_parent_death_signal(signal.SIGKILL)  # a test run that was killed leaves nobody
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(slave, os.getpid())
        for number in (signal.SIGTTOU, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for fd in (0, 1, 2):
            os.dup2(stdout if fd == 1 and stdout is not None else slave, fd)
        os.closerange(3, 256)
        os.chdir(cwd)
        os.execvpe(line[0], line, env)
    os.close(slave)  # the master reads its end when the job is gone
    os.write(reporter, b"%d\n" % job)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED | os.WCONTINUED)
        if os.WIFSTOPPED(status):
            os.write(reporter, b"stopped\n")
        elif os.WIFCONTINUED(status):
            os.write(reporter, b"continued\n")
        else:
            code = os.waitstatus_to_exitcode(status)
            os.write(reporter, b"ended %d\n" % (code if code >= 0 else 128 - code))
            break
    # Until the test closes the master: a session leader's end would hang up the terminal.
    signal.pause()


# Programs


def compile_c(folder: Path, name: str, source: str, *flags: str) -> str:
    program = folder / name
    text = folder / f"{name}.c"
    text.write_text(source)
    line = ["gcc", "-O1", "-Wall", "-o", str(program), str(text), *flags]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    program.chmod(0o755)
    return str(program)


def script(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


class Pipe:
    """Both ends are ours until they are let go."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self._open = {self.reading, self.writing}

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *exc: object) -> None:
        for fd in tuple(self._open):
            self._close(fd)

    def let_go(self) -> None:
        """Of the end to write to: somebody else has it now."""
        self._close(self.writing)

    def rest(self) -> bytes:
        return Reader(self.reading).rest()

    def _close(self, fd: int) -> None:
        self._open.remove(fd)
        os.close(fd)
