"""The processes of the tree, as far as they made themselves known: by an exec, a signal, and,
where births are told of, by a child of their own.

Each is held by a pidfd in an epoll set: its end is seen before its pid can be given away, so an
entry under a pid is that process, and the table shrinks as the tree does. Where descriptors run
out, an entry is checked by its start time instead, and its end goes unseen.

Whose child an unknown process is, its parent's pid says, unless that parent is one who adopts
orphans: the supervisor, a subreaper of the tree's own, the init of a pid namespace. Where births
are told of, whoever has a child is known, and it is known of each how many children it may have
that haven't been met. So an orphan's parent is among those who have ended; and since the orphans
are looked for whenever such a parent ends, among those whose end has just been seen. Nearly always
that is one. Of several, the deepest is taken: a process can look deeper than it is by dying along
with others, never less deep.
"""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Callable, Iterable

from sigwrap.kernel import process as kernel_process
from sigwrap.kernel import procfs
from sigwrap.kernel.process import exit_status_by_pidfd
from sigwrap.session.lineage import Process
from sigwrap.supervise.loop import Loop

_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_EDGE = select.EPOLLIN | select.EPOLLET
_ENDS_AT_ONCE = 4096
_LOOKED_AT = 256


class Processes:
    def __init__(
        self,
        loop: Loop,
        on_end: Callable[[Process, int | None], None],
        *,
        births_are_told: bool,
    ) -> None:
        """`on_end` gets a process that has ended and its wait(2) status, where it is known."""
        self._on_end = on_end
        self._births_are_told = births_are_told
        self._supervisor = os.getpid()
        self._by_pid: dict[int, Process] = {}
        self._unwatched: set[int] = set()
        self._reaped: dict[int, int] = {}
        self._ends = select.epoll()
        self._by_pidfd: dict[int, Process] = {}
        loop.watch(self._ends.fileno(), lambda _: self._see_ends())
        self.command: Process | None = None
        self._expecting: set[Process] = set()  # alive, with unseen births
        self._adopters: set[Process] = set()
        self._deepest_beside: Process | None = None  # of those who made children beside themselves
        self._deepest_parent: Process | None = None
        self._pid_namespaces = False

    def adopt_command(self, pid: int) -> Process:
        process = self._adopt(pid)
        if process is None:
            raise ProcessLookupError(pid)
        process.depth = 0
        process.parent = None
        self.command = process
        return process

    def of_thread(self, tid: int) -> Process | None:
        """None where it has ended, or isn't of this tree."""
        process = self.of_pid(tid)
        if process is None:
            pid = procfs.tgid(tid)
            if pid is not None and pid != tid:
                process = self.of_pid(pid)
        return process

    def of_pid(self, pid: int) -> Process | None:
        process = self._by_pid.get(pid)
        if process is None:
            return self._adopt(pid)
        if pid in self._unwatched:
            found = procfs.stat(pid)
            if found is None or found.start_time != process.start_time:
                self._forget(process)
                return self._adopt(pid)
        return process

    def target(self, number: int) -> Process | None:
        """Like of_thread, but what has ended and waits to be reaped is still whose child it was."""
        process = self.of_thread(number)
        return process if process is not None else self._place(number, ended_too=True)

    def reaped(self, pid: int, status: int) -> None:
        """Our own child's status, kept for when its pidfd speaks."""
        if pid in self._by_pid and pid not in self._unwatched:
            self._reaped[pid] = status

    # Births

    def note_birth(self, parent: Process, *, beside_it: bool) -> None:
        """It is about to have a child; `beside_it`: one that will be its own parent's."""
        parent.unseen_births += 1
        self._expecting.add(parent)
        self._deepest_parent = _deeper(self._deepest_parent, parent)
        if beside_it:
            self._deepest_beside = _deeper(self._deepest_beside, parent)
            if parent.parent is not None:
                self.note_adopter(parent.parent)

    def note_adopter(self, process: Process) -> None:
        """From now on, who has it for a parent may be another's child."""
        process.adopts_orphans = True
        self._adopters.add(process)

    def note_pid_namespaces(self) -> None:
        self._pid_namespaces = True

    # Getting to know one

    def _adopt(self, pid: int, left_by: Process | None = None) -> Process | None:
        """`left_by`: whose child it is taken to be if it is an orphan."""
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as refusal:
            if refusal.errno not in _NO_DESCRIPTORS:
                return None  # it has ended, or is a thread that leads no process
            pidfd = -1
        process = self._place(pid, left_by=left_by)  # after the pidfd, so it is who that holds
        if process is None or pid in self._by_pid:
            if pidfd >= 0:
                os.close(pidfd)
            return process
        if pidfd >= 0:
            self._by_pidfd[pidfd] = process
            self._ends.register(pidfd, _EDGE)
        else:
            self._unwatched.add(pid)
        self._by_pid[pid] = process
        self._count_as_seen(process)
        if self._pid_namespaces and procfs.numbers(pid, "NSpid")[-1:] == [1]:
            self.note_adopter(process)
        return process

    def _count_as_seen(self, process: Process) -> None:
        parent = process.parent
        if parent is None or process.ppid != parent.pid or parent.adopts_orphans:
            return  # by its parent's pid alone, it could be somebody else's
        if parent.unseen_births > 0:
            parent.unseen_births -= 1
            if not parent.unseen_births:
                self._expecting.discard(parent)

    def _place(
        self, pid: int, *, ended_too: bool = False, left_by: Process | None = None
    ) -> Process | None:
        found = procfs.stat(pid)
        while found is not None and (ended_too or not found.has_ended) and found.ppid > 1:
            parent = None
            if found.ppid == self._supervisor or (parent := self.of_pid(found.ppid)) is not None:
                if not self._births_are_told or not (parent is None or parent.adopts_orphans):
                    return _process(found, parent)
                return _process(found, left_by) if left_by else self._orphan(found, parent)
            again = procfs.stat(pid)  # did its parent just end, or is it none of ours?
            if again is not None and again.ppid == found.ppid:
                return None
            found = again
        return None

    # Orphans

    def _orphan(self, found: procfs.Stat, adopter: Process | None) -> Process:
        if self.command is None:
            return _process(found, None)  # this is COMMAND
        self._see_ends(looking_for_orphans=True)
        known = self._by_pid.get(found.pid)
        if known is not None:
            return known
        return _process(found, _deeper(adopter, self._deepest_parent))

    def _see_ends(self, *, looking_for_orphans: bool = False) -> None:
        ended = self._ended_by_now()
        if self._births_are_told and (
            looking_for_orphans or any(process.unseen_births for process in ended.values())
        ):
            strays = self._strays()
            if strays:
                # A stray's parent had ended before the stray could be found.
                ended |= self._ended_by_now()
                self._adopt_strays(strays, ended.values())
        for pidfd, process in ended.items():
            self._ended(pidfd, process)

    def _ended_by_now(self) -> dict[int, Process]:
        """By pidfd, which can speak twice: at the end, and when it is reaped."""
        found: dict[int, Process] = {}
        while events := self._ends.poll(0, _ENDS_AT_ONCE):
            found |= {pidfd: self._by_pidfd[pidfd] for pidfd, _ in events}
        return found

    def _strays(self) -> list[tuple[int, Process | None]]:
        """Unknown children of those who adopt; None is the supervisor."""
        adopters: list[tuple[int, Process | None]] = [(self._supervisor, None)]
        adopters += [(each.pid, each) for each in self._adopters]
        return [
            (child, adopter)
            for pid, adopter in adopters
            for child in kernel_process.children(pid)
            if child not in self._by_pid
        ]

    def _adopt_strays(
        self, strays: list[tuple[int, Process | None]], ended: Iterable[Process]
    ) -> None:
        deepest = self._deepest_beside
        unwatched = [self._by_pid[pid] for pid in self._unwatched]
        for process in (*ended, *unwatched, *self._maybe_dying()):
            if process.unseen_births:
                deepest = _deeper(deepest, process)
        for pid, adopter in strays:
            left_by = _deeper(deepest, adopter) or self._deepest_parent
            if left_by is not None:
                self._adopt(pid, left_by)

    def _maybe_dying(self) -> Iterable[Process]:
        """A process whose leader ended before its other threads loses its children a moment before
        its pidfd speaks."""
        if len(self._expecting) > _LOOKED_AT:
            return self._expecting
        return [
            process
            for process in self._expecting
            if (found := procfs.stat(process.pid)) is None or found.state in "ZX"
        ]

    # Ends

    def _ended(self, pidfd: int, process: Process) -> None:
        status = self._reaped.pop(process.pid, None)
        if status is None:
            status = exit_status_by_pidfd(pidfd)
        if status is None:
            found = procfs.stat(process.pid)
            if found is not None and found.start_time == process.start_time:
                status = found.exit_status
        self._ends.unregister(pidfd)
        del self._by_pidfd[pidfd]
        os.close(pidfd)
        self._forget(process)
        self._on_end(process, status)

    def _forget(self, process: Process) -> None:
        if self._by_pid.get(process.pid) is process:
            del self._by_pid[process.pid]
        self._unwatched.discard(process.pid)
        self._expecting.discard(process)
        self._adopters.discard(process)
        process.has_ended = True
        process.forget_dead_ancestors()


def _process(found: procfs.Stat, parent: Process | None) -> Process:
    return Process(
        pid=found.pid,
        start_time=found.start_time,
        parent=parent,
        ppid=found.ppid,
        depth=parent.depth + 1 if parent is not None else 1,
        comm=found.comm,
    )


def _deeper(one: Process | None, other: Process | None) -> Process | None:
    if one is None or (other is not None and other.depth > one.depth):
        return other
    return one
