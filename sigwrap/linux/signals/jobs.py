"""Groups, terminals and tracers: whether a call stays with what is the session's own.

Who joins a group and reads the terminal in the background stops the whole group, and the group in
the foreground gets what the keys send. The group that sigwrap was started in counts as the
session's own: COMMAND is in it.
"""

from __future__ import annotations

import errno
import os
import stat

from sigwrap import calls
from sigwrap.bare import signal
from sigwrap.linux import procfs
from sigwrap.linux.file_state import device_of
from sigwrap.linux.seccomp import Notification, int32
from sigwrap.linux.signals import owners, terminals
from sigwrap.linux.signals.call import F_OWNER_PGRP, F_OWNER_PID, SignalCall
from sigwrap.linux.signals.targets import Targets
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.signal_facts import Aim, Group, NoOwner, NotOwn, Own, OwnInMemory, WhoeverOwns

_DEV_TTY, _DEV_PTMX = (5, 0), (5, 2)


class Jobs:
    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._group = os.getpgrp()  # for a question, the supervisor leaves it for a while
        self._session = os.getsid(0)

    def joins(self, sender: Process, call: SignalCall) -> Aim:
        if call.thread == 0 and -call.target == self._targets.own_number(sender):
            return Own()
        return self._group_of(sender, -call.target)

    def gets_terminal(self, tid: int, sender: Process, call: SignalCall) -> Aim:
        found = procfs.stat(sender.pid)
        if found is None or found.session != self._session:
            return Own()  # the kernel demands a group of the caller's own session
        aim = self._group_of(sender, -call.target)
        # A background job that asks for it is stopped by the kernel, and nothing happens.
        _, foreground = procfs.terminal(sender.pid) or (0, 0)
        if isinstance(aim, Own) and (
            found.pgrp == foreground or procfs.is_deaf_to(tid, signal.SIGTTOU)
        ):
            return OwnInMemory(self._targets.groups_number(sender, -call.target) or 0)
        return aim

    def descriptors_error(self, notification: Notification, sender: Process) -> int:
        """What the kernel says of the descriptor, which it looks at before it looks at memory and
        numbers; 0 where it is a good one."""
        try:
            path = b"/proc/%d/fd/%d" % (notification.tid, int32(notification.argument0))
            kind, major, minor = device_of(path)
        except FileNotFoundError:
            return errno.EBADF
        except OSError:
            return 0
        match notification.argument1 & 0xFFFFFFFF:
            case calls.FIOSETOWN | calls.SIOCSPGRP:
                return 0 if kind == stat.S_IFSOCK else errno.ENOTTY
            case calls.TIOCSPGRP:
                number = procfs.controlling_terminal(sender.pid) or 0
                own = os.major(number), os.minor(number)
                is_own = (major, minor) in (own, _DEV_TTY, _DEV_PTMX)
                return 0 if kind == stat.S_IFCHR and number and is_own else errno.ENOTTY
            case _:
                return 0

    def takes_terminal(self, held: int) -> Aim:
        terminal = terminals.number(held)
        if os.geteuid() != 0 or not terminal:  # it takes CAP_SYS_ADMIN
            return Own()
        users = terminals.users(terminal)
        return Own() if all(map(self._targets.is_inside, users)) else NotOwn()

    def traced_by_parent(self, sender: Process) -> Aim:
        found = procfs.stat(sender.pid)
        parent = None if found is None else self._targets.of_pid(sender, found.ppid)
        return Own() if parent is not None and parent.is_inside else NotOwn()

    def signals_owner(self, sender: Process, call: SignalCall) -> tuple[SignalCall, Aim]:
        """Where it has none, the call says whom the kernel would make its owner."""
        kind, number = owners.owner(call.held)
        if not number and call.flags & calls.O_ASYNC and terminals.is_device(call.held):
            kind, number = F_OWNER_PID, sender.pid
            terminal = terminals.number(call.held)
            if terminal and not terminals.is_other_end(call.held):
                group = terminals.foreground_group(terminal)
                kind, number = (F_OWNER_PGRP, group) if group else (kind, number)
            call = call._replace(owner_kind=kind, target=number)
        return call, self._reached(sender, kind, number)

    def owner_signalled(self, sender: Process, call: SignalCall) -> Aim:
        """An owner outside can be one that the descriptor had before it came here."""
        aim = self._reached(sender, *owners.owner(call.held))
        match aim:
            case SignalTarget() if not aim.is_inside:
                return aim
            case Group(members=members) if not all(member.is_inside for member in members):
                return aim
            case _:
                return WhoeverOwns()

    def _reached(self, sender: Process, kind: int, number: int) -> Aim:
        if not number:
            return NoOwner()
        if kind == F_OWNER_PGRP:
            members = self._targets.of_group_led_by(sender, number)
            return Group(tuple(members)) if members else NoOwner()
        return self._targets.of_pid(sender, number) or NoOwner()

    def _group_of(self, sender: Process, number: int) -> Aim:
        group = self._targets.groups_number(sender, number)
        if group is None:
            return WouldFail(errno.EPERM)
        if group == self._group:
            return Own()
        leader = self._targets.of_pid(sender, group)
        if leader is not None and leader.is_inside:
            return Own()
        members = self._targets.of_group_led_by(sender, group)
        if not members:
            return WouldFail(errno.EPERM)
        return Own() if all(member.is_inside for member in members) else NotOwn()
