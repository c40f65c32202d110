"""The life of a run. One thread, nothing in it waits: a caller's request is answered before the
next is looked at, and whatever takes time is an event of its own."""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from enum import Enum
from typing import NamedTuple

from sigwrap import status
from sigwrap.errors import KernelError
from sigwrap.events import Payload
from sigwrap.linux import process as kernel_process
from sigwrap.linux import procfs
from sigwrap.linux.ptrace import WALL
from sigwrap.linux.seccomp import Listener, Request
from sigwrap.linux.sigfd import SignalFd
from sigwrap.linux.syscalls import NAMES, X32_BIT
from sigwrap.mediate.lineage import Process
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.signals import signal_name
from sigwrap.protocols.front import (
    Channel,
    CommandEnded,
    InterruptBegan,
    KillTree,
    Message,
    NothingMore,
    SignalForCommand,
)
from sigwrap.run.asking.approvals import Approvals
from sigwrap.run.execs.gate import ExecGate
from sigwrap.run.fork_gate import BirthGate
from sigwrap.run.launch import Launch
from sigwrap.run.loop import Loop
from sigwrap.run.processes import Processes
from sigwrap.run.recorder import Recorder
from sigwrap.run.recording.recordings import Recordings
from sigwrap.run.settings import RunSettings
from sigwrap.run.signals.gate import SignalGate

_ENDS_AND_STOPS = os.WNOHANG | os.WUNTRACED | os.WCONTINUED | WALL
_LEFTOVERS_GRACE_S = 2.0
_CHILDREN_A_TURN = 64
_SWEEP_S = 0.5
_LAST_WORDS_S = 0.5
_IDLE_S = 0.05
_EXEC_STOP_COMES_WITHIN_NS = 300_000


class _Phase(Enum):
    RUNNING = "running"
    CLEARING = "clearing"  # COMMAND has ended; what it left behind was asked to
    OVER = "over"


class Outcome(NamedTuple):
    status: int
    reason: str
    exec_error: int | None = None
    limit_reached: bool = False


class Supervisor:
    def __init__(
        self,
        *,
        settings: RunSettings,
        recorder: Recorder,
        engine: Engine,
        launched: Launch,
        front: Channel,
        front_pid: int,
        waited_for_pid: int,
    ) -> None:
        self._recorder = recorder
        self._launched = launched
        self._front = front
        self._waited_for_pid = waited_for_pid
        self._bootloader_pid = 0 if waited_for_pid == front_pid else waited_for_pid
        self._front_stopped = False
        self._front_heard_out = False
        self._front_watched = True
        self._loop = Loop()
        self._processes = Processes(self._loop, self._on_end)
        self._approvals = Approvals(
            loop=self._loop,
            recorder=recorder,
            mode=settings.approvals,
            timeout_s=settings.approval_timeout_s,
        )
        self._listener = launched.listener
        if launched.listener is not None:
            self._recordings = Recordings(
                loop=self._loop, recorder=recorder, listener=launched.listener
            )
            self._execs = ExecGate(
                listener=launched.listener,
                recorder=recorder,
                engine=engine,
                processes=self._processes,
                approvals=self._approvals,
                recordings=self._recordings,
                loop=self._loop,
                waits_through_signals=launched.waits_through_signals,
                end_run=self._end_for_limit,
            )
            self._signals = SignalGate(
                listener=launched.listener,
                recorder=recorder,
                engine=engine,
                processes=self._processes,
                sigwrap_pids=frozenset({os.getpid(), front_pid, waited_for_pid}),
                approvals=self._approvals,
                recordings=self._recordings,
                loop=self._loop,
            )
            self._births = BirthGate(
                listener=launched.listener,
                recorder=recorder,
                limits=engine.policy.limits,
                loop=self._loop,
            )
        self._limits = engine.policy.limits
        self._grace_s = settings.grace_s
        self._child_signals = SignalFd({signal.SIGCHLD})
        self._front_pidfd = os.pidfd_open(front_pid)
        self._phase = _Phase.RUNNING
        self._command_status: int | None = None
        self._exec_error: int | None = None
        self._interrupted = False
        self._limit_reached = False
        self._reason = ""

    def run(self) -> Outcome:
        loop = self._loop
        self._processes.adopt_command(self._launched.pid)
        loop.watch(self._child_signals.fd, self._on_children)
        loop.watch(self._front.fd, self._on_front)
        loop.watch(self._front_pidfd, self._on_front_gone)
        loop.watch(self._launched.channel.fileno(), self._on_launch_result)
        if self._listener is not None:
            loop.watch(self._listener.fd, self._on_request, last=True)
        if self._limits.wall_time_s:
            deadline_s = time.monotonic() + self._limits.wall_time_s
            self._loop.call_at(deadline_s, self._on_wall_time)
        self._launched.go()
        log = self._recorder.log
        try:
            while self._phase is not _Phase.OVER:
                busy = loop.turn(_IDLE_S if log.pending else None)
                if not busy or log.wants_fold:
                    log.fold()
                if not busy:
                    log.checkpoint()
        finally:
            self._approvals.close()
            if self._launched.listener is not None:
                self._recordings.close()
                self._births.close()
        self._hear_front_out()
        return Outcome(
            status=self._exit_status(),
            reason=self._reason or self._how_it_ended(),
            exec_error=self._exec_error,
            limit_reached=self._limit_reached,
        )

    # Requests

    def _on_request(self, happened: int) -> None:
        listener = self._listener
        if listener is None:
            return
        if not happened & select.EPOLLIN:  # the last process under the filter is gone
            self._loop.unwatch(listener.fd)
            listener.close()
            self._listener = None
            return
        request = listener.receive()
        if request is None:
            return
        try:
            self._answer(listener, request)
        except KernelError:
            raise
        except Exception:
            listener.fail(request.id, errno.EPERM)  # fail closed before the loop ends
            raise

    def _answer(self, listener: Listener, request: Request) -> None:
        sender = self._processes.of_thread(request.tid)
        if sender is None:
            # It ended while it waited; if it still waits, it is not where it should be.
            listener.fail(request.id, errno.EPERM)
            return
        match NAMES[request.arch].get(request.number):
            case None:
                self._refuse_abi(listener, request, sender)
            case "execve" | "execveat":
                self._execs.answer(request, sender)
                if self._execs.holds(request.tid):
                    self._await_exec_stop()
            case "fork" | "vfork" | "clone":
                self._births.answer(request, sender)
            case _:
                self._signals.answer(request, sender)

    def _refuse_abi(self, listener: Listener, request: Request, sender: Process) -> None:
        payload = {"syscall_number": request.number & ~X32_BIT, "comm": sender.comm}
        self._recorder.record("abi_refused", sender.pid, payload)
        listener.fail(request.id, errno.ENOSYS)

    # Ends

    def _on_end(self, process: Process, wait_status: int | None) -> None:
        if self._launched.listener is not None:
            self._recordings.forget(process)
        if self._listener is not None:
            self._signals.forget(process)
        code = killer = None
        if wait_status is not None:
            if os.WIFSIGNALED(wait_status):
                killer = os.WTERMSIG(wait_status)
            else:
                code = os.WEXITSTATUS(wait_status)
        self._recorder.record(
            "process_exited",
            process.pid,
            {
                "ppid": process.ppid,
                "comm": process.last_name,
                "depth": process.depth,
                "exit_code": code,
                "signal": killer,
                "signal_name": None if killer is None else signal_name(killer),
            },
        )

    def _await_exec_stop(self) -> None:
        """A moment: mostly it comes sooner than we would fall asleep and be woken again. Whoever
        else wants the processor gets it meanwhile."""
        until_ns = time.perf_counter_ns() + _EXEC_STOP_COMES_WITHIN_NS
        while time.perf_counter_ns() < until_ns:
            os.sched_yield()
            if self._child_signals.read():
                self._take_children()
                return

    def _on_children(self, _happened: int) -> None:
        self._child_signals.read()
        self._take_children()

    def _take_children(self) -> None:
        for _ in range(_CHILDREN_A_TURN):
            try:
                pid, wait_status = os.waitpid(-1, _ENDS_AND_STOPS)
            except ChildProcessError:  # orphans come to us, so there is no process left at all
                self._phase = _Phase.OVER
                self._loop.turn(0)  # the last ends, which are events already
                return
            if pid == 0:
                return
            if os.WIFSTOPPED(wait_status) or os.WIFCONTINUED(wait_status):
                if self._launched.listener is not None and self._execs.on_stop(pid, wait_status):
                    continue  # of a thread that the exec gate traces
                if pid == self._launched.pid:
                    self._mirror_stop(wait_status)
                continue
            if self._launched.listener is not None:
                self._execs.on_end(pid)
            self._reaped(pid, wait_status)
        # Children that end as fast as they are reaped must not keep the others waiting.
        self._loop.call_at(time.monotonic(), self._take_children)

    def _reaped(self, pid: int, wait_status: int) -> None:
        self._processes.reaped(pid, wait_status)
        if pid == self._launched.pid:
            self._command_status = wait_status
            self._continue_front()
            self._clear_leftovers()

    def _mirror_stop(self, wait_status: int) -> None:
        """A shell waits for the front process, so that one has to stop and go on as COMMAND does.
        Both from here: a SIGSTOP by itself could come after our SIGCONT and would last."""
        if os.WIFCONTINUED(wait_status):
            self._continue_front()
            return
        number = os.WSTOPSIG(wait_status)
        if number == signal.SIGSTOP or self._approvals.holds_terminal:
            return
        if self._bootloader_stops_at(number):
            return
        found = procfs.stat(self._launched.pid)
        if found is not None and found.state == "T":
            # Else a shell has continued it by now: a stop that comes late would look like another.
            self._front_stopped = kernel_process.send(self._waited_for_pid, signal.SIGSTOP)

    def _bootloader_stops_at(self, number: int) -> bool:
        """Where the whole group got the signal, which is blocked here, it stops by itself; a stop
        of ours on top could come after the shell's SIGCONT."""
        return (
            self._bootloader_pid != 0
            and number in signal.sigpending()
            and number not in procfs.caught_signals(self._bootloader_pid)
        )

    def _continue_front(self) -> None:
        if self._front_stopped:
            self._front_stopped = False
            kernel_process.send(self._waited_for_pid, signal.SIGCONT)

    def _clear_leftovers(self) -> None:
        """A process that COMMAND left behind may end in its own way, for a moment."""
        if self._phase is _Phase.RUNNING:
            self._phase = _Phase.CLEARING
            for pid in kernel_process.descendants(os.getpid()):
                kernel_process.send(pid, signal.SIGTERM)
                kernel_process.send(pid, signal.SIGCONT)
            self._loop.call_at(time.monotonic() + _LEFTOVERS_GRACE_S, self._end_tree)

    def _end_tree(self) -> None:
        if self._launched.listener is not None:
            self._births.stop()
        if not kernel_process.kill_descendants(os.getpid(), self._reaped, timeout_s=_SWEEP_S):
            self._loop.call_at(time.monotonic(), self._end_tree)

    # Limits

    def _on_wall_time(self) -> None:
        maximum = self._limits.wall_time_s
        facts = {"limit": "wall_time", "maximum": maximum, "effect": "terminated"}
        self._end_for_limit(f"wall_time: {maximum} s are over", facts)

    def _end_for_limit(self, reason: str, facts: Payload) -> None:
        """SIGTERM to COMMAND, and after the grace the end of all."""
        if self._phase is not _Phase.RUNNING or self._limit_reached:
            return
        self._recorder.record("limit_exceeded", self._launched.pid, {**facts, "reason": reason})
        if not self._interrupted:
            self._limit_reached = True
            self._reason = reason
        self._approvals.stop_asking("a limit of the policy was reached")
        kernel_process.send(self._launched.pid, signal.SIGTERM)
        kernel_process.send(self._launched.pid, signal.SIGCONT)
        self._loop.call_at(time.monotonic() + self._grace_s, self._end_tree)

    # The front process

    def _on_launch_result(self, _happened: int) -> None:
        channel = self._launched.channel
        self._exec_error = self._launched.exec_failure()
        self._loop.unwatch(channel.fileno())
        channel.close()

    def _on_front(self, _happened: int) -> None:
        for message in self._front.receive():
            self._obey(message)
        if self._front.is_closed and self._front_watched:
            self._front_watched = False
            self._loop.unwatch(self._front.fd)

    def _obey(self, message: Message) -> None:
        match message:
            case InterruptBegan():
                self._interrupted = True
                self._approvals.stop_asking("sigwrap was interrupted")
                self._recorder.record(
                    "interrupt_received",
                    message.sender_pid,
                    {
                        "signal": message.number,
                        "signal_name": signal_name(message.number),
                        "origin": "terminal" if message.from_terminal else "process",
                        "sender_pid": message.sender_pid,
                        "sender_cmd": message.sender_cmd,
                    },
                )
            case SignalForCommand():
                self._pass_on(message.number)
            case KillTree():
                self._escalate(message.reason)
            case NothingMore():
                self._front_heard_out = True
            case _:
                raise ValueError(f"not for the supervisor: {message}")

    def _hear_front_out(self) -> None:
        """An interrupt that reached it before COMMAND ended is why COMMAND ended."""
        self._front.send(CommandEnded())
        poll = select.poll()
        poll.register(self._front.fd, select.POLLIN)
        deadline = time.monotonic() + _LAST_WORDS_S
        while (
            not (self._front_heard_out or self._front.is_closed)
            and (left_s := deadline - time.monotonic()) > 0
        ):
            ready = poll.poll(left_s * 1000)
            if not ready or not ready[0][1] & select.POLLIN:
                return
            self._on_front(ready[0][1])

    def _pass_on(self, number: int) -> None:
        command = self._launched.pid
        found = procfs.stat(command)
        if self._command_status is not None or found is None or found.has_ended:
            return
        payload = {"signal": number, "signal_name": signal_name(number)}
        self._recorder.record("interrupt_forwarded", command, payload)
        kernel_process.send(command, number)
        if number == signal.SIGTERM:
            kernel_process.send(command, signal.SIGCONT)  # a stopped job can't end

    def _escalate(self, reason: str) -> None:
        alive = kernel_process.descendants(os.getpid())
        payload = {"reason": reason, "processes": len(alive)}
        self._recorder.record("interrupt_escalated", self._launched.pid, payload)
        self._reason = f"killed: {reason}"
        self._end_tree()

    def _on_front_gone(self, _happened: int) -> None:
        self._loop.unwatch(self._front_pidfd)
        self._escalate("the front process died")

    # The end of the run

    def _exit_status(self) -> int:
        if self._limit_reached:
            return status.LIMIT_REACHED
        if self._interrupted:
            return status.INTERRUPTED
        if self._exec_error is not None:
            return status.NOT_FOUND if self._exec_error == errno.ENOENT else status.NOT_EXECUTABLE
        if self._command_status is None:
            return status.REFUSED
        if os.WIFSIGNALED(self._command_status):
            return status.from_signal(os.WTERMSIG(self._command_status))
        return os.WEXITSTATUS(self._command_status)

    def _how_it_ended(self) -> str:
        if self._interrupted:
            return "interrupted"
        if self._exec_error is not None:
            return f"COMMAND could not be executed: {os.strerror(self._exec_error)}"
        if self._command_status is not None and os.WIFSIGNALED(self._command_status):
            return f"COMMAND died of {signal_name(os.WTERMSIG(self._command_status))}"
        return "COMMAND ended"
