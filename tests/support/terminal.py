"""A pseudo-terminal, and a parent that keeps a job on it as a shell does."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import struct
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from sigwrap.kernel import libc
from tests.support.waiting import PATIENCE_S, Reader

ANSWERS = rb'Allow\? Type "y (\w+)" \(once\)(?:, "a (\w+)" \(this session\))? or "n": '


class Terminal:
    """A pseudo-terminal with one job in its foreground, under a parent that does what a shell
    does: a process group for the job, the terminal for the group, and waiting."""

    def __init__(
        self,
        line: Sequence[str | bytes],
        env: dict[str, str],
        cwd: Path,
        size: tuple[int, int] | None = None,
    ) -> None:
        self._few_descriptors = hold_descriptor_count(fcntl.LOCK_SH)
        self.master, slave = os.openpty()
        if size:
            self.resize(*size)
        _keep_output_at_keys(slave)
        reports, reporter = os.pipe()
        self.keeper = os.fork()
        if self.keeper == 0:
            try:
                _keep(line, env, cwd, slave, reporter)
            finally:
                os._exit(99)
        os.close(slave)
        os.close(reporter)
        self._reports = Reader(reports)
        self._reports_fd = reports
        self.output = Reader(self.master)
        self.pid = int(self._reports.line())
        self.once = self.always = ""  # of the question read last, where it offers them

    def press(self, key: str) -> None:
        os.write(self.master, bytes([ord(key.upper()) - 64]))

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def approve(self) -> None:
        """The question that was read last."""
        self.type(f"y {self.once}\n")

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def await_stop(self) -> None:
        self._reports.until(rb"stopped\n")

    def continue_job(self) -> None:
        """As by `fg`: a shell does it, who is the job's parent."""
        os.kill(self.keeper, signal.SIGUSR1)
        self._reports.until(rb"told to go on\n")

    def await_status(self, within_s: float = PATIENCE_S) -> int:
        """As a shell shows it."""
        return int(self._reports.until(rb"ended \d+\n", within_s).split()[1])

    def await_stopped_job(self, name: str) -> None:
        """As the bash on it says, whose prompt is there: it continues what it knows to be stopped.
        To end at that prompt."""
        said = b""
        while b"Stopped" not in said:
            self.type("jobs\n")
            said = self.output.until(rb"\[1\]\+  (Stopped|Running)[^\n]*" + name.encode())
            self.output.until(rb"PROMPT> ")

    def bring_to_foreground(self, name: str) -> None:
        """The job that is stopped, at the prompt of the bash on it."""
        self.type("fg\n")
        self.output.until(name.encode() + rb"\r\n")

    def foreground(self) -> int:
        return os.tcgetpgrp(self.master)

    def read_question(self) -> bytes:
        """As a person: not before it is there, no faster than one can read, and a broken line as
        the one that it is."""
        said = self.output.through(ANSWERS)
        self.once, self.always = (code.decode() for code in re.findall(ANSWERS, said)[-1])
        time.sleep(0.35)  # an answer that comes faster is none, so there is no event to wait for
        return said.replace(b"\r\n    | ", b"")

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.keeper, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.keeper, 0)
        for fd in (self.master, self._reports_fd, self._few_descriptors):
            with contextlib.suppress(OSError):
                os.close(fd)


def hold_descriptor_count(kind: int) -> int:
    """Lock out the other kind of test until the descriptor returned is closed: sigwrap asks on no
    terminal if it can't look at all descriptors within a second, and a test opens 600,000."""
    lock = os.open(__file__, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(lock, kind)
    return lock


def _keep_output_at_keys(slave: int) -> None:
    """A key that signals also discards output, a moment after the signal: by then it may be the
    signal handler's."""
    settings = termios.tcgetattr(slave)
    settings[3] |= termios.NOFLSH
    termios.tcsetattr(slave, termios.TCSANOW, settings)


def _keep(
    line: Sequence[str | bytes], env: dict[str, str], cwd: Path, slave: int, reporter: int
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
            os.dup2(slave, fd)
        os.closerange(3, 256)
        os.chdir(cwd)
        os.execvpe(line[0], list(line), env)
    os.close(slave)  # the master reads its end when the job is gone

    def continue_job(*_: object) -> None:
        os.killpg(job, signal.SIGCONT)
        os.write(reporter, b"told to go on\n")

    signal.signal(signal.SIGUSR1, continue_job)
    os.write(reporter, b"%d\n" % job)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.write(reporter, b"stopped\n")
        else:
            code = os.waitstatus_to_exitcode(status)
            os.write(reporter, b"ended %d\n" % (code if code >= 0 else 128 - code))
            break
    # Until the test closes the master: a session leader's end would hang up the terminal.
    signal.pause()
