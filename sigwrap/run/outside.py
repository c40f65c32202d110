"""Who listens at the other end of a connection, where that is nobody of the session's.

Told apart as the kernel does it: by the pid that called listen(2). For the session itself that is a
child of the supervisor's, and what it listens at was noted (linux/sockets/own_servers.py), in case
somebody else has its number by now.
"""

from __future__ import annotations

import os

from sigwrap.linux import procfs
from sigwrap.linux.file_state import inode_of_descriptor
from sigwrap.linux.sockets import ours
from sigwrap.linux.sockets.look import Looked
from sigwrap.linux.sockets.own_connections import OwnConnections
from sigwrap.linux.sockets.own_servers import OwnServers
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.network_facts import Outside
from sigwrap.policy.judge.network import Endpoint
from sigwrap.run.processes import Processes

_MOST_KNOWN = 200
_MOST_NUMBERS = 10_000


class Listeners:
    def __init__(
        self, processes: Processes, own_servers: OwnServers, sigwrap_pids: frozenset[int]
    ) -> None:
        self._processes = processes
        self._own_servers = own_servers
        self._own_connections = OwnConnections()
        self._sigwrap_pids = sigwrap_pids
        self._supervisor = os.getpid()
        self._uid = os.geteuid()
        self._known: dict[int, Outside] = {}  # by its pid
        self._listened_for: dict[int, None] = {}

    def note_server(self, fd: int) -> None:
        """A socket of the session listens. In whose place listen(2) was called, the kernel names a
        child of ours that has ended since."""
        pid, _uid = ours.listener(fd)
        self._listened_for[pid] = None
        if len(self._listened_for) > _MOST_NUMBERS:
            del self._listened_for[next(iter(self._listened_for))]

    def connects(self, looked: Looked, caller: Process) -> None:
        """Before its socket is connected."""
        self._own_connections.begin(looked.held, caller.pid)

    def connects_no_more(self, looked: Looked) -> None:
        """An attempt is over. OSError where the kernel doesn't tell."""
        is_to_ours = False
        try:
            is_to_ours = ours.listener(looked.held)[0] == self._supervisor
        finally:
            self._own_connections.end(looked.held, is_to_ours=is_to_ours)

    def outside(self, looked: Looked, pid: int, uid: int) -> Outside | None:
        """`looked`: its socket is connected now, to where `pid` listens."""
        if uid != self._uid or pid in self._sigwrap_pids or self._processes.has(pid):
            return None
        if pid in self._listened_for and ((found := procfs.stat(pid)) is None or found.has_ended):
            return None
        return None if self._is_own(looked) else self._by_pid(pid)

    def _is_own(self, looked: Looked) -> bool:
        assert looked.kind is not None, "it is connected"
        if looked.place >= 0:
            return self._own_servers.has_file(inode_of_descriptor(looked.place))
        name = looked.aim.socket if isinstance(looked.aim, Endpoint) else ""
        return self._own_servers.has_name(name, looked.kind.type)

    def _by_pid(self, pid: int) -> Outside | None:
        found = procfs.stat(pid) if pid > 0 else None
        if found is None or found.has_ended:
            return Outside(pid)
        known = self._known.get(pid)
        if known is not None and known.start_time == found.start_time:
            return known
        if self._processes.of_pid(pid) is not None:
            return None
        words = procfs.arguments(pid)
        self._known[pid] = outside = Outside(pid, found.start_time, found.comm, words)
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return outside
