"""The remote kill switch: a URL that is polled every 10 s, and may kill the run.

A poll is missed if no valid answer comes. A missed poll is an event and kills nothing: an attacker
that cuts the network must not end every run. With --killswitch-fail-closed, three misses in a row
kill the run. A kill cannot be taken back.

A thread polls, since a name server, a file or the server decides how long that takes. The loop's
own clock decides which polls are missed: a thread that never comes back is a row of missed polls.
The thread starts before the command does. It has a descriptor table of its own, so the next poll
gets its socket however many processes the command makes the supervisor hold. It imports nothing any
more, since the command may be able to change that.
"""

from __future__ import annotations

import _thread
import json
import os
import re
import signal
import stat
import time
from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import unquote_to_bytes

from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.errors import SessionError, UsageError
from sigwrap.events import Payload
from sigwrap.https import ALLOWED, WITHIN_S, Client, NoAnswer, read_address, whole
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import have_own_table, open_plain_file
from sigwrap.session.run_end import SwitchedOff
from sigwrap.text import printable, shortened

if TYPE_CHECKING:
    from sigwrap.session.session import Session

EVERY_S = 10.0
_MISSES_UNTIL_KILL = 3
_RECORDED_EVERY = 30  # misses in a row, after the first
_GIVE_UP_AFTER_S = WITHIN_S + 0.5  # the thread mostly gives up first, and knows why
_LONGEST_BODY = 64 * 1024
_LONGEST_REASON = 200


class Killed(NamedTuple):
    reason: str  # a printable line


Answer = Killed | NoAnswer | None  # None: the run goes on


class RemoteSwitch:
    def __init__(
        self, url: str, where: str, *, environment: Mapping[str, str], fail_closed: bool
    ) -> None:
        """`where`: the option or variable that had the URL. Raises SigwrapError if no poll of it
        could ever succeed."""
        self._file = ""
        if url.lower().startswith("file://"):
            url = re.split("[?#]", url)[0]
            self._url, self._file = printable(url), _path_in(url, where)
            self._get: Callable[[], bytes] = partial(_read, self._file)
        else:
            address = read_address(url, where, f"{ALLOWED}, or file:///PATH")
            self._url = str(address)
            self._get = Client(address, environment, _LONGEST_BODY).get
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
        if self._file and os.geteuid() and any(map(_is_writable, _ways_to(self._file))):
            return [f"the kill switch {self._url}: the command can write to it too"]
        return []

    @property
    def is_held_up(self) -> bool:
        """Whether the thread may be in a read of a file that nothing can interrupt."""
        return bool(self._file) and not self._is_thread_idle

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
        self._run = session.ending.run
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
            self._take(NoAnswer("the poll does not return"))

    def _take(self, answer: Answer) -> None:
        if self.has_killed:
            return
        if isinstance(answer, NoAnswer):
            self._miss(answer.message)
            return
        if self._missed:
            self._record("killswitch_reached", {"missed": self._missed})
        self._missed, self._was_reached = 0, True
        if isinstance(answer, Killed):
            self._kill(answer.reason)

    def _miss(self, reason: str) -> None:
        self._missed += 1
        kills = self._fail_closed and self._missed >= _MISSES_UNTIL_KILL
        if self._missed == 1 or kills or self._missed % _RECORDED_EVERY == 0:
            self._record("killswitch_missed", {"reason": reason, "count": self._missed})
        if self._missed == 1 and not self._was_reached:  # the URL may be wrong
            self._recorder.tell(
                f"cannot reach the remote kill switch {self._url}: {reason} (retrying every "
                f"{EVERY_S:.0f} s)"
            )
        if kills:
            self._kill(f"no answer from {self._url} for {self._missed} polls (fail closed)")

    def _record(self, event: str, payload: Payload) -> None:
        self._recorder.record(event, os.getpid(), {"url": self._url, **payload})

    def _kill(self, reason: str) -> None:
        self.has_killed = True
        self._run.switch_off(SwitchedOff(reason, self._url, time.time_ns()))

    def _poll_whenever_wanted(self) -> None:
        """The thread. An error's text may hold a part of the URL, so only its type is shown."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        have_own_table((self._wanted_fd, self._answered_fd, *procfs.held()))
        while True:
            os.eventfd_read(self._wanted_fd)
            try:
                self._answer = read_answer(self._get())
            except NoAnswer as missed:
                self._answer = NoAnswer(missed.message)  # without what its traceback keeps open
            except Exception as bug:
                self._answer = NoAnswer(f"internal error: {type(bug).__name__}")
            os.eventfd_write(self._answered_fd, 1)


def _path_in(url: str, where: str) -> str:
    """Return the path of a file:// URL. Raises UsageError."""
    host, _, rest = url[len("file://") :].partition("/")
    path = os.fsdecode(unquote_to_bytes(os.fsencode(f"/{rest}")))
    if host not in ("", "localhost") or path == "/" or "\0" in path:
        raise UsageError(f"{where}: a file needs its absolute path", "file:///PATH")
    return path


def _ways_to(path: str) -> list[str]:
    """Return the file, and each folder and link on the path."""
    found = [path]
    for way in found:  # it grows
        folder = os.path.dirname(way)
        ways = [folder]
        if os.path.islink(way):
            ways.append(os.path.join(folder, os.readlink(way)))
        found += [each for each in ways if each not in found]
    return found


def _is_writable(path: str) -> bool:
    """Whether this user can write to it, make it writable, or replace what is in it."""
    try:
        if os.path.islink(path) and os.lstat(path).st_uid == os.geteuid():  # as in /tmp
            return os.access(os.path.dirname(path), os.W_OK)
        found = os.stat(path)
    except OSError:  # it does not exist
        return os.access(os.path.dirname(path), os.W_OK)
    is_shared = stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)
    return found.st_uid == os.geteuid() or (os.access(path, os.W_OK) and not is_shared)


def _read(path: str) -> bytes:
    """Raises NoAnswer."""
    try:
        with open_plain_file(path) as file:
            return whole(file, _LONGEST_BODY)
    except OSError as failure:
        raise NoAnswer(failure.strerror or type(failure).__name__) from failure


def read_answer(body: bytes) -> Killed | None:
    """Parse the body. Raises NoAnswer. Only a JSON object can keep the run alive: an error page
    cannot."""
    try:
        found = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise NoAnswer("the answer is not JSON") from None
    if not isinstance(found, dict):
        raise NoAnswer("the answer is not a JSON object")
    killed, reason = found.get("killed", False), found.get("reason")
    if killed is False:
        return None
    if killed is not True:
        raise NoAnswer("in the answer, killed is neither true nor false")
    words = reason.split() if isinstance(reason, str) else ()
    return Killed(shortened(printable(" ".join(words)), _LONGEST_REASON) or "no reason given")
