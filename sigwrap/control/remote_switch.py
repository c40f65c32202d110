"""The remote kill switch: a URL that is polled every 10 s, and may kill the run.

A poll is missed if no valid answer comes. A missed poll is an event and kills nothing: an attacker
that cuts the network must not end every run. With --killswitch-fail-closed, three misses in a row
kill the run. A kill cannot be taken back.

A thread polls, since a name server, a file or the server decides how long that takes. The loop's
own clock decides which polls are missed: a thread that never comes back is a row of missed polls.
The thread starts before the command does. It has a descriptor table of its own, so the next poll
gets its socket however many processes the command makes the supervisor hold.
"""

from __future__ import annotations

import _thread
import os
import signal
import stat
import time
from collections.abc import Iterator, Mapping

from sigwrap.bare import TYPE_CHECKING
from sigwrap.control.remote_poll import (
    WITHIN_S,
    Alive,
    Answer,
    File,
    Killed,
    Missed,
    poll_of,
    read_address,
)
from sigwrap.errors import SessionError
from sigwrap.events import Payload
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import have_own_table
from sigwrap.session.run_end import SwitchedOff

if TYPE_CHECKING:
    from sigwrap.session.session import Session

EVERY_S = 10.0
_MISSES_UNTIL_KILL = 3
_RECORDED_EVERY = 30  # misses in a row, after the first
_GIVE_UP_AFTER_S = WITHIN_S + 0.5  # the thread mostly gives up first, and knows why
_MOST_PARTS = 1000  # of a path, with those of the links on it


class RemoteSwitch:
    def __init__(
        self, url: str, where: str, *, environment: Mapping[bytes, bytes], fail_closed: bool
    ) -> None:
        """`where`: the option or variable that had the URL. Raises SigwrapError if no poll of it
        could ever succeed."""
        self._address = read_address(url, where)
        self._poll = poll_of(self._address, environment)
        self._fail_closed = fail_closed
        self._missed = 0  # in a row
        self._was_reached = False
        self.has_killed = False
        self._is_awaited = False  # the loop still waits for the answer of this period
        self._is_thread_idle = True
        self._answer: Answer  # the thread's last one
        self._wanted_fd = self._answered_fd = -1

    @property
    def gaps(self) -> list[str]:
        """Return what the log lists as missing. Root can write every file, and knows it."""
        if not isinstance(self._address, File) or os.geteuid() == 0:
            return []
        if any(map(_is_writable, _ways_to(self._address.path))):
            return [f"the kill switch {self._address.shown}: the command can write to it too"]
        return []

    @property
    def is_held_up(self) -> bool:
        """Whether the thread may be in a read of a file that nothing can interrupt."""
        return isinstance(self._address, File) and not self._is_thread_idle

    def start_thread(self) -> None:
        """Raises SessionError."""
        self._wanted_fd = os.eventfd(0, os.EFD_CLOEXEC)
        self._answered_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            _thread.start_new_thread(self._poll_whenever_wanted, ())
        except RuntimeError as failure:
            raise SessionError(
                f"cannot poll the remote kill switch: {failure}", "check ulimit -u and -v"
            ) from failure

    def begin(self, session: Session) -> None:
        self._loop = session.loop
        self._recorder = session.recorder
        self._ending = session.ending
        self._loop.watch(self._answered_fd, self._on_answered)
        self._start_period()

    def _start_period(self) -> None:
        self._is_awaited = True
        if self._is_thread_idle:
            self._is_thread_idle = False
            os.eventfd_write(self._wanted_fd, 1)
        self._loop.call_in(_GIVE_UP_AFTER_S, self._give_up)
        self._loop.call_in(EVERY_S, self._start_period)

    def _on_answered(self, _happened: int) -> None:
        try:
            os.eventfd_read(self._answered_fd)
        except BlockingIOError:
            return  # a turn of the loop within this one took the answer
        self._is_thread_idle = True
        if self._is_awaited or isinstance(self._answer, Killed):  # a kill is never too late
            self._is_awaited = False
            self._take(self._answer)

    def _give_up(self) -> None:
        if self._is_awaited:
            self._is_awaited = False
            self._take(Missed("the poll does not return"))

    def _take(self, answer: Answer) -> None:
        if self.has_killed:
            return
        match answer:
            case Killed(reason=reason):
                self._reached()
                self._kill(reason)
            case Alive():
                self._reached()
            case Missed(reason=reason):
                self._miss(reason)

    def _reached(self) -> None:
        missed, self._missed = self._missed, 0
        self._was_reached = True
        if missed:
            self._record("killswitch_reached", {"missed": missed})

    def _miss(self, reason: str) -> None:
        self._missed += 1
        kills = self._fail_closed and self._missed >= _MISSES_UNTIL_KILL
        if self._missed == 1 or kills or self._missed % _RECORDED_EVERY == 0:
            self._record("killswitch_missed", {"reason": reason, "count": self._missed})
        url = self._address.shown
        if self._missed == 1 and not self._was_reached:  # the URL may be wrong
            self._recorder.tell(
                f"cannot reach the remote kill switch {url}: {reason} (retrying every "
                f"{EVERY_S:.0f} s)"
            )
        if kills:
            self._kill(f"no answer from {url} for {self._missed} polls (fail closed)")

    def _record(self, event: str, payload: Payload) -> None:
        self._recorder.record(event, os.getpid(), {"url": self._address.shown, **payload})

    def _kill(self, reason: str) -> None:
        self.has_killed = True
        self._ending.on(SwitchedOff(reason, self._address.shown, time.time_ns()))

    def _poll_whenever_wanted(self) -> None:
        """The thread. An error's text may hold a part of the URL, so only its type is shown."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        have_own_table((self._wanted_fd, self._answered_fd, *procfs.held()))
        while True:
            os.eventfd_read(self._wanted_fd)
            try:
                self._answer = self._poll()
            except Exception as bug:
                self._answer = Missed(f"internal error: {type(bug).__name__}")
            os.eventfd_write(self._answered_fd, 1)


def _ways_to(path: bytes) -> Iterator[bytes]:
    """Yield each folder and link on the path, and the file."""
    here, parts = b"/", path.split(b"/")[::-1]
    for _ in range(_MOST_PARTS):
        yield here
        if not parts:
            return
        at = os.path.normpath(os.path.join(here, parts.pop()))
        if os.path.islink(at):
            parts += os.readlink(at).split(b"/")[::-1]
            here = b"/" if os.readlink(at).startswith(b"/") else os.path.dirname(at)
        else:
            here = at


def _is_writable(path: bytes) -> bool:
    """Whether this user can write to it, make it writable, or replace what is in it."""
    try:
        found = os.stat(path)
    except OSError:  # it does not exist
        return os.access(os.path.dirname(path), os.W_OK)
    is_shared = stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)
    return found.st_uid == os.geteuid() or (os.access(path, os.W_OK) and not is_shared)
