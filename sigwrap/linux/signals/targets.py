"""Finds the process of a number, and what it is to the sender."""

from __future__ import annotations

import os

from sigwrap.hints import Protocol
from sigwrap.linux import pidns, proc_files, procfs
from sigwrap.linux.peer import FORK_SERVER_NAME
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.lineage import (
    SIGWRAP_ITSELF,
    Process,
    Types,
    types_inside,
    types_outside,
)


class ProcessTable(Protocol):
    """The processes of the session."""

    command: Process | None

    def holds(self, pid: int) -> bool: ...

    def target(self, number: int) -> Process | None: ...


class Targets:
    def __init__(self, processes: ProcessTable, sigwrap_pids: frozenset[int]) -> None:
        self._processes = processes
        self._sigwrap_pids = sigwrap_pids
        self._our_level = pidns.level(os.getpid())
        found = procfs.stat(os.getpid())
        self._own_image = None if found is None else found.image

    def of_number(self, sender: Process, number: int) -> SignalTarget | None:
        """Return the process with the sender's number, None if there is none."""
        if number == sender.pid and self._shares_our_numbers(sender):
            return self._inside(sender, sender)
        if not self._shares_our_numbers(sender):
            translated = pidns.process(sender.pid, number)
            if translated is None:
                return None
            number = translated
        return self.of_pid(sender, number)

    def of_pid(self, sender: Process, pid: int) -> SignalTarget | None:
        if pid in self._sigwrap_pids:
            return self._outside(sender, pid, SIGWRAP_ITSELF)
        process = self._processes.target(pid)
        if process is not None:
            refresh_comm(process)
            if process.comm == FORK_SERVER_NAME and self._is_before_its_exec(process):
                return self._outside(sender, process.pid, SIGWRAP_ITSELF)
            return self._inside(sender, process)
        tgid = procfs.tgid(pid)
        if tgid is None:
            return None
        if tgid in self._sigwrap_pids:
            return self._outside(sender, tgid, SIGWRAP_ITSELF)
        return self._outside(sender, tgid, None)

    def _is_before_its_exec(self, process: Process) -> bool:
        """Return whether it is still a copy of sigwrap's fork server, with all that has open.

        Only such a copy hides its image.
        """
        if process.ppid not in self._sigwrap_pids:
            return False
        found = procfs.stat(process.pid)
        return not process.argv or found is None or found.image == self._own_image

    def of_group(self, sender: Process, number: int) -> list[SignalTarget]:
        """Return the members of a group with the sender's number; 0 is the sender's own group."""
        group = self.groups_number(sender, number)
        return [] if group is None else self.of_group_led_by(sender, group)

    def groups_number(self, sender: Process, number: int) -> int | None:
        """Return our number of a group; 0 is the sender's own group."""
        if number == 0:
            found = procfs.stat(sender.pid)
            return None if found is None else found.pgrp
        if self._shares_our_numbers(sender):
            return number
        return pidns.group(sender.pid, number)

    def of_group_led_by(self, sender: Process, group: int) -> list[SignalTarget]:
        members = [
            pid
            for pid in proc_files.all_pids()
            if (found := procfs.stat(pid)) is not None and found.pgrp == group
        ]
        targets = (self.of_pid(sender, pid) for pid in members)
        return [target for target in targets if target is not None]

    def threads_number(self, sender: Process, number: int) -> int:
        """Return our number of a thread, 0 if there is none."""
        if self._shares_our_numbers(sender):
            return number
        return pidns.process(sender.pid, number) or 0

    def own_number(self, sender: Process) -> int:
        """Return the sender's pid in its own namespace."""
        if self._shares_our_numbers(sender):
            return sender.pid
        return next(reversed(procfs.numbers(sender.pid, "NSpid")), 0)

    def is_known_inside(self, sender: Process, number: int) -> bool:
        """Return whether it is surely inside, without a look at /proc."""
        return self._processes.holds(number) and self._shares_our_numbers(sender)

    def is_inside(self, pid: int) -> bool:
        return pid not in self._sigwrap_pids and self._processes.target(pid) is not None

    def _shares_our_numbers(self, sender: Process) -> bool:
        if not sender.pid_namespace:
            sender.pid_namespace = pidns.level(sender.pid)
        return sender.pid_namespace == self._our_level

    def _inside(self, sender: Process, process: Process) -> SignalTarget:
        refresh_comm(process)
        types = types_inside(sender, process, self._processes.command)
        return SignalTarget(process.pid, process.start_time, process.comm, types, 0)

    def _outside(self, sender: Process, pid: int, types: Types | None) -> SignalTarget | None:
        found = procfs.stat(pid)
        if found is None:
            return None
        if types is None:
            types = types_outside(
                is_system=pid == 1 or found.is_kernel_thread,
                same_user=_same_user(sender.pid, pid),
            )
        return SignalTarget(pid=pid, start_time=found.start_time, comm=found.comm, types=types)


def refresh_comm(process: Process) -> None:
    """Read the name again after an exec."""
    if not process.comm_is_current:
        process.comm = procfs.comm(process.pid) or process.comm
        process.comm_is_current = True


def _same_user(one: int, other: int) -> bool:
    first, second = procfs.credentials(one), procfs.credentials(other)
    return first is not None and second is not None and first.real_uid == second.real_uid
