"""What the front process and sigwrap-forward have in common: the signals that reach them, the end
of their one child, and the end of everything below it."""

from __future__ import annotations

import os
import select
import time
from abc import ABC, abstractmethod

from sigwrap import status
from sigwrap.bare import signal
from sigwrap.linux import process as linux_process
from sigwrap.linux import procfs
from sigwrap.linux.sigfd import SignalFd, SignalInfo
from sigwrap.linux.waits import seconds_until
from sigwrap.mediate.interrupts import JOB_STOPS
from sigwrap.start import onefile
from sigwrap.start.command import Inherited

_SWEEP_S = 1.0


def take_signals() -> SignalFd:
    """All of them, also those that the caller ignores (nohup, a shell's background job): COMMAND
    inherits that, and may have changed its mind. Blocked, they reach the descriptor all the same.
    A fault of our own ends us nevertheless."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would reap behind our back
    return SignalFd(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class ParentOfOne(ABC):
    def __init__(self, signals: SignalFd, child: int, bootloader_pid: int) -> None:
        self._signals = signals
        self._child = child
        self._child_status: int | None = None
        self._child_is_left_behind = False
        self._has_passed_on_stop = False  # since COMMAND was continued last
        self._everybody_below = linux_process.Sweep(self._reaped)
        self._poll = select.epoll()  # poll(2) refuses more descriptors than the limit, at each call
        self._poll.register(signals.fd, select.EPOLLIN)
        self._bootloader_pid = bootloader_pid
        self._bootloader_pidfd = -1
        if bootloader_pid:
            self._bootloader_pidfd = os.pidfd_open(bootloader_pid)
            self._poll.register(self._bootloader_pidfd, select.EPOLLIN)

    def run(self) -> int:
        try:
            code = self._exit_status(self._await_child())
        except Exception as bug:  # whatever it is: nobody stays
            self._say(f"internal error: {type(bug).__name__}: {bug}; the command is killed")
            code = status.REFUSED
        if not self._child_is_left_behind:
            self._clear_tree()
        for pid in self._everybody_below.unkillable:
            self._say(f"can't kill process {pid} ({procfs.comm(pid)}); it is left running")
        onefile.empty_unpacked(self._bootloader_pid)
        return code

    def _await_child(self) -> int:
        while self._child_status is None:
            deadline = self._deadline
            ready = self._poll.poll(None if deadline is None else seconds_until(deadline))
            # Signals last: what the supervisor has told by now decides what they mean.
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
        """False where no child is left."""
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
        """However the child ended, nothing below it stays."""
        while not self._sweep():
            continue

    def _left_behind(self, status: int) -> None:
        """Nothing is below it any more, and whoever ends after it reaps it."""
        if self._child_status is None:
            self._child_status = status << 8
            self._child_is_left_behind = True

    def _sweep(self) -> bool:
        return self._everybody_below.run(timeout_s=_SWEEP_S)

    def _reaped(self, pid: int, child_status: int) -> None:
        if pid == self._child:
            self._child_status = child_status

    def _may_be_stopping_yet(self) -> bool:
        """By what was passed on to it. Asked at a SIGCONT."""
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
    """As natively: what the caller ignores and COMMAND doesn't care for does nothing."""
    if number not in inherited.ignored_signals:
        return False
    found = procfs.stat(pid) if pid else None
    return found is None or found.has_ended or number in procfs.ignored_signals(pid)


def only_we_get(number: int) -> bool:
    """Of what the terminal sends its group: of a hang-up a session's leader is told alone."""
    return number in (signal.SIGHUP, signal.SIGCONT) and os.getsid(0) == os.getpid()


def shares_our_group(pid: int) -> bool:
    try:
        return pid != 0 and os.getpgid(pid) == os.getpgrp()
    except ProcessLookupError:
        return False


def stays_stopped(pid: int) -> bool:
    """Since before the SIGCONT that was just read. A shell continues the whole group: one more
    SIGCONT to COMMAND, a moment late, would undo the next Ctrl+Z, or have it read in the background
    once more. That stop would be pending here: in a queue it and a SIGCONT drive each other out."""
    return procfs.is_stopped(pid) and not JOB_STOPS & signal.sigpending()
