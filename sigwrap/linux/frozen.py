"""Stop all processes below this one by SIGSTOP, and continue them later.

No process can block or handle SIGSTOP. A process that forks as the signal arrives has either forked
before, and a later round finds the child, or restarts the call when it continues. So there are
rounds until one finds no new process.

Parents stop before their children and continue after them: a shell that sees a child stop takes it
for a stopped job. A process that was stopped before stays stopped.

Rejected: a cgroup's freezer. Processes do not notice it, but few users may have one.
"""

from __future__ import annotations

import os
import time
from itertools import chain

from sigwrap.bare import signal
from sigwrap.linux import process as linux_process
from sigwrap.linux import procfs
from sigwrap.linux.procfs import Stat

_STOPS_WITHIN_S = 0.002  # for a level of the tree: a mediated call stops after its answer
_STOPS_ALL_WITHIN_S = 0.05
_NEWEST = 64  # children, which come last: most of the others wait to be reaped
_LOOKS_EVERY_S = 0.0002
_LOOKS_AT_CHILDREN_FOR_S = 0.03
_QUIET_LOOKS = 2  # a single look may come between two processes of a relay
_SETTLES_WITHIN_S = 1.0  # after that, do not wait for the rest


class Frozen:
    def __init__(self) -> None:
        self._stopped: dict[int, int] = {}  # pid -> start time, in the order of the signals
        self._ended: set[tuple[int, int]] = set()  # zombies: pid and start time
        self._stopping: list[Stat] = []  # signalled, and maybe still running
        self._settles_until_s = 0.0
        self._us = os.getpid()

    def stop_all(self, *, within_s: float) -> bool:
        """Stop them. Returns False if the last round still found a new process: call it again."""
        now_s = time.monotonic()
        until_s, stops_until_s = now_s + within_s, now_s + _STOPS_ALL_WITHIN_S
        if not self._stopped:
            self._settles_until_s = now_s + _SETTLES_WITHIN_S
        self._ended.clear()
        while self._round(stops_until_s, until_s):
            if time.monotonic() > until_s:
                return False
        return True

    def stop_again(self) -> list[Stat]:
        """Stop and return processes that a signal or a timer continued, or that were missed."""
        running, members = [], {self._us}
        for level in linux_process.levels_below(self._us):
            members |= {found.pid for found in level if not found.has_ended}
            running += [
                found
                for found in level
                if (_goes_on(found) and self._stop(found)) or self._stops(found)
            ]
        now_s = time.monotonic()
        self._stop_those_without_end(members, now_s + _STOPS_ALL_WITHIN_S)
        _await_stops(running, now_s + _STOPS_ALL_WITHIN_S)
        return running

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

    def _round(self, stops_until_s: float, until_s: float) -> bool:
        """Return whether a new process was found."""
        is_new, members = False, {self._us}
        for level in linux_process.levels_below(self._us):
            fresh = [found for found in level if self._stops(found)]
            if fresh:
                is_new = True
                _await_stops(fresh, stops_until_s)
            members |= {found.ppid for found in level if self._has_just_ended(found)}
            members |= {found.pid for found in level if not found.has_ended}
        # Reading all of /proc may have taken longer than the time allowed.
        until_s = max(until_s, time.monotonic() + _LOOKS_AT_CHILDREN_FOR_S)
        return self._stop_those_without_end(members, until_s) or is_new

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

    def _stops(self, found: Stat) -> bool:
        return self._is_new(found) and self._stop(found)

    def _has_just_ended(self, found: Stat) -> bool:
        """Return whether it has ended since the last look: it may have left a child."""
        one = (found.pid, found.start_time)
        if not found.has_ended or one in self._ended:
            return False
        self._ended.add(one)
        return True

    def _is_new(self, found: Stat) -> bool:
        """Return whether it must be stopped: also if it only stops for its tracer, or if another
        thread of a stopped process runs."""
        was_stopped = found.state == "T" and (found.threads <= 1 or not _goes_on(found))
        stands = was_stopped or found.has_ended
        return not stands and self._stopped.get(found.pid) != found.start_time

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
        stopping = [each for each in stopping if _runs(each.pid)]


def _is_about_to_end(found: Stat) -> bool:
    """Return whether it can no longer stop. A process that it forked is still its child."""
    return found.is_exiting and found.threads <= 1 and not found.has_ended


def _goes_on(found: Stat) -> bool:
    """Return whether any thread runs. The first may have exited, or stop for a tracer."""
    if found.threads <= 1:
        return _will_run(found)
    return any(map(_runs, procfs.threads(found.pid)))


def _still_goes_on(found: Stat) -> bool:
    now = procfs.stat(found.pid)
    return now is not None and now.start_time == found.start_time and _goes_on(now)


def _runs(tid: int) -> bool:
    now = procfs.stat(tid)
    return now is not None and _will_run(now)


def _will_run(thread: Stat) -> bool:
    """Return whether it runs. In an uninterruptible wait, a pending SIGSTOP will stop it."""
    is_held_up = thread.state == "D" and not procfs.has_pending(thread.pid, signal.SIGSTOP)
    return thread.state in "RS" or is_held_up
