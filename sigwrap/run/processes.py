"""The processes of the tree, as far as they made themselves known by an exec or a signal.

One that comes up after its parent has ended is known by its image for whose child it is. (To be
told of each fork by the filter would be exact, but it breaks programs: a notification that has not
been received yet ends when a signal comes, and a shell without SA_RESTART for SIGCHLD gets EINTR
from fork. Half of all loops of 300 dash pipelines failed that way.)

Each is held by a pidfd in the loop's epoll set: its end is seen before its pid can be given away,
so an entry under a pid is that process, and the table shrinks as the tree does. Where descriptors
run short (some are left to whoever needs one for a moment), an entry is checked by its start time
instead, and its end goes unseen.
"""

from __future__ import annotations

import errno
import os
import resource

from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux import procfs
from sigwrap.linux.execs.repeated import SeenProcess
from sigwrap.linux.file_state import Place
from sigwrap.linux.process import exit_status_by_pidfd, exit_status_of_child
from sigwrap.mediate.lineage import Image, Images, Process

if TYPE_CHECKING:
    from sigwrap.run.session import Session

_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_LEFT_TO_OTHERS = 128


class Processes:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._loop = session.loop
        self._supervisor = os.getpid()
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.first_left_to_others = limit - min(_LEFT_TO_OTHERS, limit // 3)
        self.by_pid: dict[int, Process] = {}
        self._unwatched: set[int] = set()
        self._reaped: dict[int, int] = {}
        self._images = Images()
        self._unseen: set[Process] = set()  # whose last exec nobody looked at
        self.command: Process | None = None

    def adopt_command(self, pid: int) -> Process:
        process = self._adopt(pid)
        if process is None:
            raise ProcessLookupError(pid)
        process.depth = 0
        process.comm = "sigwrap"  # until its exec it is a fork of the supervisor, and has its name
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

    def has(self, pid: int) -> bool:
        return pid in self.by_pid

    def holds(self, pid: int) -> bool:
        """It is known, and nobody else has its number: its end would have been seen."""
        return pid in self.by_pid and pid not in self._unwatched

    def of_pid(self, pid: int, *, image: Image = ()) -> Process | None:
        """`image`: what it had, should it be about to end and have none any more."""
        process = self.by_pid.get(pid)
        if process is None:
            return self._adopt(pid, image)
        if pid in self._unwatched:
            found = procfs.stat(pid)
            if found is None or found.start_time != process.start_time:
                self._forget(process)
                return self._adopt(pid, image)
        return process

    def known(self, pid: int, start_time: int) -> Process | None:
        """Only if it has made itself known."""
        process = self.by_pid.get(pid)
        return process if process is not None and process.start_time == start_time else None

    def target(self, number: int) -> Process | None:
        """Like of_thread, but what has ended and waits to be reaped is still whose child it was."""
        process = self.of_thread(number)
        return process if process is not None else self._place(number, ended_too=True)

    def reaped(self, pid: int, status: int) -> None:
        """Our own child's status, kept for when its pidfd speaks."""
        process = self.by_pid.get(pid)
        if process is None:
            return
        if pid not in self._unwatched:
            self._reaped[pid] = status
        elif process is self.command:  # its id could be nobody else's up to now
            self._forget(process)
            self._session.process_ended(process, status)

    @property
    def are_all_told_of(self) -> bool:
        """Of each its end is, and its image is known."""
        return not self._unwatched and not self._unseen

    def came_up(self, found: SeenProcess, parent: Process | None) -> Process:
        """One that the extension has seen, from when it was forked. Its exec comes next."""
        process = Process(
            pid=found.pid,
            start_time=found.start_time,
            parent=parent,
            ppid=found.ppid,
            depth=found.depth,
            comm=found.comm.decode("utf-8", "surrogateescape"),
        )
        self._images.note(process, found.forked)
        if parent is not None:
            process.family = parent.family
        if found.has_ended:
            return process
        if found.pidfd < 0:
            self._unwatched.add(found.pid)
        else:
            self._loop.watches_end(found.pidfd, lambda _: self._ended(found.pidfd, process))
        self.by_pid[found.pid] = process
        if parent is not None:
            parent.known_children += 1
        return process

    def has_run(self, process: Process, program: Place, image: Image) -> None:
        """Its exec has succeeded, and it may have ended since."""
        process.runs(program)
        self._images.loaded(process, image)

    def __len__(self) -> int:
        return len(self.by_pid)

    def loaded(self, process: Process, program: Place | None) -> None:
        """Its exec has succeeded, and it stands before its first instruction. `program`: what was
        loaded; None where that could not be compared."""
        process.runs(program)
        image = procfs.image(process.pid)
        if image is not None:
            self._images.loaded(process, image)

    def loads_unseen(self, process: Process) -> None:
        """Its exec goes on, and nobody will look at what it loads."""
        process.runs(None)
        self._images.loads_unseen(process)
        self._unseen.add(process)

    def _adopt(self, pid: int, image: Image = ()) -> Process | None:
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as refusal:
            if refusal.errno not in _NO_DESCRIPTORS:
                return None  # it has ended, or is a thread that leads no process
            pidfd = -1
        if pidfd >= self.first_left_to_others:
            os.close(pidfd)
            pidfd = -1
        # After the pidfd, so this is the process that it holds.
        process = self._place(pid, image=image)
        if process is None:
            if pidfd >= 0:
                os.close(pidfd)
            return None
        if pidfd < 0 or not self._watch(pidfd, process):
            self._unwatched.add(pid)
        self.by_pid[pid] = process
        if process.parent is not None:
            process.parent.known_children += 1
        self._images.note(process, process.image)
        return process

    def _watch(self, pidfd: int, process: Process) -> bool:
        try:
            self._loop.watch_end(pidfd, lambda _: self._ended(pidfd, process))
        except OSError:
            os.close(pidfd)
            return False
        return True

    def _place(self, pid: int, *, image: Image = (), ended_too: bool = False) -> Process | None:
        found = procfs.stat(pid)
        while found is not None and (ended_too or not found.has_ended) and found.ppid > 1:
            orphan = found.ppid == self._supervisor
            # Neither it nor its parent was seen before, so neither has execed since the fork.
            image = found.image or image
            parent = None if orphan else self._parent(found.ppid, image)
            if orphan or parent is not None:
                return self._process(found, parent, image)
            again = procfs.stat(pid)  # did its parent just end, or is it none of ours?
            if again is not None and again.ppid == found.ppid:
                return None
            found = again
        return None

    def _parent(self, pid: int, image: Image) -> Process | None:
        """Ancestors that nobody has seen are adopted from the top down. They can be any number, and
        each needs its own parent first: from the bottom up, Python's stack would end before them.
        """
        unseen: list[tuple[int, Image]] = []
        while pid not in self.by_pid and pid != self._supervisor:
            found = procfs.stat(pid)
            if found is None:
                break
            if found.ppid <= 1:
                return None
            unseen.append((pid, image))
            pid, image = found.ppid, found.image or image
        if not unseen:
            return self.of_pid(pid, image=image)
        parent = None
        for pid, image in reversed(unseen):
            parent = self.of_pid(pid, image=image)
        return parent

    def _process(self, found: procfs.Stat, parent: Process | None, image: Image) -> Process:
        above = by_kernel = parent
        is_about_to_end = found.is_exiting and not image
        if self.command is not None and not found.has_ended and not is_about_to_end:
            if not self._images.knows(image):
                self._look_at_unseen(parent)
            above = self._images.parent_by_image(image, parent)
            if image or parent is None:
                parent = above
        process = Process(
            pid=found.pid,
            start_time=found.start_time,
            parent=parent,
            ppid=found.ppid,
            depth=above.depth + 1 if above is not None else 1,
            comm=found.comm,
        )
        process.image = image
        # Not by an orphan's image: that can be made to look like another's.
        if by_kernel is not None and by_kernel is above and image and image == by_kernel.image:
            process.family = by_kernel.family
        return process

    def _look_at_unseen(self, parent: Process | None) -> None:
        """What the execs that were not verified have loaded; the parent's may just be over."""
        for process in self._unseen if parent is None else self._unseen | {parent}:
            image = procfs.image(process.pid)
            if image and image != process.image:
                self._images.loaded(process, image)
        self._unseen.clear()  # once is enough: an image may never become readable

    def _ended(self, pidfd: int, process: Process) -> None:
        status = self._reaped.pop(process.pid, None)
        if status is None:
            status = exit_status_by_pidfd(pidfd)
        if status is None:
            found = procfs.stat(process.pid)
            if found is not None and found.start_time == process.start_time:
                status = found.exit_status
                if not status and found.ppid == self._supervisor:  # or it may not be read
                    status = exit_status_of_child(pidfd) or 0
            else:  # it was reaped since the first look
                status = exit_status_by_pidfd(pidfd)
        self._loop.unwatch_end(pidfd)
        os.close(pidfd)
        self._forget(process)
        self._session.process_ended(process, status)

    def _forget(self, process: Process) -> None:
        if self.by_pid.get(process.pid) is process:
            del self.by_pid[process.pid]
            if process.parent is not None:
                process.parent.known_children -= 1
        self._unwatched.discard(process.pid)
        self._unseen.discard(process)
        process.ended()
