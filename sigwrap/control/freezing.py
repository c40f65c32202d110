"""Freeze the whole process tree and let no exec start: from SIGSTOP to SIGCONT or the end."""

from __future__ import annotations

import os
import time
from itertools import chain

from sigwrap.bare import TYPE_CHECKING, signal
from sigwrap.kernel import process as linux_process
from sigwrap.kernel import procfs, signals
from sigwrap.kernel.procfs import Stat
from sigwrap.text import printable

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_FREEZES_WITHIN_S = 0.05  # then the loop runs, and reaps, before the next attempt
_PAUSE_S = 0.01
_FREEZES_AGAIN_EVERY_S = 0.5
_LOGGED_AGAIN_AFTER_S = 10.0
_REPORTED_AT = 4  # times in a row

_STOPS_WITHIN_S = 0.002  # for a level of the tree: a mediated call stops after its answer
_NEWEST = 64  # children, which come last: most of the others wait to be reaped
_LOOKS_EVERY_S = 0.0002
_LOOKS_AT_CHILDREN_FOR_S = 0.03
_QUIET_LOOKS = 2  # a single look may come between two processes of a relay
_SETTLES_WITHIN_S = 1.0  # after that, do not wait for the rest


class Freezing:
    def __init__(self, session: Session) -> None:
        self._turns = session.exec_turns
        self._recorder = session.recorder
        self._loop = session.loop
        self._job_control = session.job_control
        self._command_pid = session.command_pid
        self._frozen = Frozen()
        self.is_frozen = False
        self._is_being_frozen = False
        self.went_on = self.released = 0  # processes and execs at the last thaw
        self.ends = False  # the tree must run in order to end
        self._log_again_s = 0.0
        self._again_in_a_row = 0

    @property
    def stands_still(self) -> bool:
        return self.is_frozen and not self._is_being_frozen

    def count(self) -> int:
        return self._frozen.count()

    def freeze(self) -> None:
        if self.ends:
            return  # a frozen tree could not end within its grace period
        self._turns.close()
        self.is_frozen = True
        self._job_control.forget_stop_key()
        self._freeze_rest()

    def freeze_continued(self) -> None:
        """Stop processes again that SIGCONT from outside the session continued."""
        if not self.stands_still:
            return
        again, now_s = self._frozen.stop_again(), time.monotonic()
        if again and now_s >= self._log_again_s:
            self._log_again_s = now_s + _LOGGED_AGAIN_AFTER_S
            payload = {"processes": len(again), "held": self._turns.held, "again": True}
            self._recorder.record("tree_frozen", self._command_pid, payload)
        # Another process may keep continuing one: only its end helps.
        self._again_in_a_row = self._again_in_a_row + 1 if again else 0
        if self._again_in_a_row == _REPORTED_AT:
            shown = printable(f"process {again[0].pid} ({again[0].comm})")
            self._recorder.tell(
                f"{shown} does not stay stopped: another process keeps continuing it"
            )

    def thaw(self) -> None:
        if self.is_frozen:
            self.is_frozen = False
            self.went_on, self.released = self._frozen.go_on(), self._turns.held
            payload = {"processes": self.went_on, "released": self.released}
            self._recorder.record("tree_thawed", self._command_pid, payload)
        self._turns.open()

    def let_run(self) -> None:
        """Thaw the tree so that it can end."""
        self.ends = True
        self.thaw()

    def cancel_end(self, *, is_stopped: bool) -> None:
        """Undo let_run: the run goes on."""
        self.ends = False
        if is_stopped:
            self.freeze()

    def _freeze_rest(self) -> None:
        if not self.is_frozen:
            return
        self._is_being_frozen = not self._frozen.stop_all(within_s=_FREEZES_WITHIN_S)
        if self._is_being_frozen:
            self._loop.call_in(_PAUSE_S, self._freeze_rest)
            return
        payload = {"processes": self._frozen.count(), "held": self._turns.held}
        self._recorder.record("tree_frozen", self._command_pid, payload)
        self._loop.call_in(_FREEZES_AGAIN_EVERY_S, self._freeze_regularly)

    def _freeze_regularly(self) -> None:
        if self.is_frozen:
            self.freeze_continued()
            self._job_control.stop_front_at_key()
            self._loop.call_in(_FREEZES_AGAIN_EVERY_S, self._freeze_regularly)


class Frozen:
    """Stops all processes below this one by SIGSTOP, and continues them later."""

    def __init__(self) -> None:
        self._stopped: dict[int, int] = {}  # pid -> start time, in the order of the signals
        self._ended: set[tuple[int, int]] = set()  # zombies: pid and start time
        self._stopping: list[Stat] = []  # signalled, and maybe still running
        self._settles_until_s = 0.0
        self._us = os.getpid()

    def stop_all(self, *, within_s: float) -> bool:
        """Stop them. Returns False if the last round still found a new process: call it again."""
        now_s = time.monotonic()
        until_s = now_s + within_s
        if not self._stopped:
            self._settles_until_s = now_s + _SETTLES_WITHIN_S
        self._ended.clear()
        while self._round(until_s)[1]:
            if time.monotonic() > until_s:
                return False
        return True

    def stop_again(self) -> list[Stat]:
        """Stop and return processes that a signal or a timer continued, or that were missed."""
        return self._round(time.monotonic() + _FREEZES_WITHIN_S, also_continued=True)[0]

    def go_on(self) -> int:
        """Continue the processes that this object stopped, and return how many there are."""
        count = 0
        for pid, start_time in reversed(self._stopped.items()):
            found = procfs.stat(pid)
            if found is not None and found.start_time == start_time and not found.has_ended:
                count += linux_process.send(pid, signal.SIGCONT)
        self._stopped.clear()
        self._stopping.clear()
        return count

    def count(self) -> int:
        """Count all processes below: each is stopped, or waits for a mediated call."""
        return len(linux_process.descendants(self._us))

    def _round(self, until_s: float, *, also_continued: bool = False) -> tuple[list[Stat], bool]:
        """Stop a level of the tree after the other: a shell must not see its child stop.

        Return the processes that it stopped, and whether there may be more.
        """
        stopped, members = [], {self._us}
        for level in linux_process.levels_below(self._us):
            fresh = [
                found
                for found in level
                if self._stops(found) or (also_continued and _goes_on(found) and self._stop(found))
            ]
            _await_stops(fresh, until_s)
            stopped += fresh
            members |= {found.ppid for found in level if self._has_just_ended(found)}
            members |= {found.pid for found in level if not found.has_ended}
        # Reading all of /proc may have taken longer than the time allowed.
        until_s = max(until_s, time.monotonic() + _LOOKS_AT_CHILDREN_FOR_S)
        return stopped, self._stop_those_without_end(members, until_s) or bool(stopped)

    def _stop_those_without_end(self, members: set[int], until_s: float) -> bool:
        """Stop a relay, and return whether there was one.

        In a relay, each process forks one and exits, so a round may see none. But each becomes the
        child of a subreaper, which may be any process of the tree, as soon as its parent exits.
        """
        seen, quiet = False, 0
        latest: set[int] = set()
        while quiet < _QUIET_LOOKS and time.monotonic() < until_s:
            is_new, latest = self._stop_children(members | latest)
            # One that has not stopped yet may still fork.
            self._stopping = [each for each in self._stopping if _still_goes_on(each)]
            quiet = 0 if is_new or self._stopping else quiet + 1
            seen |= is_new
        return seen or (bool(self._stopping) and time.monotonic() < self._settles_until_s)

    def _stop_children(self, members: set[int]) -> tuple[bool, set[int]]:
        """Return whether a new process is or was among them, and those that may have children."""
        is_new, latest = False, set()
        newest = [linux_process.children(each)[-_NEWEST:] for each in members]
        for pid in chain.from_iterable(newest):
            child = procfs.stat(pid)
            if child is None or self._has_just_ended(child):
                is_new = True
            elif _is_about_to_end(child) or self._stops(child):
                is_new = True
                latest.add(pid)
        return is_new, latest

    def _has_just_ended(self, found: Stat) -> bool:
        """Return whether it has ended since the last look: it may have left a child."""
        one = (found.pid, found.start_time)
        if not found.has_ended or one in self._ended:
            return False
        self._ended.add(one)
        return True

    def _stops(self, found: Stat) -> bool:
        """Stop a process that was not stopped before: also if it only stops for its tracer, or if
        another thread of a stopped process runs."""
        was_stopped = found.state == "T" and (found.threads <= 1 or not _goes_on(found))
        is_known = found.has_ended or self._stopped.get(found.pid) == found.start_time
        return not was_stopped and not is_known and self._stop(found)

    def _stop(self, found: Stat) -> bool:
        if not linux_process.send(found.pid, signal.SIGSTOP):
            return False
        self._stopped[found.pid] = found.start_time
        self._stopping.append(found)
        return True


def _await_stops(stopping: list[Stat], until_s: float) -> None:
    until_s = min(until_s, time.monotonic() + _STOPS_WITHIN_S)
    while stopping and time.monotonic() < until_s:
        time.sleep(_LOOKS_EVERY_S)
        stopping = [each for each in stopping if _still_goes_on(each)]


def _is_about_to_end(found: Stat) -> bool:
    """Return whether it can no longer stop. A process that it forked is still its child."""
    return found.is_exiting and found.threads <= 1 and not found.has_ended


def _still_goes_on(found: Stat) -> bool:
    now = procfs.stat(found.pid)
    return now is not None and now.start_time == found.start_time and _goes_on(now)


def _goes_on(found: Stat) -> bool:
    """Return whether any thread runs. The first may have exited, or stop for a tracer."""
    if found.threads <= 1:
        return _runs(found)
    threads = map(procfs.stat, procfs.threads(found.pid))
    return any(each is not None and _runs(each) for each in threads)


def _runs(thread: Stat) -> bool:
    """Return whether it runs. In an uninterruptible wait, a pending SIGSTOP will stop it."""
    if thread.state == "D":
        return not signals.is_in(thread.pid, signal.SIGSTOP, b"SigPnd", b"ShdPnd")
    return thread.state in "RS"
