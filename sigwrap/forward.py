"""The front process: the one whose pid the caller knows.

Alone (sigwrap-forward) it is an init for one COMMAND: passes signals on, reaps orphans, keeps the
exit status. In front of a supervisor it is the terminal's end of a run: it decides what a Ctrl+C
means, and ends the whole tree if the supervisor dies.

Considered and not taken: COMMAND in a process group of its own (the terminal's keys would no longer
reach sigwrap, nor a shell's `fg` COMMAND), a pty in between (it would be another terminal).
"""

from __future__ import annotations

import os
import select
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from sigwrap import onefile, status
from sigwrap.command import Inherited, exec_command, find_program
from sigwrap.errors import InternalError
from sigwrap.kernel import libc, procfs
from sigwrap.kernel import process as kernel_process
from sigwrap.kernel.descriptors import release_inherited, reserve_standard_streams
from sigwrap.kernel.sigfd import SignalFd, SignalInfo
from sigwrap.session.interrupts import (
    Announce,
    Arrived,
    BootloaderCopies,
    Command,
    Escalate,
    Interrupts,
    PassOn,
)
from sigwrap.supervise.channel import (
    Channel,
    CommandEnded,
    CommandStarted,
    InterruptBegan,
    KillTree,
    NothingMore,
    SignalForCommand,
)

_NOT_FORWARDED = frozenset(
    {
        signal.SIGKILL,
        signal.SIGSTOP,
        signal.SIGCHLD,
        # faults of our own
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGTRAP,
        signal.SIGSYS,
        signal.SIGABRT,
        signal.SIGPIPE,
        signal.SIGXFSZ,
        # the terminal's word on our own reading and writing
        signal.SIGTTIN,
        signal.SIGTTOU,
    }
)
_READ = (signal.valid_signals() - _NOT_FORWARDED) | {signal.SIGCHLD}
_LAST_DEFENCE_S = 2.0
_SWEEP_S = 1.0

Tell = Callable[[str], None]
Supervise = Callable[[Channel, int], int]


def run_alone(command: tuple[str, ...], grace_s: float | None) -> int:
    reserve_standard_streams()
    inherited = Inherited.capture()
    program = find_program(command[0], inherited.environment)
    bootloader_pid = onefile.bootloader_pid()
    signals = _take_signals(inherited)
    libc.set_child_subreaper()
    front_pid = os.getpid()
    child = os.fork()
    if child == 0:
        libc.set_parent_death_signal(signal.SIGKILL)
        if os.getppid() == front_pid:
            error = exec_command(program, command, inherited, {})
            os.write(2, f"sigwrap-forward: {command[0]}: {os.strerror(error)}\n".encode())
        os._exit(status.NOT_EXECUTABLE)
    release_inherited()
    return _Alone(signals, child, bootloader_pid, grace_s).run()


def run_before_supervisor(
    supervise: Supervise, inherited: Inherited, grace_s: float, tell: Tell
) -> int:
    bootloader_pid = onefile.bootloader_pid()
    signals = _take_signals(inherited)
    ours, theirs = Channel.pair()
    libc.set_child_subreaper()
    child = os.fork()
    if child == 0:
        code = status.REFUSED
        try:
            signals.close()
            ours.close()
            code = supervise(theirs, os.getppid())
        finally:
            os._exit(code)
    theirs.close()
    release_inherited()
    libc.set_undumpable()
    return _BeforeSupervisor(signals, child, bootloader_pid, ours, grace_s, tell).run()


def _take_signals(inherited: Inherited) -> SignalFd:
    """What the caller ignores (nohup, a shell's background job) stays ignored: blocked, it would
    reach the descriptor all the same."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would reap behind our back
    ignored = inherited.ignored_signals - {signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - ignored)
    return SignalFd(_READ - ignored)


class _Front(ABC):
    def __init__(self, signals: SignalFd, child: int, bootloader_pid: int) -> None:
        self._signals = signals
        self._child = child
        self._child_status: int | None = None
        self._poll = select.poll()
        self._poll.register(signals.fd, select.POLLIN)
        self._bootloader_pidfd = -1
        if bootloader_pid:
            self._bootloader_pidfd = os.pidfd_open(bootloader_pid)
            self._poll.register(self._bootloader_pidfd, select.POLLIN)

    def run(self) -> int:
        bootloader_died = False
        while self._child_status is None:
            deadline = self._deadline
            timeout_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            # Rounded up: a poll that comes back early would spin until the deadline.
            ready = self._poll.poll(None if timeout_s is None else int(timeout_s * 1000) + 1)
            # Signals last: what the supervisor has told by now decides what they mean.
            for fd, _ in sorted(ready, key=lambda event: event[0] == self._signals.fd):
                if fd == self._signals.fd:
                    self._read_signals()
                elif fd == self._bootloader_pidfd:
                    bootloader_died = True
                    self._poll.unregister(fd)
                    self._kill_tree("the outer process of the binary died")
                else:
                    self._on_readable()
            if deadline is not None and time.monotonic() >= deadline:
                self._on_deadline(time.monotonic())
        code = self._exit_status(self._child_status)
        self._clear_tree()
        if bootloader_died:  # nobody else is left to do it
            _remove(onefile.unpacked_folder())
        return code

    def _read_signals(self) -> None:
        for info in self._signals.read():
            self._on_signal(info)

    def _on_signal(self, info: SignalInfo) -> None:
        if info.number != signal.SIGCHLD:
            self._on_forwardable(info)
            return
        while True:
            try:
                pid, child_status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if not os.WIFSTOPPED(child_status):
                self._reaped(pid, child_status)
            elif pid == self._child:
                self._on_child_stopped(os.WSTOPSIG(child_status))

    def _clear_tree(self) -> None:
        """However the child ended, nothing below it stays."""
        while not self._sweep():
            continue

    def _sweep(self) -> bool:
        return kernel_process.kill_descendants(os.getpid(), self._reaped, timeout_s=_SWEEP_S)

    def _reaped(self, pid: int, child_status: int) -> None:
        if pid == self._child:
            self._child_status = child_status

    @property
    @abstractmethod
    def _deadline(self) -> float | None: ...

    @abstractmethod
    def _on_deadline(self, now: float) -> None: ...

    @abstractmethod
    def _on_forwardable(self, info: SignalInfo) -> None: ...

    @abstractmethod
    def _on_readable(self) -> None: ...

    @abstractmethod
    def _on_child_stopped(self, number: int) -> None: ...

    @abstractmethod
    def _kill_tree(self, reason: str) -> None: ...

    @abstractmethod
    def _exit_status(self, child_status: int) -> int: ...


class _Alone(_Front):
    """COMMAND is the child: signals go to it as they come."""

    _ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)

    def __init__(
        self, signals: SignalFd, child: int, bootloader_pid: int, grace_s: float | None
    ) -> None:
        super().__init__(signals, child, bootloader_pid)
        self._copies = BootloaderCopies(bootloader_pid)
        self._grace_s = grace_s
        self._kill_at: float | None = None

    @property
    def _deadline(self) -> float | None:
        return self._kill_at

    def _on_deadline(self, now: float) -> None:
        self._kill_at = None
        self._kill_tree("the grace ran out")

    def _on_forwardable(self, info: SignalInfo) -> None:
        if self._copies.has_copy(info.number, info.sender_pid, time.monotonic()):
            return
        if not (info.is_from_terminal and _shares_our_group(self._child)):
            kernel_process.send(self._child, info.number)
        if info.number in self._ENDING and self._grace_s is not None and self._kill_at is None:
            self._kill_at = time.monotonic() + self._grace_s

    def _on_readable(self) -> None:
        raise InternalError("the front of COMMAND alone watches no channel")

    def _on_child_stopped(self, number: int) -> None:
        if number != signal.SIGSTOP:  # job control: the shell that waits for us has to see it
            kernel_process.send(os.getpid(), signal.SIGSTOP)

    def _kill_tree(self, reason: str) -> None:
        self._sweep()

    def _exit_status(self, child_status: int) -> int:
        if os.WIFSIGNALED(child_status):
            return status.from_signal(os.WTERMSIG(child_status))
        return os.WEXITSTATUS(child_status)


class _BeforeSupervisor(_Front):
    def __init__(
        self,
        signals: SignalFd,
        child: int,
        bootloader_pid: int,
        channel: Channel,
        grace_s: float,
        tell: Tell,
    ) -> None:
        super().__init__(signals, child, bootloader_pid)
        self._channel = channel
        self._poll.register(channel.fd, select.POLLIN)
        self._interrupts = Interrupts(grace_s=grace_s, bootloader_pid=bootloader_pid)
        self._command_pid = 0
        self._last_defence_at: float | None = None
        self._tell = tell

    @property
    def _deadline(self) -> float | None:
        return self._last_defence_at or self._interrupts.next_deadline

    def _on_deadline(self, now: float) -> None:
        if self._last_defence_at is not None:
            self._last_defence_at = None if self._sweep() else now
        else:
            self._carry_out(self._interrupts.tick(now))

    def _on_forwardable(self, info: SignalInfo) -> None:
        # The supervisor continues us because COMMAND goes on: to tell COMMAND again would undo its
        # next stop, and begin a round that never ends while it is in the background.
        if info.number == signal.SIGCONT and (
            info.sender_pid == self._child or not self._command_is_stopped()
        ):
            return
        arrived = Arrived(
            number=info.number,
            # While it asks on the terminal, the supervisor gets the keys, and hands them on.
            from_terminal=info.is_from_terminal or info.sender_pid == self._child,
            sender_pid=info.sender_pid,
            command_handles_it=self._command_handles(info.number),
        )
        self._carry_out(self._interrupts.signal(arrived, time.monotonic()))

    def _command_is_stopped(self) -> bool:
        """A shell continues the whole group, and the supervisor us: one more SIGCONT to COMMAND,
        a moment late, would undo the next Ctrl+Z."""
        found = procfs.stat(self._command_pid) if self._command_pid else None
        return found is not None and found.state == "T"

    def _command_handles(self, number: int) -> bool:
        """Or did: one that has ended by the time we look needs no SIGTERM any more."""
        found = procfs.stat(self._command_pid) if self._command_pid else None
        if found is None or found.has_ended:
            return self._command_pid != 0
        return _shares_our_group(self._command_pid) and number in procfs.caught_signals(
            self._command_pid
        )

    def _carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case Announce(arrived=arrived):
                    self._channel.send(
                        InterruptBegan(
                            number=arrived.number,
                            from_terminal=arrived.from_terminal,
                            sender_pid=arrived.sender_pid,
                            sender_cmd=procfs.command_line(arrived.sender_pid),
                        )
                    )
                case PassOn(number=number):
                    self._channel.send(SignalForCommand(number=number))
                case Escalate(reason=reason):
                    self._kill_tree(reason)

    def _on_readable(self) -> None:
        messages = self._channel.receive()
        if self._channel.is_closed:  # its SIGCHLD is on the way
            self._poll.unregister(self._channel.fd)
        for message in messages:
            if isinstance(message, CommandStarted):
                self._command_pid = message.pid
            elif isinstance(message, CommandEnded):
                # A key reaches COMMAND and us at once, and COMMAND's end may be seen first.
                self._read_signals()
                self._channel.send(NothingMore())

    def _on_child_stopped(self, number: int) -> None:
        kernel_process.send(self._child, signal.SIGCONT)  # somebody stopped the supervisor

    def _kill_tree(self, reason: str) -> None:
        """The supervisor does it, and its log says so; if it can't, we do."""
        self._channel.send(KillTree(reason=reason))
        self._last_defence_at = time.monotonic() + _LAST_DEFENCE_S

    def _exit_status(self, child_status: int) -> int:
        if os.WIFEXITED(child_status):
            return os.WEXITSTATUS(child_status)
        if self._interrupts.interrupted:
            return status.INTERRUPTED
        _take_back_terminal()
        number = os.WTERMSIG(child_status)
        self._tell(f"the supervisor died of signal {number}; everything below it was killed")
        return status.REFUSED


def _take_back_terminal() -> None:
    """A supervisor that died while it asked left the terminal to a group of nobody."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return
    try:
        os.killpg(os.tcgetpgrp(terminal), 0)
    except ProcessLookupError:
        os.tcsetpgrp(terminal, os.getpgrp())  # SIGTTOU is blocked here
    except OSError:
        pass
    finally:
        os.close(terminal)


def _remove(folder: str) -> None:
    import shutil  # 6 ms that no other run needs

    shutil.rmtree(folder, ignore_errors=True)


def _shares_our_group(pid: int) -> bool:
    try:
        return pid != 0 and os.getpgid(pid) == os.getpgrp()
    except ProcessLookupError:
        return False
