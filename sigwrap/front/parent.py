"""What the front process and sigwrap-forward share: the signals that reach them, the end of their
one child, and the end of all processes below it."""

from __future__ import annotations

import os
import select
import time
from abc import ABC, abstractmethod

from sigwrap import errors
from sigwrap.bare import signal
from sigwrap.front.interrupts import JOB_STOPS
from sigwrap.kernel import process as linux_process
from sigwrap.kernel import procfs
from sigwrap.kernel.libc import seconds_until
from sigwrap.kernel.signals import SignalFd, SignalInfo, ignored_signals
from sigwrap.start import onefile
from sigwrap.start.command import Inherited

_SWEEP_S = 1.0


def take_signals() -> SignalFd:
    """Take all signals, also those that the caller ignores (nohup, a shell's background job): the
    command may handle them. A blocked signal reaches the descriptor even if it is ignored. A fault
    of our own still ends us."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, the kernel reaps our children
    return SignalFd(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class ParentOfOne(ABC):
    def __init__(self, signals: SignalFd, child: int, bootloader_pid: int) -> None:
        self._signals = signals
        self._child = child
        self._child_status: int | None = None
        self._child_is_left_behind = False
        self._has_passed_on_stop = False  # since the command was continued last
        self._all_below = linux_process.Sweep(self._reaped)
        self._poll = select.epoll()  # poll(2) fails under a low limit of open files
        self._poll.register(signals.fd, select.EPOLLIN)
        self._bootloader_pid = bootloader_pid
        self._bootloader_pidfd = -1
        if bootloader_pid:
            self._bootloader_pidfd = os.pidfd_open(bootloader_pid)
            self._poll.register(self._bootloader_pidfd, select.EPOLLIN)

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
                if fd == self._signals.fd:
                    self._read_signals()
                elif fd == self._bootloader_pidfd:
                    self._poll.unregister(fd)
                    self._kill_tree("the outer process of the binary died")
                else:
                    self._on_readable(fd)
            if deadline is not None and time.monotonic() >= deadline:
                self._on_deadline(time.monotonic())
        return self._child_status

    def _read_signals(self) -> None:
        for info in self._signals.read():
            self._on_signal(info)

    def _on_signal(self, info: SignalInfo) -> None:
        if info.number == signal.SIGCHLD:
            self._reap()
        if not (info.is_our_own or info.is_of_a_child):
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
    def _on_readable(self, fd: int) -> None: ...

    @abstractmethod
    def _on_child_stopped(self, number: int) -> None: ...

    @abstractmethod
    def _kill_tree(self, reason: str) -> None: ...

    @abstractmethod
    def _exit_status(self, child_status: int) -> int: ...

    @abstractmethod
    def _say(self, text: str) -> None: ...


def still_ignores(pid: int, number: int, inherited: Inherited) -> bool:
    """Return whether the signal does nothing: the caller ignores it, and so does the command."""
    if number not in inherited.ignored_signals:
        return False
    found = procfs.stat(pid) if pid else None
    return found is None or found.has_ended or number in ignored_signals(pid)


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
