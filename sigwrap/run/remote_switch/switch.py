"""The loop's side of the remote kill switch. A thread asks, since a name server or the other end
decides how long that takes; whether a poll was missed is decided here, by the loop's own clock, so
a thread that never comes back is a row of missed polls like any other.

The thread is made before COMMAND may run and has a table of descriptors of its own: however many
processes COMMAND makes us hold, the next poll gets its socket.
"""

from __future__ import annotations

import _thread
import os
import signal
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping

from sigwrap.errors import SessionError
from sigwrap.escape import printable
from sigwrap.linux import proc_files
from sigwrap.linux.descriptors import have_own_table
from sigwrap.mediate.remote_switch import (
    Answer,
    Kill,
    Killed,
    Missed,
    RecordMissed,
    RecordReached,
    RemoteSwitchState,
    TellNeverReached,
)
from sigwrap.run.loop import Loop
from sigwrap.run.recorder import Recorder
from sigwrap.run.remote_switch.address import File, read_address
from sigwrap.run.remote_switch.poll import WITHIN_S, poll_of

EVERY_S = 10.0
_GIVEN_UP_AFTER_S = WITHIN_S + 0.5  # the thread itself gives up first, and knows why
_MOST_PARTS = 1000  # of a path, with those of the links on it

OnKilled = Callable[[str, str], None]


class RemoteSwitch:
    def __init__(
        self, url: str, where: str, *, environment: Mapping[bytes, bytes], fail_closed: bool
    ) -> None:
        """`where`: the option or variable that had the URL. Raises SigwrapError where nothing can
        ever be asked there."""
        self._address = read_address(url, where)
        self._poll = poll_of(self._address, environment)
        self._state = RemoteSwitchState(self._address.shown, fail_closed=fail_closed)
        self.has_killed = False
        self._polls = 0
        self._awaited = 0  # the poll that is to be answered; 0: none
        self._asked = 0  # the one that the thread is at
        self._is_thread_idle = True
        self._answers: deque[tuple[int, Answer]] = deque()
        self._wanted_fd = self._answered_fd = -1

    @property
    def gaps(self) -> list[str]:
        """What a session's log says is missing. Root can write everything, and knows."""
        if not isinstance(self._address, File) or os.geteuid() == 0:
            return []
        path = self._address.path
        if any(map(_is_ours, _ways_to(path))):
            return [f"the kill switch {self._address.shown}: the command can write to it too"]
        return []

    @property
    def is_held_up(self) -> bool:
        """The thread may be in a read of a file that nothing can break off."""
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

    def start(self, loop: Loop, recorder: Recorder, on_killed: OnKilled) -> None:
        """`on_killed` gets the reason and who says so, once, in the loop."""
        self._loop = loop
        self._recorder = recorder
        self._on_killed = on_killed
        loop.watch(self._answered_fd, self._on_answered)
        self._want()

    def _want(self) -> None:
        self._polls += 1
        number = self._awaited = self._polls
        if self._is_thread_idle:
            self._is_thread_idle = False
            self._asked = number
            os.eventfd_write(self._wanted_fd, 1)
        now_s = time.monotonic()
        self._loop.call_at(now_s + _GIVEN_UP_AFTER_S, lambda: self._give_up(number))
        self._loop.call_at(now_s + EVERY_S, self._want)

    def _on_answered(self, _happened: int) -> None:
        try:
            os.eventfd_read(self._answered_fd)
        except BlockingIOError:
            return  # a turn of the loop within this one has seen to it
        while self._answers:
            number, answer = self._answers.popleft()
            self._is_thread_idle = True
            is_awaited = number == self._awaited
            if is_awaited:
                self._awaited = 0
            if is_awaited or isinstance(answer, Killed):  # that is never too late
                self._take(answer)

    def _give_up(self, number: int) -> None:
        if number == self._awaited:
            self._awaited = 0
            self._take(Missed("the poll does not return"))

    def _take(self, answer: Answer) -> None:
        url = self._address.shown
        for step in self._state.on(answer):
            match step:
                case RecordMissed(reason=reason, in_a_row=count):
                    payload = {"url": url, "reason": reason, "count": count}
                    self._recorder.record("killswitch_missed", os.getpid(), payload)
                case RecordReached(missed=missed):
                    payload = {"url": url, "missed": missed}
                    self._recorder.record("killswitch_reached", os.getpid(), payload)
                case TellNeverReached(reason=reason):
                    self._recorder.tell(
                        f"cannot reach the remote kill switch {url}: {reason} (retrying "
                        f"every {EVERY_S:.0f} s)"
                    )
                case Kill(reason=reason):
                    self.has_killed = True
                    self._on_killed(reason, url)

    # The thread

    def _poll_whenever_wanted(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        have_own_table((self._wanted_fd, self._answered_fd, *proc_files.held()))
        while True:
            os.eventfd_read(self._wanted_fd)
            number = self._asked
            try:
                answer = self._poll()
            except Exception as bug:
                answer = Missed(printable(f"internal error: {type(bug).__name__}: {bug}"))
            self._answers.append((number, answer))
            os.eventfd_write(self._answered_fd, 1)


def _ways_to(path: bytes) -> Iterator[bytes]:
    """Each folder and link that is gone through, and what there is in the end."""
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


def _is_ours(path: bytes) -> bool:
    """To write, or to be made writable, or to put something else in the place of what is in it."""
    try:
        found = os.stat(path)
    except OSError:  # it isn't there
        return os.access(os.path.dirname(path), os.W_OK)
    is_shared = stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)
    return found.st_uid == os.geteuid() or (os.access(path, os.W_OK) and not is_shared)
