"""Asks on the controlling terminal, which the command uses too.

Both may read the terminal, and the first reader gets a line. So while a request is up, the
supervisor is the terminal's foreground, in a process group of its own. The kernel stops all other
readers (SIGTTIN), as any background job, and the supervisor continues them after the answer. Where
that would disturb the command, one line names `sigwrap approve ID` instead:

- A process waits for input already. One that is blocked in a read would get our line. One that
  polls would wake up for it, be stopped when it reads, and find nothing once it goes on.
- The terminal is not in line mode (an editor, a full-screen agent, a shell's own prompt), holds
  input that was typed for another program, or its foreground isn't ours.
- A process was stopped because it wanted to read: the request makes way, and comes again later.

The terminal's keys (Ctrl+C, Ctrl+\\, Ctrl+Z) and its hangup then reach the supervisor alone: it
makes way and passes them on. Input from before the request, and a line within a moment of it, is no
answer: the user cannot have read the request.

The command can paint a request like ours, but cannot answer one: the supervisor does not ask where
the session could type (approve/typists.py), and an approval needs a code that the session cannot
read (TypedAnswers in approve/wording.py).
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import time
from collections.abc import Sequence

from sigwrap.approve.requests import OpenRequest, Verdict
from sigwrap.approve.wording import (
    MOST_WRONG,
    TypedAnswers,
    is_without_code,
    lines_of,
    visible_text,
)
from sigwrap.bare import TYPE_CHECKING, NamedTuple, signal
from sigwrap.front.terminal import PromptModes, local_modes
from sigwrap.kernel import procfs, terminals
from sigwrap.kernel.process import send
from sigwrap.kernel.procfs import Stat
from sigwrap.kernel.signals import SignalFd
from sigwrap.kernel.terminals import waits_for_input

if TYPE_CHECKING:
    from sigwrap.approve.approvals import Approvals
    from sigwrap.session.session import Session

_LOOK_AGAIN_S = 0.25
_MADE_WAY_S = 2.0
_UNREAD_S = 0.3  # too short to read a request and answer it
_STRAGGLERS_S = 0.2
_WRITTEN_WITHIN_S = 0.1
_KEYS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP)


class _Taken(NamedTuple):
    """The terminal's state before the request, to restore."""

    foreground: int
    own_group: int
    modes: PromptModes
    size: bytes
    stopped_before: frozenset[int]


class TerminalPrompt:
    def __init__(self, session: Session, approvals: Approvals) -> None:
        self._session = session
        self._approvals = approvals
        self._hints = approvals.hints
        self._loop = session.loop
        self.not_here = ""  # why a request is named here, but not answered
        self._fd = terminals.controlling
        self._keys: SignalFd | None = None
        self._queue: dict[str, OpenRequest] = {}
        self._named: set[str] = set()
        self._shown = ""
        self._shown_at_s = 0.0
        self._answers = TypedAnswers(or_always=False)
        self._wrong = 0  # lines since the last yes
        self._taken: _Taken | None = None
        self._not_before_s = 0.0
        self._stragglers_until_s = 0.0
        self._looking = False

    @property
    def is_there(self) -> bool:
        return self._fd >= 0

    @property
    def can_show(self) -> bool:
        """Whether it is in line mode: we would paint over a program's screen."""
        try:
            return self.is_there and bool(local_modes(self._fd) & termios.ICANON)
        except OSError:
            return False

    @property
    def holds_terminal(self) -> bool:
        return self._taken is not None or time.monotonic() < self._stragglers_until_s

    def show(self, opened: OpenRequest) -> None:
        """Show the request when its turn comes and the terminal is free."""
        self._queue[opened.id] = opened
        if self._taken is None and not self._looking:
            self._looking = True  # not at once: the caller's own line comes first
            self._loop.call_at(time.monotonic(), self._look)

    def ask_elsewhere(self, why: str) -> None:
        """Answer nothing here from now on, and name the open requests again."""
        if self.not_here:
            return
        self.not_here = why
        self._named.clear()
        if self._taken is not None:
            self._make_way()

    def ask_here_again(self, why: str) -> None:
        """Take back an `ask_elsewhere` whose reason is gone."""
        if self.not_here == why:
            self.not_here = ""

    def has_shown(self, approval_id: str) -> bool:
        return approval_id in self._named

    def withdraw(self, approval_id: str) -> None:
        if self._queue.pop(approval_id, None) is None:
            return
        self._named.discard(approval_id)
        if self._shown == approval_id:
            self._shown = ""
            self._say(f"\r\nsigwrap: request {approval_id} was settled elsewhere\r\n")
            self._next()

    def close(self) -> None:
        self._queue.clear()
        self._give_back()
        if self._keys is not None:
            self._keys.close()
        self._fd = -1

    # Looking for a moment to ask

    def _look(self) -> None:
        self._looking = False
        if not self._queue or self._fd < 0:
            self._give_back()
            return
        started_s = time.monotonic()
        try:
            self._ask_or_make_way()
        except OSError:  # hung up
            self._lose_terminal()
            return
        self._looking = True
        now_s = time.monotonic()  # a look reads all of /proc: spend a twentieth of our time on it
        self._loop.call_at(now_s + max(_LOOK_AGAIN_S, 20 * (now_s - started_s)), self._look)

    def _ask_or_make_way(self) -> None:
        if self.not_here:
            self._approvals.typists.search_again_if_due()
        if self.not_here:
            self._name_the_command()
            return
        processes = [found for pid in procfs.all_pids() if (found := procfs.stat(pid)) is not None]
        if self._taken is not None:
            if (
                os.tcgetpgrp(self._fd) != os.getpgrp()
                or not self._taken.modes.are_set
                or any(self._is_kept_waiting(found, self._taken) for found in processes)
                or _a_process_waits_for_input(processes)
            ):
                self._make_way()
            return
        if time.monotonic() >= self._not_before_s and self._is_free(processes):
            self._take(processes)
            self._next()
        else:
            self._name_the_command()

    def _is_free(self, processes: list[Stat]) -> bool:
        flags = local_modes(self._fd)
        if not (flags & termios.ICANON and flags & termios.ECHO) or self._unread_bytes():
            return False
        foreground = os.tcgetpgrp(self._fd)
        in_foreground = (found.pid for found in processes if found.pgrp == foreground)
        if foreground != os.getpgrp() and not any(map(_is_below_us, in_foreground)):
            return False
        return not _a_process_waits_for_input(processes)

    def _is_kept_waiting(self, found: Stat, taken: _Taken) -> bool:
        return (
            found.pgrp == taken.foreground
            and found.state == "T"
            and found.pid not in taken.stopped_before
        )

    def _unread_bytes(self) -> int:
        count = bytearray(4)  # an int
        fcntl.ioctl(self._fd, termios.FIONREAD, count, True)
        return int.from_bytes(count, "little")

    def _name_the_command(self) -> None:
        if not self.can_show:
            return
        for approval_id, opened in self._queue.items():
            if approval_id not in self._named:
                how = self._how_to_answer(approval_id)
                if not self._say(f"\r\n{self._text_of(opened)}\r\n  {how}\r\n"):
                    return
                self._named.add(approval_id)

    def _how_to_answer(self, approval_id: str) -> str:
        approve, deny = (self._hints.command(do, approval_id) for do in ("approve", "deny"))
        commands = f"{approve} or {deny}" if self._approvals.has_control else ""
        if self.not_here:
            elsewhere = f"\r\n  answer from a login outside: {commands}" if commands else ""
            return f"cannot be answered here: {self.not_here}{elsewhere}"
        if commands:
            return f"from another terminal: {commands}"
        return "sigwrap asks here again once no other program reads this terminal"

    def _text_of(self, opened: OpenRequest) -> str:
        size = self._size()
        columns = struct.unpack("HHHH", size)[1] if size else 0
        return "\r\n".join(lines_of(opened, self._hints, time.monotonic(), columns))

    # Asking

    def _next(self) -> None:
        if self._taken is None:
            return
        opened = next(iter(self._queue.values()), None)
        if opened is None:
            self._give_back()
            return
        self._shown = opened.id
        self._named.add(self._shown)
        others = f" ({len(self._queue) - 1} more requests wait)" if len(self._queue) > 1 else ""
        self._put(f"\r\n{self._text_of(opened)}{others}\r\n")

    def _put(self, text: str) -> None:
        if self._forget_what_was_typed():
            text = f"\r\nsigwrap: ignored what you typed before the request was shown\r\n{text}"
        self._shown_at_s = time.monotonic()
        self._answers = TypedAnswers(or_always=bool(self._queue[self._shown].request.key))
        if not self._say(f"{visible_text(os.environ)}{text}  {self._answers.shown}"):
            self._make_way()

    def _forget_what_was_typed(self) -> bool:
        """Drop the input from before the request, also the start of a line: a later Enter for
        another program would make an answer of it."""
        had_lines = self._unread_bytes() > 0
        termios.tcflush(self._fd, termios.TCIFLUSH)
        return had_lines

    def _on_input(self, _happened: int) -> None:
        try:
            line = os.read(self._fd, 4096)
        except BlockingIOError:
            return
        except OSError:
            self._on_unreadable()
            return
        if self._taken is None or not self._taken.modes.are_set:
            self._on_unreadable()
            return
        verdict = self._answers.verdict(line)
        if verdict is None:
            self._on_wrong(line)
        elif time.monotonic() - self._shown_at_s < _UNREAD_S:
            self._put("sigwrap: you typed that before the request was shown; type it again\r\n")
        else:
            if verdict is not Verdict.NO:
                self._wrong = 0
            approval_id, self._shown = self._shown, ""
            self._queue.pop(approval_id, None)
            if not self._queue:
                self._give_back()  # first: the caller may want the terminal at once
            self._approvals.on_terminal_answer(approval_id, verdict)
            if not self._shown:
                self._next()

    def _on_wrong(self, line: bytes) -> None:
        self._wrong += 1
        if self._wrong == MOST_WRONG:
            self.ask_elsewhere(f"{MOST_WRONG} wrong answers in a row")
        elif is_without_code(line):
            self._put("Type y and the four letters shown\r\n")
        else:
            self._put("sigwrap: unknown answer\r\n")

    def _on_unreadable(self) -> None:
        """Make way: another process took the foreground, as a shell does when its job ends, or the
        terminal hung up."""
        try:
            os.tcgetpgrp(self._fd)
        except OSError:
            self._lose_terminal()
        else:
            self._make_way()

    def _on_key(self, _happened: int) -> None:
        pressed = self._pressed()
        if self._taken is None:
            return
        if signal.SIGTSTP not in pressed:  # an interrupt denies what is open
            self._shown = ""
            self._say("\r\n")
        self._make_way(pressed)

    def _pressed(self) -> list[int]:
        return [] if self._keys is None else [info.number for info in self._keys.read()]

    def _say(self, text: str) -> bool:
        """Return whether all of it was written. Wait for a moment only: Ctrl+S may have stopped
        the output."""
        data = text.encode("utf-8", "replace")
        return terminals.write_all(self._fd, data, within_s=_WRITTEN_WITHIN_S)

    # The terminal's foreground

    def _take(self, processes: list[Stat]) -> None:
        if self._keys is None:
            self._keys = SignalFd(_KEYS)
        self._keys.read()  # drop earlier keys: all of the foreground group got those
        foreground, own_group, size = os.tcgetpgrp(self._fd), os.getpgrp(), self._size()
        os.setpgid(0, 0)
        try:
            self._loop.watch(self._fd, self._on_input)
            self._loop.watch(self._keys.fd, self._on_key)
            os.tcsetpgrp(self._fd, os.getpid())  # SIGTTOU is blocked here
            modes = PromptModes(self._fd)
        except OSError:
            self._loop.unwatch(self._fd)
            self._loop.unwatch(self._keys.fd)
            os.setpgid(0, own_group)
            raise
        stopped_before = frozenset(found.pid for found in processes if found.state == "T")
        self._taken = _Taken(foreground, own_group, modes, size, stopped_before)

    def _make_way(self, pressed: Sequence[int] = ()) -> None:
        if self._shown in self._queue:
            approve = self._hints.command("approve", self._shown)
            now = f" (or: {approve})" if self._approvals.has_control else ""
            self._say(f"\r\nsigwrap: the request is put aside and comes back later{now}\r\n")
        self._shown = ""
        self._not_before_s = time.monotonic() + _MADE_WAY_S
        self._give_back(pressed)

    def _give_back(self, pressed: Sequence[int] = ()) -> None:
        """Restore the terminal, and pass on the keys that were pressed until now."""
        taken, self._taken = self._taken, None
        if taken is None:
            return
        self._loop.unwatch(self._fd)
        if self._keys is not None:
            self._loop.unwatch(self._keys.fd)
        try:
            taken.modes.restore()
            if os.tcgetpgrp(self._fd) == os.getpgrp():
                os.tcsetpgrp(self._fd, taken.foreground)
        except OSError:
            pass  # it hung up, or that group has ended
        pressed = [*pressed, *self._pressed()]  # while we are not in that group
        try:
            os.setpgid(0, taken.own_group)
        except OSError:
            pass
        if self._size() != taken.size:
            _signal_group(taken.foreground, signal.SIGWINCH)
        is_stopped = signal.SIGTSTP in pressed
        if not is_stopped:  # else `fg` continues the stopped readers with their job
            self._continue(taken)
            # Once more, for a process that was about to be stopped while we gave it back.
            self._stragglers_until_s = time.monotonic() + _STRAGGLERS_S
            self._loop.call_at(self._stragglers_until_s - 0.05, lambda: self._continue(taken))
        for number in pressed:
            _signal_group(taken.foreground, number)
        if is_stopped and taken.foreground == os.getpgrp():
            self._session.job_control.stop_front()

    def _continue(self, taken: _Taken) -> None:
        if self._taken is not None:
            return
        for pid in procfs.all_pids():
            found = procfs.stat(pid)
            if found is not None and self._is_kept_waiting(found, taken):
                send(pid, signal.SIGCONT)

    def _lose_terminal(self) -> None:
        taken = self._taken
        self._shown = ""
        self._pressed()  # drop a hangup: it comes below
        self._give_back()
        if taken is not None:  # the kernel sent the hangup to us instead
            _signal_group(taken.foreground, signal.SIGHUP)
        self._queue.clear()
        self._fd = -1

    def _size(self) -> bytes:
        try:
            return fcntl.ioctl(self._fd, termios.TIOCGWINSZ, bytes(struct.calcsize("HHHH")))
        except OSError:
            return b""


def ring() -> None:
    """Ring the terminal's bell, which leaves the screen as it is."""
    if terminals.controlling >= 0:
        terminals.write_all(terminals.controlling, b"\a", within_s=_WRITTEN_WITHIN_S)


def _is_below_us(pid: int) -> bool:
    return os.getpid() in procfs.ancestors(pid)


def _a_process_waits_for_input(processes: list[Stat]) -> bool:
    session, us = os.getsid(0), os.getpid()
    return any(
        found.session == session and found.pid != us and waits_for_input(found.pid)
        for found in processes
    )


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except OSError:
        pass
