"""The parent of one child: passes signals on, reaps orphans, and ends all processes below it.

The front process of a run is one (front/process.py), and so is sigwrap-forward.
"""

from __future__ import annotations

import os
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from sigwrap import errors
from sigwrap.bare import signal
from sigwrap.front.interrupts import JOB_STOPS, BootloaderCopies
from sigwrap.kernel import libc, limits, procfs
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.descriptors import release_inherited, reserve_standard_streams
from sigwrap.kernel.libc import seconds_until
from sigwrap.kernel.signals import (
    SignalFd,
    SignalInfo,
    handles,
    ignored_signals,
    take_signals,
)
from sigwrap.session.run_end import LEFTOVERS_GRACE_S
from sigwrap.start import onefile, own_code
from sigwrap.start.command import Inherited, exec_command, find_program
from sigwrap.text import bounded, printable

_SWEEP_S = 1.0


class ParentOfOne(ABC):
    def __init__(self, signals: SignalFd, child: int, say: Callable[[str], None]) -> None:
        self._say = say
        self._signals = signals
        self._child = child
        self._child_status: int | None = None
        self._child_is_left_behind = False
        self._has_passed_on_stop = False  # since the command was continued last
        self._all_below = linux_process.Sweep(self._reaped)
        self._poll = select.epoll()  # poll(2) fails under a low limit of open files
        self._handlers: dict[int, Callable[[], None]] = {}
        self._watch(signals.fd, self._read_signals)
        self._bootloader_pid = bootloader_pid = onefile.bootloader_pid()
        self._bootloader_pidfd = -1
        if bootloader_pid:
            self._bootloader_pidfd = os.pidfd_open(bootloader_pid)
            self._watch(self._bootloader_pidfd, self._on_bootloaders_end)
        on_terminal = procfs.controlling_terminal(os.getpid()) is not None
        self._copies = BootloaderCopies(bootloader_pid, on_terminal=on_terminal)

    def _watch(self, fd: int, handler: Callable[[], None]) -> None:
        self._poll.register(fd, select.EPOLLIN)
        self._handlers[fd] = handler

    def run(self) -> int:
        try:
            code = self._exit_status(self._await_child())
        except Exception as bug:  # the tree ends in any case
            self._say(f"internal error: {type(bug).__name__}: {bug}; the command is killed")
            code = errors.REFUSED
        if not self._child_is_left_behind:
            self._clear_tree()
        for pid in self._all_below.unkillable:
            self._say(f"can't kill process {pid} ({procfs.comm(pid)}); it is left running")
        onefile.empty_unpacked(self._bootloader_pid)
        return code

    def _await_child(self) -> int:
        while self._child_status is None:
            deadline = self._deadline
            ready = self._poll.poll(None if deadline is None else seconds_until(deadline))
            # Signals last: the supervisor's messages decide what they mean.
            for fd, _ in sorted(ready, key=lambda event: event[0] == self._signals.fd):
                self._handlers[fd]()
            if deadline is not None and time.monotonic() >= deadline:
                self._on_deadline(time.monotonic())
        return self._child_status

    def _on_bootloaders_end(self) -> None:
        self._poll.unregister(self._bootloader_pidfd)
        self.kill_tree("the outer process of the binary died")

    def _read_signals(self) -> None:
        """Handle SIGCHLD last: a signal that came with it may have stopped the child, and handled
        after our own stop, it would stop the child again."""
        for info in sorted(self._signals.read(), key=lambda info: info.number == signal.SIGCHLD):
            if info.number == signal.SIGCHLD:
                self._reap()
            # No process can send SIGCHLD with such a code.
            is_of_a_child = info.number == signal.SIGCHLD and info.code > 0
            if not (info.is_our_own or is_of_a_child):
                self._on_forwardable(info)

    def _reap(self) -> bool:
        """Return False if no child is left."""
        while True:
            try:
                pid, child_status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if not os.WIFSTOPPED(child_status):
                self._reaped(pid, child_status)
            elif pid == self._child:
                self._on_child_stopped(os.WSTOPSIG(child_status))

    def _clear_tree(self) -> None:
        """Kill what is left below us."""
        while not self._sweep():
            continue

    def _left_behind(self, status: int) -> None:
        """Go on without the child: nothing is below it any more."""
        if self._child_status is None:
            self._child_status = status << 8
            self._child_is_left_behind = True

    def _sweep(self) -> bool:
        return self._all_below.run(timeout_s=_SWEEP_S)

    def _reaped(self, pid: int, child_status: int) -> None:
        if pid == self._child:
            self._child_status = child_status

    def _may_be_stopping_yet(self) -> bool:
        """Return at a SIGCONT whether a stop was passed on to the command since the last one."""
        has_passed_on, self._has_passed_on_stop = self._has_passed_on_stop, False
        return has_passed_on

    @property
    @abstractmethod
    def _deadline(self) -> float | None: ...

    @abstractmethod
    def _on_deadline(self, now: float) -> None: ...

    @abstractmethod
    def _on_forwardable(self, info: SignalInfo) -> None: ...

    @abstractmethod
    def _on_child_stopped(self, number: int) -> None: ...

    @abstractmethod
    def kill_tree(self, reason: str) -> None: ...

    @abstractmethod
    def _exit_status(self, child_status: int) -> int: ...


def still_ignores(pid: int, number: int, inherited: Inherited) -> bool:
    """Return whether the signal does nothing: the caller ignores it, and so does the command."""
    if number not in inherited.ignored_signals:
        return False
    return not pid or procfs.has_ended(pid) or number in ignored_signals(pid)


def only_we_get(number: int) -> bool:
    """Return whether the terminal sends the signal only to us: a hang-up to the session leader."""
    return number in (signal.SIGHUP, signal.SIGCONT) and os.getsid(0) == os.getpid()


def shares_our_group(pid: int) -> bool:
    try:
        return pid != 0 and os.getpgid(pid) == os.getpgrp()
    except ProcessLookupError:
        return False


def stays_stopped(pid: int) -> bool:
    """Return whether the process is still stopped after the SIGCONT that was just read.

    A shell continues the whole group. One more SIGCONT, a moment late, would undo the next Ctrl+Z.
    That stop would be pending here: the kernel drops a pending SIGCONT for it.
    """
    return procfs.is_stopped(pid) and not JOB_STOPS & signal.sigpending()


def run_alone(command: tuple[str, ...], grace_s: float | None) -> int:
    """Run sigwrap-forward: an init for one command, which intercepts nothing."""
    reserve_standard_streams()
    procfs.hold()
    procfs.require()
    inherited = Inherited.capture()
    limits.lift(inherited.limits)
    program = find_program(command[0], inherited.environment)
    signals = take_signals()
    libc.set_child_subreaper()
    own_code.read_what_is_used_later(in_a_run=False)
    own_code.import_nothing_more()
    onefile.release_unpacked(for_stubs=False)
    front_pid = os.getpid()
    child = linux_process.fork()
    if child == 0:
        libc.set_parent_death_signal(signal.SIGKILL)
        if os.getppid() == front_pid:
            error = exec_command(program, command, inherited, {})
            _say(f"{command[0]}: {os.strerror(error)}")
        os._exit(errors.NOT_EXECUTABLE)
    release_inherited()
    return _Forwarder(signals, child, inherited, grace_s).run()


class _Forwarder(ParentOfOne):
    """Pass signals on to the command, which is our child."""

    _ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)

    def __init__(
        self, signals: SignalFd, child: int, inherited: Inherited, grace_s: float | None
    ) -> None:
        super().__init__(signals, child, _say)
        self._inherited = inherited
        self._grace_s = grace_s
        self._kill_at: float | None = None
        self._leftovers_may_stay = True
        self._got_stop = False  # whether a SIGTSTP came since the last SIGCONT

    @property
    def _deadline(self) -> float | None:
        return self._kill_at

    def _on_deadline(self, now: float) -> None:
        self._kill_at = None
        self.kill_tree("the grace period ended")

    def _on_forwardable(self, info: SignalInfo) -> None:
        if info.number in (signal.SIGTSTP, signal.SIGCONT):
            self._got_stop = info.number == signal.SIGTSTP
        if self._copies.has_copy(info.number, info.sender_pid, time.monotonic()):
            return
        if self._child_status is not None:
            self._leftovers_may_stay = self._leftovers_may_stay and info.number not in self._ENDING
            return
        if still_ignores(self._child, info.number, self._inherited):
            return
        if info.number == signal.SIGCONT and self._child_goes_on_anyway():
            return
        went_to_group = info.is_from_terminal and not only_we_get(info.number)
        if not (went_to_group and shares_our_group(self._child)):
            linux_process.send(self._child, info.number)
            self._has_passed_on_stop |= info.number in JOB_STOPS
        if info.number in self._ENDING and self._grace_s is not None and self._kill_at is None:
            self._kill_at = time.monotonic() + self._grace_s

    def _child_goes_on_anyway(self) -> bool:
        return not (
            self._may_be_stopping_yet()
            or stays_stopped(self._child)
            or handles(self._child, signal.SIGCONT)
        )

    def _on_child_stopped(self, number: int) -> None:
        """Stop what the shell waits for: us, or the bootloader.

        A SIGTSTP to the whole group stops the bootloader by itself, and reaches us too. A stop of
        ours after the SIGCONT would stop it again.
        """
        bootloader = self._bootloader_pid
        if bootloader and number == signal.SIGTSTP and self._got_stop:
            return
        if procfs.is_stopped(self._child) and signal.SIGCONT not in signal.sigpending():
            linux_process.send(bootloader or os.getpid(), signal.SIGSTOP)

    def _clear_tree(self) -> None:
        """Give leftover processes a moment to end, unless a signal asks for the end."""
        if self._reap():
            for pid in self._all_below.alive():
                linux_process.terminate(pid)
        until = time.monotonic() + LEFTOVERS_GRACE_S
        while self._reap() and self._leftovers_may_stay and time.monotonic() < until:
            ready = self._poll.poll(seconds_until(until))
            if self._bootloader_pidfd in [fd for fd, _ in ready]:
                break
            self._read_signals()
        super()._clear_tree()

    def kill_tree(self, reason: str) -> None:
        self._sweep()

    def _exit_status(self, child_status: int) -> int:
        if os.WIFSIGNALED(child_status):
            return errors.from_signal(os.WTERMSIG(child_status))
        return os.WEXITSTATUS(child_status)


def _say(text: str) -> None:
    try:
        os.write(2, f"sigwrap-forward: {bounded(printable(text))}\n".encode())
    except OSError:
        pass
