"""A ptrace call that asks for no stop after execs is made again with PTRACE_O_TRACEEXEC.

Its caller is stopped on its way out of the call, which is about to be restarted, and its register
is changed; at the end of the call it gets its register back, for the kernel leaves all but the
result as they were.
"""

from __future__ import annotations

import os

from sigwrap import calls
from sigwrap.bare import signal
from sigwrap.linux import ptrace
from sigwrap.linux.registers import LAYOUT, Registers
from sigwrap.linux.seccomp import Notification

_STOPS_AT_MOST = 1000  # a signal's handler may go first, and may never return


class BlindTracer:
    """A state machine: a stop of the caller in, its next move out."""

    __slots__ = ("_after", "_as_it_was", "_number", "_register", "_stops", "_tid")

    def __init__(self, notification: Notification) -> None:
        self._tid = notification.tid
        self._number = notification.number
        self._after = notification.instruction_pointer
        self._register = LAYOUT.argument(notification.arch, 3)
        self._as_it_was: Registers = {}
        self._stops = 0

    def on_stop(self, wait_status: int, signal_number: int) -> bool:
        """Whether this is over: then the caller still stands. KernelError: it was killed."""
        event, stop = wait_status >> 16, os.WSTOPSIG(wait_status)
        self._stops += 1
        is_called_off = event == ptrace.EVENT_EXIT or self._stops > _STOPS_AT_MOST
        if is_called_off or (event == ptrace.EVENT_STOP and stop != signal.SIGTRAP):
            self._put_back()  # where its process stops, the call comes again as it was
            return True
        if not self._as_it_was:
            is_over = not self._change()
        else:
            is_at_a_call = not event and stop == ptrace.SYSCALL_STOP
            is_over = is_at_a_call and self._is_back() and self._put_back()
        if not is_over:
            ptrace.resume_to_syscall(self._tid, signal_number)
        return is_over

    def _is_back(self) -> bool:
        return ptrace.syscall_begun(self._tid) is None

    def _change(self) -> bool:
        values = ptrace.registers(self._tid)
        if not LAYOUT.is_in(values, self._number, self._after):
            return False
        self._as_it_was = values
        changed = LAYOUT.again(values) | {self._register: self._changed()}
        ptrace.set_registers(self._tid, changed)
        return True

    def _put_back(self) -> bool:
        """Whether it is in that very call: a handler's calls are others."""
        before = self._as_it_was
        if not before:
            return False
        values = ptrace.registers(self._tid)
        if values[self._register] != self._changed():
            return False
        if not LAYOUT.is_same_place(values, before):
            return False
        ptrace.set_registers(self._tid, values | {self._register: before[self._register]})
        return True

    def _changed(self) -> int:
        return self._as_it_was[self._register] | calls.PTRACE_O_TRACEEXEC
