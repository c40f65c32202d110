"""Find the other end of a connection: its host names, and the process that listens there.

The supervisor resolves the policy's names itself, because the session's own lookups prove nothing.
A connection to an address without a known name waits for one more lookup.

The kernel names the process that called listen(2). For the session, that is a child of the
supervisor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING, TypeVar, socket
from sigwrap.kernel import peer, procfs
from sigwrap.kernel.file_state import Inode, inode_of
from sigwrap.kernel.peer import Named, file_of, is_there, named, number_of
from sigwrap.network import call
from sigwrap.policy.judge.network import Endpoint, packed_address
from sigwrap.session.effects import LookUpNames, Outside
from sigwrap.session.lineage import Process
from sigwrap.session.loop import Done, Lane, Outcome
from sigwrap.session.perform import PAUSED, Performer, Request

if TYPE_CHECKING:
    from sigwrap.network.look import SocketFacts
    from sigwrap.session.session import Session

_LOOKUP_EVERY_S = 1.0
_LOOKUP_WITHIN_S = 5.0
_KEPT_S = 600.0
_MOST_CONNECTIONS = 1000
_MOST_SERVERS = 1000
_MOST_LISTENED_FOR = 10_000

_File = tuple[int, int]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class HostNames:
    """The addresses that the policy's host names have had in the last ten minutes."""

    def __init__(self, session: Session, performer: Performer) -> None:
        self._names = sorted(session.engine.network.names)
        self._pool = session.pool
        self._performer = performer
        self._seen_s: dict[bytes, dict[str, float]] = {}  # address -> names, and when
        self._pending = 0  # names that a connection may wait for
        self._in_use: set[str] = set()  # names that a worker looks up, even if it is late
        self._looked_s = -_LOOKUP_EVERY_S
        self._waiting: list[tuple[Request, bytes]] = []

    def of(self, address: bytes) -> frozenset[str]:
        oldest_s = time.monotonic() - _KEPT_S
        seen = self._seen_s.get(address, {})
        return frozenset(name for name, at_s in seen.items() if at_s > oldest_s)

    def look_up(self, request: Request, effect: LookUpNames) -> object:
        """Return the names of the address, after all lookups are done or late; at once if the last
        lookups began less than a second ago."""
        now_s = time.monotonic()
        if not self._in_use and now_s - self._looked_s >= _LOOKUP_EVERY_S:
            self._looked_s = now_s
            self._forget_before(now_s - _KEPT_S)
            self._begin()
        if not self._pending:
            return self.of(effect.address)
        self._waiting.append((request, effect.address))
        return PAUSED

    def _forget_before(self, oldest_s: float) -> None:
        """Forget old addresses: a name can get a new one each time."""
        for address, names in tuple(self._seen_s.items()):
            for name in [name for name, at_s in names.items() if at_s <= oldest_s]:
                del names[name]
            if not names:
                del self._seen_s[address]

    def _begin(self) -> None:
        self._pending, self._in_use = len(self._names), set(self._names)
        for name in self._names:
            self._look_up(name)

    def _look_up(self, name: str) -> None:
        def keep(addresses: set[bytes]) -> None:
            now_s = time.monotonic()
            for address in addresses:
                self._seen_s.setdefault(address, {})[name] = now_s

        def then(outcome: Outcome) -> None:
            if isinstance(outcome, Done):
                keep(outcome.value)
            self._pending -= 1
            if not self._pending:
                waiting, self._waiting = self._waiting, []
                for request, address in waiting:
                    self._performer.wake(request, self.of(address))

        self._pool.run(
            _resolver(name),
            then,
            lane=Lane.NAMES,
            deadline_s=_LOOKUP_WITHIN_S,
            drop=keep,
            over=lambda: self._in_use.discard(name),
        )


def _resolver(name: str) -> Callable[[], set[bytes]]:
    def resolve() -> set[bytes]:
        # As bytes: importing the codec for non-ASCII names takes long.
        found = socket.getaddrinfo(name.encode(), None, 0, socket.SOCK_STREAM)
        texts = (str(address[0]).partition("%")[0] for *_, address in found)
        return {packed for text in texts if (packed := packed_address(text)) is not None}

    return resolve


class Servers:
    """Tells the servers of the session from other processes that listen on unix sockets, and names
    the caller of a connection to one of sigwrap's own sockets: sigwrap makes it, so the kernel
    names sigwrap.

    Servers of the session do not lead outside it, whatever the names of their sockets. sigwrap
    notes each one when it begins to listen. Before a connection counts as one to it, sigwrap asks
    the kernel whether it still exists, because another file can get the file's number.
    """

    def __init__(self, session: Session) -> None:
        self._processes = session.processes
        self._sigwrap_pids = session.facts.sigwrap_pids
        self._supervisor_pid = os.getpid()
        self._uid = os.geteuid()
        self._made: dict[int, int] = {}  # by the number of the caller's end -> its pid
        # By their files, or their names and types: each type has its own names.
        self._servers: dict[_File | tuple[str, int], Named] = {}
        # Children that called listen(2) for them: pid -> what tells it from others of that pid.
        self._listened_for: dict[int, int] = {}
        peer.we_connect_for(self._caller_of)

    def note(self, looked: SocketFacts) -> None:
        """Note a server of the session. A connection shows the child that listened for it even if
        the server has closed its socket since, or is in another network namespace."""
        assert looked.kind is not None, "it listens"
        pid, _uid = call.listener(looked.held)
        number, _has_ended = call.identity_of_listener(looked.held)
        _keep(self._listened_for, pid, number, _MOST_LISTENED_FOR)
        server, name = named(looked.held), _name_of(looked)
        key = (name, looked.kind.type) if name.startswith("@") else file_of(server)
        if key is not None:
            _keep(self._servers, key, server, _MOST_SERVERS)

    def has_file(self, inode: Inode) -> bool:
        device, number = inode
        major, minor = device >> 32, device & 0xFFFFFFFF
        file = number & 0xFFFFFFFF, major << 20 | minor
        server = self._servers.get(file)
        return server is not None and file_of(server) == file

    def has_name(self, name: str, kind: int) -> bool:
        server = self._servers.get((name, kind))
        return server is not None and is_there(server)

    def connects(self, looked: SocketFacts, caller: Process) -> None:
        """Note a connection before it is made. The other end can be a socket of sigwrap, which may
        need that before the call returns."""
        number = number_of(looked.held)
        self._made.pop(number, 0)  # the newest is last
        _keep(self._made, number, caller.pid, _MOST_CONNECTIONS)

    def outside(self, looked: SocketFacts, pid: int, uid: int) -> Outside | None:
        """Return the process outside the session that a new connection reaches, or None. `pid` and
        `uid` are the listener's, as reported by the kernel."""
        if uid != self._uid:
            return None
        number, has_ended = call.identity_of_listener(looked.held)
        if not has_ended and (pid in self._sigwrap_pids or self._processes.has(pid)):
            return None
        found = procfs.stat(pid) if pid > 0 and not has_ended else None
        if found is not None and found.has_ended:
            found = None
        # The child that listened for a server ends after its answer, so it may still run.
        may_be_it = found is None or found.ppid == self._supervisor_pid
        kept = self._listened_for.get(pid)
        if may_be_it and kept is not None and number in (0, kept):
            return None
        if self._is_own(looked):
            return None
        if found is None:
            return Outside(pid)
        if self._processes.of_pid(pid) is not None:
            return None
        return Outside(pid, found.start_time, found.comm, procfs.arguments(pid))

    def _is_own(self, looked: SocketFacts) -> bool:
        assert looked.kind is not None, "it is connected"
        if looked.place >= 0:
            return self.has_file(inode_of(looked.place))
        return self.has_name(_name_of(looked), looked.kind.type)

    def _caller_of(self, accepted: socket.socket) -> int:
        return self._made.pop(peer.peer_of(number_of(accepted.fileno())), 0)


def _name_of(looked: SocketFacts) -> str:
    return looked.aim.socket if isinstance(looked.aim, Endpoint) else ""


def _keep(kept: dict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    """Keep the newest ones."""
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]
