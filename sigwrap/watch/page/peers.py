"""Who is at the other end of a TCP connection on loopback, and whether it is supervised.

TCP has no SO_PEERCRED. The kernel tells the number of the socket that has the other end
(linux/sockets/tcp_diag.py), and /proc which processes have that one open; each of these is held by
a pidfd while it is looked at, so that no other has its number by then. A socket that no process
shows is nobody's, and refused: one on its way in a message, in a table that a thread has for
itself, in another network namespace, or of a user whom we may not look at.

Looking through all of /proc takes some milliseconds. So those processes that came before are looked
at first: a browser is found at once, and so is whoever is refused again and again. All the others
that wait are looked for together, on a thread, and one such search follows the other only after a
pause: whoever connects all the time holds neither the loop nor a processor.

Somebody outside who connects and hands the connection into a session, or forwards what is sent to a
port of its own, lends out their own right, as with linux/peer.py. Against those the page has its
cookie.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice

from sigwrap.linux import proc_files, procfs
from sigwrap.linux.peer import Peer, carries_more_filters_than_us, has_supervisor_above
from sigwrap.linux.pidfd import has_ended
from sigwrap.linux.sockets.tcp_diag import Owner, owner_of
from sigwrap.run.loop import Loop
from sigwrap.watch.page.helpers import Helpers

Address = tuple[str, int]

WAY_OUT = "use sigwrap serve --socket FILE, and ssh -L 8000:FILE from another machine"
_INSIDE = "it is inside a supervised session"
_FILTERED = (
    "it runs under a filter that this shell doesn't, as a supervised process does, and browsers of "
    f"snap and flatpak: use another browser, or {WAY_OUT}"
)
_NOT_FOUND = f"it can't be seen which process this connection belongs to: {WAY_OUT}"
_REMEMBERED = 6
_FIRST_DESCRIPTORS = 1_000  # looked at in a process that came before
_MOST_DESCRIPTORS = 400_000  # in all of /proc
_SEARCH_AT_MOST_S = 2.0
_PAUSE_S = 0.1


class Peers:
    def __init__(self, loop: Loop, helpers: Helpers) -> None:
        self._loop = loop
        self._helpers = helpers
        self._good: list[int] = []  # processes that came before, the latest first
        self._bad: list[int] = []
        self._waiting: list[tuple[Owner, Callable[[Peer], None]]] = []
        self._is_searching = False
        self._next_search_s = 0.0

    def examine(self, theirs: Address, ours: Address, then: Callable[[Peer], None]) -> None:
        """`then` is called at once where that is known at once."""
        owner = owner_of(theirs, ours)
        if owner is None:
            then(Peer(0, -1, "", _NOT_FOUND, False))
        elif owner.uid not in (os.geteuid(), 0):
            then(Peer(0, owner.uid, "", "it belongs to another user", False))
        else:
            found = self._among_the_remembered(owner)
            if found is not None:
                then(found)
            else:
                self._waiting.append((owner, then))
                self._search()

    def _among_the_remembered(self, owner: Owner) -> Peer | None:
        for pid in (*self._good, *self._bad):
            found = looked_at(pid, owner, _FIRST_DESCRIPTORS)
            if found is not None:
                self._remember(found)
                return found
        return None

    def _remember(self, peer: Peer) -> None:
        """Those that are refused push none out that are let in."""
        if not peer.pid:
            return
        for known in (self._good, self._bad):
            if peer.pid in known:
                known.remove(peer.pid)
        known = self._bad if peer.objection else self._good
        known.insert(0, peer.pid)
        del known[_REMEMBERED:]

    def _search(self) -> None:
        if self._is_searching or not self._waiting:
            return
        if time.monotonic() < self._next_search_s:
            self._is_searching = True
            self._loop.call_at(self._next_search_s, self._begin)
        else:
            self._begin()

    def _begin(self) -> None:
        self._is_searching = True
        sought, self._waiting = self._waiting, []
        owners = {owner for owner, _ in sought}

        def found(peers: dict[Owner, Peer] | Exception) -> None:
            self._is_searching = False
            self._next_search_s = time.monotonic() + _PAUSE_S
            for owner, then in sought:
                peer = None if isinstance(peers, Exception) else peers.get(owner)
                if peer is not None:
                    self._remember(peer)
                then(peer or Peer(0, owner.uid, "", _NOT_FOUND, False))
            self._search()

        self._helpers.run(lambda: looked_for(owners, proc_files.all_pids()), found)


def looked_for(owners: set[Owner], pids: Iterable[int]) -> dict[Owner, Peer]:
    """Through all of them: who lends a socket into a session is not the only one that has it. As
    far as there is time."""
    wanted = {_link(owner): owner for owner in owners}
    # Those inside come last: however many they are, and descriptors they hold, a browser is found.
    inside_last = sorted(pids, key=carries_more_filters_than_us)
    until_s, left = time.monotonic() + _SEARCH_AT_MOST_S, _MOST_DESCRIPTORS
    holders: dict[Owner, dict[int, None]] = {}
    for pid in inside_last:
        for link in _open_in(pid, left):
            left -= 1
            if link in wanted:
                holders.setdefault(wanted[link], {})[pid] = None
        if left <= 0 or time.monotonic() > until_s:
            break
    found = {owner: _least_welcome(owner, its) for owner, its in holders.items()}
    return {owner: peer for owner, peer in found.items() if peer is not None}


def _least_welcome(owner: Owner, pids: Iterable[int]) -> Peer | None:
    """One that is refused is enough."""
    found = None
    for pid in reversed(list(pids)):
        peer = looked_at(pid, owner, _MOST_DESCRIPTORS)
        if peer is not None and peer.objection:
            return peer
        found = peer or found
    return found


def looked_at(pid: int, owner: Owner, most: int) -> Peer | None:
    """None where it hasn't that socket among its first descriptors."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        if _link(owner) not in _open_in(pid, most):
            return None
        command = procfs.command_line(pid)
        is_inside, is_filtered = has_supervisor_above(pid), carries_more_filters_than_us(pid)
        if has_ended(pidfd):  # then what we read may be of another process
            return None
    finally:
        os.close(pidfd)
    objection = _INSIDE if is_inside else _FILTERED if is_filtered else ""
    return Peer(pid, owner.uid, command, objection, is_inside or is_filtered)


def _link(owner: Owner) -> str:
    return f"socket:[{owner.inode}]"


def _open_in(pid: int, most: int) -> Iterator[str]:
    """What its descriptors lead to; nothing where it may not be looked at, or has ended."""
    try:
        folder = proc_files.open_file(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        with closing(os.scandir(folder)) as entries:
            for entry in islice(entries, most):
                try:
                    yield os.readlink(entry.name, dir_fd=folder)
                except OSError:
                    continue
    except OSError:
        return
    finally:
        os.close(folder)


def addresses(connection: socket.socket) -> tuple[Address, Address]:
    """The other end's, and ours. OSError where it has left."""
    return connection.getpeername(), connection.getsockname()
