"""Track the processes of the tree that have made an exec or sent a signal; and decide which process
may go on with its exec (ExecTurns).

If a process appears after its parent has ended, its image tells which process forked it. (The
filter could report each fork, but that breaks programs: a signal cancels a notification that has
not been received yet, and a shell without SA_RESTART for SIGCHLD gets EINTR from fork.)

An epoll set has a pidfd for each process. So sigwrap sees its end before the kernel reuses its pid,
and an entry under a pid is that process. If descriptors run short (some are reserved for short
use), sigwrap checks an entry by its start time instead, and does not see its end.
"""

from __future__ import annotations

import errno
import os
import resource
import select

from sigwrap.bare import TYPE_CHECKING, deque
from sigwrap.kernel import procfs
from sigwrap.kernel.file_state import Place
from sigwrap.kernel.process import exit_status_by_pidfd, exit_status_of_child
from sigwrap.session.effects import ExecTurn
from sigwrap.session.lineage import Image, Images, Process
from sigwrap.session.perform import PAUSED, Request

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_RESERVED = 128
_ENDS_AT_ONCE = 4096


class Processes:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._supervisor = os.getpid()
        self.ends = select.epoll()  # of pidfds; the extension looks at it as well
        session.loop.watch(self.ends.fileno(), self._take_ends)
        self._by_pidfd: dict[int, Process] = {}
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.first_left_to_others = limit - min(_RESERVED, limit // 3)
        self.by_pid: dict[int, Process] = {}
        self._reaped: dict[int, int] = {}
        self._images = Images()
        self._unseen: set[Process] = set()  # that made an exec which was not verified
        self.command: Process | None = None

    def adopt_command(self, pid: int) -> Process:
        process = self._adopt(pid)
        if process is None:
            raise ProcessLookupError(pid)
        process.depth = 0
        process.comm = "sigwrap"  # before its exec it is a fork of the supervisor, with its name
        self.command = process
        return process

    def of_thread(self, tid: int) -> Process | None:
        """Return the process; None if it has ended, or is not in this tree."""
        process = self.of_pid(tid)
        if process is None:
            pid = procfs.tgid(tid)
            if pid is not None and pid != tid:
                process = self.of_pid(pid)
        return process

    def has(self, pid: int) -> bool:
        return pid in self.by_pid

    def held(self, pid: int) -> Process | None:
        """Return the process if it is known, and sigwrap would see its end."""
        process = self.by_pid.get(pid)
        return process if process is not None and process.pidfd >= 0 else None

    def of_pid(self, pid: int, *, image: Image = ()) -> Process | None:
        """Return the process. `image` replaces its image if it is about to end and has none."""
        process = self.by_pid.get(pid)
        if process is None:
            return self._adopt(pid, image)
        if process.pidfd < 0:
            found = procfs.stat(pid)
            if found is None or found.start_time != process.start_time:
                self._forget(process)
                return self._adopt(pid, image)
        return process

    def known(self, pid: int, start_time: int) -> Process | None:
        """Return the process if the table has it with this start time."""
        process = self.by_pid.get(pid)
        return process if process is not None and process.start_time == start_time else None

    def target(self, number: int) -> Process | None:
        """Return the process like of_thread, but also if it has ended and is not reaped yet."""
        process = self.of_thread(number)
        return process if process is not None else self._place(number, ended_too=True)

    def reaped(self, pid: int, status: int) -> None:
        """Keep the status of the supervisor's own child until its pidfd is ready."""
        process = self.by_pid.get(pid)
        if process is None:
            return
        if process.pidfd >= 0:
            self._reaped[pid] = status
        elif process is self.command:  # the kernel has not reused its pid before now
            self._forget(process)
            self._session.process_ended(process, status)

    @property
    def are_all_told_of(self) -> bool:
        """Return whether every process has an end watch and a known image."""
        return len(self._by_pidfd) == len(self.by_pid) and not self._unseen

    def came_up(self, process: Process, image: Image, pidfd: int | None) -> None:
        """Add a process that the extension has seen, with its image since the fork. `pidfd`: -1 if
        the process could not be watched, None if it has ended."""
        self._images.note(process, image)
        parent = process.parent
        if parent is not None:
            process.family = parent.family
        if pidfd is None:
            return
        if pidfd >= 0:  # the extension has put it into `ends`
            process.pidfd = pidfd
            self._by_pidfd[pidfd] = process
        self.by_pid[process.pid] = process
        if parent is not None:
            parent.known_children += 1

    def __len__(self) -> int:
        return len(self.by_pid)

    def loaded(self, process: Process, program: Place | None, image: Image | None = None) -> None:
        """Note a successful exec, before the first instruction, or `image`, which the extension has
        read then. `program` is the loaded file, or None if it could not be compared."""
        process.runs(program)
        if image is None:
            image = procfs.image(process.pid)
        if image is not None:
            self._images.loaded(process, image)

    def loads_unseen(self, process: Process) -> None:
        """Note an exec that goes on without a check of the loaded file."""
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
        # After pidfd_open, so that both are about the same process.
        process = self._place(pid, image=image)
        if process is None:
            if pidfd >= 0:
                os.close(pidfd)
            return None
        if pidfd >= 0:
            self._watch(pidfd, process)
        self.by_pid[pid] = process
        if process.parent is not None:
            process.parent.known_children += 1
        self._images.note(process, process.image)
        return process

    def _watch(self, pidfd: int, process: Process) -> None:
        try:
            self.ends.register(pidfd, select.EPOLLIN | select.EPOLLET)
        except OSError:  # the user's watches are used up
            os.close(pidfd)
            return
        process.pidfd = pidfd
        self._by_pidfd[pidfd] = process

    def _place(self, pid: int, *, image: Image = (), ended_too: bool = False) -> Process | None:
        found = procfs.stat(pid)
        while found is not None and (ended_too or not found.has_ended) and found.ppid > 1:
            orphan = found.ppid == self._supervisor
            # Neither was seen before, so neither has made an exec since the fork.
            image = found.image or image
            parent = None if orphan else self._parent(found.ppid, image)
            if orphan or parent is not None:
                return self._process(found, parent, image)
            again = procfs.stat(pid)  # its parent has just ended, or it is not in the tree
            if again is not None and again.ppid == found.ppid:
                return None
            found = again
        return None

    def _parent(self, pid: int, image: Image) -> Process | None:
        """Adopt unknown ancestors from the top down. Each needs its parent first, and a recursion
        from the bottom up could exceed Python's stack."""
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
        # Only with a living parent: an orphan can imitate the image of another process.
        if by_kernel is not None and by_kernel is above and image and image == by_kernel.image:
            process.family = by_kernel.family
        return process

    def _look_at_unseen(self, parent: Process | None) -> None:
        """Read the images that unverified execs have loaded; the parent's exec may just be over."""
        for process in self._unseen if parent is None else self._unseen | {parent}:
            image = procfs.image(process.pid)
            if image and image != process.image:
                self._images.loaded(process, image)
        self._unseen.clear()  # only once: an image may never become readable

    def _take_ends(self, _happened: int) -> None:
        while ended := self.ends.poll(0, _ENDS_AT_ONCE):
            for pidfd, _ in ended:
                self.on_end(pidfd)

    def on_end(self, pidfd: int) -> None:
        """Handle the end of a process whose pidfd is ready."""
        process = self._by_pidfd.pop(pidfd, None)
        if process is None:
            return
        status = self._reaped.pop(process.pid, None)
        if status is None:
            status = exit_status_by_pidfd(pidfd)
        if status is None:
            found = procfs.stat(process.pid)
            if found is not None and found.start_time == process.start_time:
                status = found.exit_status
                if not status and found.ppid == self._supervisor:  # it may not be readable
                    status = exit_status_of_child(pidfd) or 0
            else:  # it has been reaped since the first look
                status = exit_status_by_pidfd(pidfd)
        self.ends.unregister(pidfd)
        os.close(pidfd)
        process.pidfd = -1
        self._forget(process)
        self._session.process_ended(process, status)

    def _forget(self, process: Process) -> None:
        if self.by_pid.get(process.pid) is process:
            del self.by_pid[process.pid]
            if process.parent is not None:
                process.parent.known_children -= 1
        self._unseen.discard(process)
        process.ended()


def refresh_comm(process: Process) -> None:
    """Read the name again after an exec."""
    if not process.comm_is_current:
        process.comm = procfs.comm(process.pid) or process.comm
        process.comm_is_current = True


class ExecTurns:
    """Decides which exec may go on: one for each process, and none while the session is frozen."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.is_closed = False  # the session is frozen
        self._held: deque[Request] = deque()
        self._busy: set[int] = set()  # pids of processes with an exec
        self._behind: dict[int, deque[tuple[Request, object]]] = {}  # by these pids; with a reply
        self._in_flight: set[object] = set()
        self.is_end_awaited = False  # an agent signal waits for those in flight

    def wait(self, request: Request, _effect: ExecTurn) -> object:
        """Wait for the request's turn. The reply to ExecTurn: PAUSED until then."""
        if self.is_closed:
            self._held.append(request)
        elif self.is_busy(request.process):
            self.wait_behind(request.process, request, None)
        else:
            return None
        request.holdings.free_tracer()  # the exec that goes first may need it
        return PAUSED

    def _let_go(self, request: Request, reply: object) -> None:
        """Resume a request, unless it must wait for something else now."""
        mediation = self._session.mediation
        assert mediation is not None, "the request came from it"
        if reply is not None or self.wait(request, ExecTurn()) is not PAUSED:
            mediation.performer.wake(request, reply)

    # Freezing

    @property
    def held(self) -> int:
        return len(self._held)

    def close(self) -> None:
        self.is_closed = True

    def open(self) -> None:
        self.is_closed = False
        # A released request may close it again.
        while self._held and not self.is_closed:
            self._let_go(self._held.popleft(), None)

    # Processes with an exec

    def is_busy(self, process: Process) -> bool:
        return process.pid in self._busy

    def wait_behind(self, process: Process, request: Request, reply: object) -> None:
        self._behind.setdefault(process.pid, deque()).append((request, reply))

    def take(self, process: Process) -> None:
        self._busy.add(process.pid)

    def give_back(self, process: Process) -> None:
        pid = process.pid
        self._busy.discard(pid)
        behind = self._behind.get(pid)
        while behind and pid not in self._busy:
            self._let_go(*behind.popleft())
        if not behind:
            self._behind.pop(pid, None)

    # Execs in flight

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def begun(self, exec_: object) -> None:
        self._in_flight.add(exec_)

    def ended(self, exec_: object) -> None:
        if exec_ in self._in_flight:
            self._in_flight.remove(exec_)
            if self.is_end_awaited and not self._in_flight:
                self._session.agent_signals.no_exec_in_flight()
