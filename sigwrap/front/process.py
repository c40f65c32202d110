"""The front process: the one whose pid the caller knows, at the terminal's end of a run.

It decides what a Ctrl+C means, and ends the whole tree if the supervisor dies.

Rejected: a process group for the command (the terminal's keys would no longer reach sigwrap, nor a
shell's `fg` the command), and a pty in between (the command would have another terminal).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from math import ceil

from sigwrap import errors
from sigwrap.bare import TYPE_CHECKING, NoReturn, signal
from sigwrap.front.interrupts import JOB_STOPS, Arrived, Interrupts
from sigwrap.front.messages import LOOKED_AT_EVERY_S, NO_SENDER, Channel, Heartbeat, Place, Sender
from sigwrap.front.parent import (
    ParentOfOne,
    only_we_get,
    shares_our_group,
    stays_stopped,
    still_ignores,
)
from sigwrap.front.terminal import TerminalBefore, callers_pid, held_caller, sender_of
from sigwrap.kernel import libc, limits, memory, procfs, terminals
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.descriptors import release_inherited
from sigwrap.kernel.process import die_of
from sigwrap.kernel.signals import (
    SignalInfo,
    handles,
    ignored_signals,
    is_in,
    outlives,
    take_signals,
)
from sigwrap.kernel.terminals import OwnLines, reads_a_line
from sigwrap.start import onefile, own_code
from sigwrap.start.command import Inherited, exec_command
from sigwrap.text import printable

if TYPE_CHECKING:
    from sigwrap.front.shipper import Shipper
    from sigwrap.session.settings import RunSettings

_LAST_DEFENCE_S = 2.0
_LAST_SWEEP_S = 30.0

Tell = Callable[[str], None]
Supervise = Callable[[Channel, int], int]
Variables = dict[bytes, bytes]


class FrontProcess(ParentOfOne):
    def __init__(
        self,
        settings: RunSettings,
        inherited: Inherited,
        supervise: Supervise,
        tell: Tell,
        shipper: Shipper | None = None,
    ) -> None:
        """Fork the supervisor, which runs `supervise`."""
        bootloader_pid = onefile.bootloader_pid()
        self._caller = held_caller(bootloader_pid) if settings.ends_with_caller else None
        signals = take_signals()
        terminals.hold()
        self._terminal = TerminalBefore()
        self._channel, theirs = Channel.pair()
        libc.set_child_subreaper()
        own_code.read_what_is_used_later()
        child = linux_process.fork()
        if child == 0:
            signals.close()
            self._channel.close()
            _supervise(supervise, theirs)
        own_code.import_nothing_more()
        theirs.close()
        release_inherited()
        libc.set_dumpable(False)
        self._lines = OwnLines(tell)
        super().__init__(signals, child, self._lines.tell)
        self._watch(self._channel.fd, self._on_message)
        if self._caller is not None:
            self._watch(self._caller.pidfd, self._on_callers_end)
        self._shipper = shipper
        self._log_head = ""
        if shipper is not None:
            self._all_below.spared = shipper.pid
            self._watch(shipper.fd, self._on_shipper)
        ends = settings.interrupt
        self._interrupts = Interrupts(self, self._copies, grace_s=settings.grace_s, ends=ends)
        self._inherited = inherited
        self._notifier = Notifier(settings.notify, inherited, self._channel)
        self._died_of = 0  # the signal by which this process ends as well
        self._command_pid = 0
        self._shells = (os.getsid(0), callers_pid(bootloader_pid))  # we may be a job of theirs
        self._last_defence_at: float | None = None
        self._heartbeat = Heartbeat()
        self._looks_at = time.monotonic() + LOOKED_AT_EVERY_S

    def run(self) -> int:
        code = super().run()
        self._lines.flush()
        by_sigwrap = code in (errors.LIMIT_REACHED, errors.REFUSED)
        by_force = self._command_pid != 0 and (by_sigwrap or code > errors.from_signal(0))
        self._terminal.restore(by_force=by_force)
        if status := self._notifier.failed_with:
            self._lines.tell(f"the --notify command failed with status {status}")
            self._lines.flush()
        if self._shipper is not None and not self._shipped(self._shipper):
            return errors.REFUSED
        if self._died_of:
            onefile.leave_no_core(self._bootloader_pid)
            die_of(self._died_of)
        return code

    def _shipped(self, shipper: Shipper) -> bool:
        """Let it ship the rest. Return False if the status must be 125."""
        if not shipper.is_over:
            callers_end = -1 if self._caller is None else self._caller.pidfd
            tell = self._lines.tell
            if problem := shipper.ship_rest(self._log_head, self._signals, callers_end, tell):
                tell(f"{problem}; sigwrap ship sends the rest")
                self._lines.flush()
        if self._all_below.spared:
            linux_process.send(shipper.pid, signal.SIGKILL)
        return shipper.has_shipped or not shipper.is_required

    def _on_shipper(self) -> None:
        shipper = self._shipper
        assert shipper is not None, "it is watched"
        if problem := shipper.problem():
            later = "sigwrap ship sends the rest" if shipper.is_over else "sigwrap keeps trying"
            self._lines.tell(f"{problem}; {later}")
        if shipper.is_over:
            self._poll.unregister(shipper.fd)

    @property
    def _deadline(self) -> float | None:
        wanted = self._last_defence_at or self._interrupts.next_deadline
        return self._looks_at if wanted is None else min(wanted, self._looks_at)

    def _on_deadline(self, now: float) -> None:
        if now >= self._looks_at:
            self._looks_at = now + LOOKED_AT_EVERY_S
            if self._heartbeat.is_missing(self._channel.beats):
                self._free_supervisor()
        if self._last_defence_at is None:
            self._interrupts.tick(now)
        elif now >= self._last_defence_at:
            self._last_defence_at = None if self._sweep() else now
            if self._child in self._all_below.unkillable:
                self._left_behind(errors.REFUSED)

    def _free_supervisor(self) -> None:
        """Kill the tree: the process that blocks the supervisor is in it."""
        why = "the supervisor was blocked for more than 10 seconds"
        self._say(f"{why}: the command is killed")
        self.kill_tree(why)  # first, so that the log has it as the reason
        linux_process.kill_below(self._child)

    def _on_forwardable(self, info: SignalInfo) -> None:
        if info.number == signal.SIGCONT and self._command_goes_on_anyway(info):
            return
        # Look at once: the command leaves its prompt at the key, and a sender ends.
        at_prompt = info.number == signal.SIGINT and self.is_at_prompt()
        sender = sender_of(info, supervisor=self._child, bootloader=self._bootloader_pid)
        # While the supervisor asks on the terminal, it gets the keys, and passes them on.
        arrived = Arrived(
            number=info.number,
            from_terminal=info.is_from_terminal or info.sender_pid == self._child,
            sender_pid=info.sender_pid,
            went_to_command=self._command_is_in_our_group() and not only_we_get(info.number),
            command_handles_it=self._command_handles(info.number),
            command_ignores_it=info.number in ignored_signals(self._command_pid),
            command_outlives_it=(
                info.number == signal.SIGHUP and outlives(self._command_pid, info.number)
            ),
            is_ignored=self._ignores(info.number),
            is_hangup=info.number == signal.SIGHUP and self._is_told_of_hangup(info),
            at_prompt=at_prompt,
            sender=sender,
        )
        self._interrupts.signal(arrived, time.monotonic())

    def on_interrupt_demanded(self, source: str) -> None:
        """Interrupt the run for an agent signal. The supervisor sends a SIGINT to the command's
        whole process group, as the terminal does for a Ctrl+C."""
        arrived = Arrived(
            number=signal.SIGINT,
            from_terminal=False,
            sender_pid=0,
            goes_to_job=not self._ignores(signal.SIGINT),
            command_handles_it=self._command_handles(signal.SIGINT),
            command_ignores_it=signal.SIGINT in ignored_signals(self._command_pid),
            sender=Sender(0, 0, Place.AGENT_SIGNAL, source),
        )
        self._interrupts.interrupt(arrived, time.monotonic())

    def _on_callers_end(self) -> None:
        caller = self._caller
        assert caller is not None, "it is watched"
        self._poll.unregister(caller.pidfd)
        sender = Sender(caller.pid, os.getuid(), Place.CALLER_ENDED, caller.name)
        arrived = Arrived(signal.SIGTERM, from_terminal=False, sender_pid=caller.pid, sender=sender)
        self._interrupts.caller_ended(arrived, time.monotonic())

    def _is_told_of_hangup(self, info: SignalInfo) -> bool:
        """Return whether the terminal hung up. The kernel and the shell may both send the SIGHUP,
        in any order. A caller that ignores it (nohup) wants the run to go on."""
        if signal.SIGHUP in self._inherited.ignored_signals:
            return False
        if info.is_from_terminal or info.sender_pid == self._child:
            return True
        return info.sender_pid in self._shells and self._terminal.has_hung_up()

    def _command_goes_on_anyway(self, info: SignalInfo) -> bool:
        """Return whether a SIGCONT need not be passed on. The supervisor sends it since the command
        goes on, and a shell continues the whole group. One more would undo the command's next stop,
        and start an endless round in the background. Other senders mean a command that handles
        SIGCONT."""
        if info.sender_pid == self._child:
            return True
        if self._copies.has_copy(info.number, info.sender_pid, time.monotonic()):
            return True  # a late one: a key may have stopped the command since
        if self._may_be_stopping_yet():
            return False
        if info.sender_pid in (*self._shells, self._bootloader_pid) and self._terminal.is_there:
            return not self._command_is_stopped()
        return not (self._command_is_stopped() or self._command_handles(signal.SIGCONT))

    def _command_is_stopped(self) -> bool:
        return self._command_pid != 0 and stays_stopped(self._command_pid)

    def _command_has_ended(self) -> bool:
        return procfs.has_ended(self._command_pid)

    def _command_is_in_our_group(self) -> bool:
        """Return whether it is, or was before it ended."""
        is_there = self._command_pid != 0
        return is_there and (self._command_has_ended() or shares_our_group(self._command_pid))

    def _command_handles(self, number: int) -> bool:
        """Return True for a command that has ended as well: it needs no SIGTERM."""
        if self._command_pid == 0:
            return False
        return self._command_has_ended() or handles(self._command_pid, number)

    def _ignores(self, number: int) -> bool:
        return still_ignores(self._command_pid, number, self._inherited)

    def is_at_prompt(self, *, or_reads_a_line: bool = False) -> bool:
        """Return whether the command shows a prompt. If it was stopped, the foreground and the line
        editor are those of the caller's shell."""
        pid = self._command_pid
        return (
            shares_our_group(pid)
            and not self._command_has_ended()
            and is_in(pid, signal.SIGINT, b"SigCgt", b"SigIgn", b"SigBlk")
            and self._terminal.is_in_our_foreground()
            and (self._terminal.is_edited() or (or_reads_a_line and reads_a_line(pid)))
        )

    # What Interrupts decides

    def announce(self, arrived: Arrived, *, ends_run: bool) -> None:
        """Record an interrupt: where it came from, and whether it ends the run."""
        by = NO_SENDER if arrived.from_terminal or arrived.sender is None else arrived.sender
        words = (arrived.number, arrived.from_terminal, ends_run, by.payload)
        self._channel.send("interrupt_arrived", *words)

    def withdraw(self) -> None:
        """Record that the announced interrupt was for the command alone: the run goes on."""
        self._channel.send("interrupt_withdrawn")

    def pass_on(self, number: int, sender: Sender | None = None) -> None:
        """Send this signal to the command. `sender`: None if sigwrap itself sends it."""
        self._has_passed_on_stop |= number in JOB_STOPS
        self._channel.send("signal_for_command", number, (sender or NO_SENDER).payload)

    def say_waiting(self, kill_in_s: float, *, or_prompts: bool, is_key: bool) -> None:
        """Say on a terminal what sigwrap waits for, and what ends it: otherwise, the log has it.

        `or_prompts`: a prompt would end the wait as well. `is_key`: Ctrl+C started it.
        """
        pid = self._command_pid
        if self._command_has_ended() or not os.isatty(2):
            return
        kills = "another SIGTERM"
        if self._terminal.interrupts_us() and not self._ignores(signal.SIGINT):
            kills = "Ctrl+C again" if is_key else "Ctrl+C"
        self._say(
            f"interrupted: waiting up to {ceil(kill_in_s)} s for "
            f"{printable(procfs.comm(pid))} (pid {pid}) to end"
            f"{' or show a prompt' if or_prompts else ''}; {kills} kills"
        )

    def _on_message(self) -> None:
        self._channel.receive(self)
        if self._channel.is_closed:  # the supervisor's SIGCHLD follows
            self._poll.unregister(self._channel.fd)

    def on_command_started(self, pid: int) -> None:
        self._command_pid = pid

    def on_forget(self, names: tuple[bytes, ...]) -> None:
        """Erase these variables, or all if none is named, before the command can read them."""
        names = names or tuple(os.environb)
        memory.forget(names)
        self._notifier.forget(names)
        self._channel.send("forgotten")

    def on_command_ended(self) -> None:
        """Pass on the signals that have arrived: a key reaches the command and us at once, and its
        end may be seen first."""
        self._read_signals()
        self._channel.send("nothing_more")

    def on_notice(self, variables: Variables) -> None:
        """Notify the user of an approval request."""
        self._notifier.tell(variables)

    def on_died_of(self, number: int) -> None:
        """End by this signal once the supervisor has ended."""
        self._died_of = number

    def on_log_sealed(self, head: str) -> None:
        self._log_head = head

    def on_held_up(self, status: int) -> None:
        """The run is over and its log sealed, but a system call of a thread of the supervisor does
        not return."""
        self._left_behind(status)

    def _reaped(self, pid: int, child_status: int) -> None:
        super()._reaped(pid, child_status)
        if pid == self._all_below.spared:
            self._all_below.spared = 0
        if self._child_status is None:
            self._notifier.reaped(pid, child_status)

    def _on_child_stopped(self, number: int) -> None:
        linux_process.send(self._child, signal.SIGCONT)  # another process stopped the supervisor

    def kill_tree(self, reason: str) -> None:
        """Let the supervisor kill the tree, and its log say so; after a while, do it here."""
        self._channel.send("kill_tree", reason)
        self._last_defence_at = time.monotonic() + _LAST_DEFENCE_S

    def _exit_status(self, child_status: int) -> int:
        if os.WIFEXITED(child_status):
            return os.WEXITSTATUS(child_status)
        self._died_of = 0
        if self._interrupts.interrupted:
            return errors.INTERRUPTED
        self._terminal.take_back()
        number = os.WTERMSIG(child_status)
        limited = ", ".join(limits.not_lifted())
        why = f" ({limited} limits it as well)" if limited else ""
        self._say(f"signal {number} killed the supervisor{why}; its process tree was killed")
        return errors.REFUSED


def _supervise(supervise: Supervise, front: Channel) -> NoReturn:
    code = errors.REFUSED
    all_below = linux_process.Sweep(lambda _pid, _status: None)
    try:
        code = supervise(front, os.getppid())
    finally:  # the front process, which would end the tree, may be gone by now
        try:
            all_below.run(timeout_s=_LAST_SWEEP_S)
        finally:
            os._exit(code)


class Notifier:
    """Runs the --notify command for approval requests, as a child of this process and so outside
    the session. Of the requests that come while it runs, the last is reported after its end: one
    popup lets the user see all of them."""

    def __init__(self, command: str, inherited: Inherited, supervisor: Channel) -> None:
        self._command = command
        self._supervisor = supervisor
        self._inherited = inherited
        self._pid = 0
        self._next: Variables | None = None
        self.failed_with = 0  # the status of the last failure

    def forget(self, names: tuple[bytes, ...]) -> None:
        """Remove variables that the command must not see: it could read them in the notifier."""
        given = {
            name: value for name, value in self._inherited.environment.items() if name not in names
        }
        self._inherited = self._inherited._replace(environment=given)

    def tell(self, notice: Variables) -> None:
        if self._pid:
            self._next = notice
            return
        try:
            pid = os.fork()
        except OSError:  # the process limit is reached
            self._fails(errors.NOT_EXECUTABLE)
            return
        if pid == 0:
            try:
                self._run(notice)
            finally:
                os._exit(errors.NOT_EXECUTABLE)
        self._pid = pid

    def reaped(self, pid: int, wait_status: int) -> None:
        if pid != self._pid:
            return
        self._pid = 0
        if status := os.waitstatus_to_exitcode(wait_status):
            self._fails(status)
        if self._next is not None:
            notice, self._next = self._next, None
            self.tell(notice)

    def _fails(self, status: int) -> None:
        self.failed_with = status
        self._supervisor.send("notify_failed")

    def _run(self, notice: Variables) -> None:
        """Execute the command away from the terminal and the current directory."""
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        try:
            os.chdir("/")  # a relative name must not lead into the workspace
        except OSError:
            pass
        calm = self._inherited._replace(
            signal_mask=frozenset(), ignored_signals=frozenset({signal.SIGINT, signal.SIGQUIT})
        )
        words = ("sh", "-c", self._command)
        exec_command(b"/bin/sh", words, calm, notice)
