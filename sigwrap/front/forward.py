"""sigwrap-forward: an init for one command. It passes signals on, reaps orphans, and exits with the
command's status. It intercepts nothing."""

from __future__ import annotations

import os
import time

from sigwrap import errors
from sigwrap.bare import signal
from sigwrap.errors import InternalError
from sigwrap.front.interrupts import JOB_STOPS, BootloaderCopies
from sigwrap.front.parent import (
    ParentOfOne,
    only_we_get,
    shares_our_group,
    stays_stopped,
    still_ignores,
    take_signals,
)
from sigwrap.kernel import libc, limits, procfs
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.descriptors import release_inherited, reserve_standard_streams
from sigwrap.kernel.libc import seconds_until
from sigwrap.kernel.signals import SignalFd, SignalInfo, handles
from sigwrap.session.run_end import LEFTOVERS_GRACE_S
from sigwrap.start import onefile, own_code
from sigwrap.start.command import Inherited, exec_command, find_program
from sigwrap.text import bounded, printable


def run_alone(command: tuple[str, ...], grace_s: float | None) -> int:
    reserve_standard_streams()
    procfs.hold()
    procfs.require()
    inherited = Inherited.capture()
    limits.lift(inherited.limits)
    program = find_program(command[0], inherited.environment)
    bootloader_pid = onefile.bootloader_pid()
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
    return _Forwarder(signals, child, bootloader_pid, inherited, grace_s).run()


class _Forwarder(ParentOfOne):
    """Pass signals on to the command, which is our child."""

    _ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)

    def __init__(
        self,
        signals: SignalFd,
        child: int,
        bootloader_pid: int,
        inherited: Inherited,
        grace_s: float | None,
    ) -> None:
        super().__init__(signals, child, bootloader_pid)
        self._inherited = inherited
        on_terminal = procfs.controlling_terminal(os.getpid()) is not None
        self._copies = BootloaderCopies(bootloader_pid, on_terminal=on_terminal)
        self._grace_s = grace_s
        self._kill_at: float | None = None
        self._leftovers_may_stay = True
        self._got_stop = False  # whether a SIGTSTP came since the last SIGCONT

    @property
    def _deadline(self) -> float | None:
        return self._kill_at

    def _on_deadline(self, now: float) -> None:
        self._kill_at = None
        self._kill_tree("the grace period ended")

    def _read_signals(self) -> None:
        """Handle SIGCHLD last: a signal that came with it may have stopped the command, and handled
        after our own stop, it would stop the command again."""
        for info in sorted(self._signals.read(), key=lambda info: info.number == signal.SIGCHLD):
            if info.number in (signal.SIGTSTP, signal.SIGCONT):
                self._got_stop = info.number == signal.SIGTSTP
            self._on_signal(info)

    def _on_forwardable(self, info: SignalInfo) -> None:
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

    def _on_readable(self, fd: int) -> None:
        raise InternalError("sigwrap-forward has no channel to read")

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

    def _kill_tree(self, reason: str) -> None:
        self._sweep()

    def _say(self, text: str) -> None:
        _say(text)

    def _exit_status(self, child_status: int) -> int:
        if os.WIFSIGNALED(child_status):
            return errors.from_signal(os.WTERMSIG(child_status))
        return os.WEXITSTATUS(child_status)


def _say(text: str) -> None:
    try:
        os.write(2, f"sigwrap-forward: {bounded(printable(text))}\n".encode())
    except OSError:
        pass
