"""Who is at the other end of a TCP connection on loopback, and whether it is supervised.

TCP has no SO_PEERCRED. The kernel tells the number of the socket that has the other end
(linux/sockets/tcp_diag.py), and /proc which processes have that one open; each of these is held by
a pidfd while it is looked at, so that no other has its number by then. A socket that no process
shows is nobody's, and refused: one on its way in a message, in a table that a thread has for
itself, in another network namespace, or of a user whom we may not look at.

Looking through all of /proc takes some milliseconds. So those processes that were let in before are
looked at first: a browser is found at once. All the others that wait are looked for together, on a
thread, and one such search follows the other only after a pause: whoever connects all the time
holds neither the loop nor a processor.

Somebody outside who connects and hands the connection into a session, or forwards what is sent to a
port of its own, lends out their own right, as with linux/peer.py. Against those the page has its
cookie.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice

from sigwrap.linux import proc_files, procfs
from sigwrap.linux.peer import Peer, carries_more_filters_than_us, has_supervisor_above
from sigwrap.linux.pidfd import has_ended
from sigwrap.linux.sockets.tcp_diag import Owner, owner_of
from sigwrap.run.loop import Loop
from sigwrap.tuples import NamedTuple
from sigwrap.watch.page.helpers import Helpers

Address = tuple[str, int]

WAY_OUT = "use sigwrap serve --socket FILE, and ssh -L 8000:FILE from another machine"
_INSIDE = "it is in a supervised session"
_FILTERED = (
    "it runs under a seccomp filter, as processes in a session and browsers from snap or flatpak "
    f"do; use another browser, or {WAY_OUT}"
)
_NOT_LOOPBACK = "it does not come from loopback"
_NOT_FOUND = f"sigwrap cannot find its process; {WAY_OUT}"
_LOOPBACK = "127."
_REMEMBERED = 6
_FIRST_DESCRIPTORS = 1_000  # looked at in a process that came before
_MOST_DESCRIPTORS = 400_000  # in all of /proc
_SEARCH_AT_MOST_S = 2.0
_PAUSE_S = 0.1


class Peers:
    def __init__(self, loop: Loop, helpers: Helpers) -> None:
        self._loop = loop
        self._helpers = helpers
        self._good: list[int] = []  # processes that were let in before, the latest first
        self._waiting: list[tuple[Owner, Callable[[Peer], None]]] = []
        self._is_searching = False
        self._next_search_s = 0.0

    def examine(self, theirs: Address, ours: Address, then: Callable[[Peer], None]) -> None:
        """`then` is called at once where that is known at once."""
        if not theirs[0].startswith(_LOOPBACK):
            then(Peer(0, -1, "", _NOT_LOOPBACK, False))
            return
        owner = owner_of(theirs, ours)
        if owner is None:
            then(Peer(0, -1, "", _NOT_FOUND, False))
        elif owner.uid not in (os.geteuid(), 0):
            then(Peer(0, owner.uid, "", _of_another_user(owner.uid), False))
        else:
            found = self._among_the_remembered(owner)
            if found is not None:
                then(found)
            else:
                self._waiting.append((owner, then))
                self._search()

    def _among_the_remembered(self, owner: Owner) -> Peer | None:
        for pid in self._good:
            look = looked_at(pid, {_link(owner): owner}, _FIRST_DESCRIPTORS)
            if owner in look.found:
                self._remember(look.found[owner])
                return look.found[owner]
        return None

    def _remember(self, peer: Peer) -> None:
        if peer.pid in self._good:
            self._good.remove(peer.pid)
        if not peer.objection:
            self._good.insert(0, peer.pid)
            del self._good[_REMEMBERED:]

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
    found: dict[Owner, Peer] = {}
    for pid in inside_last:
        look = looked_at(pid, wanted, left)
        left -= look.descriptors
        for owner, peer in look.found.items():
            if owner not in found or peer.objection:  # one that is refused is enough
                found[owner] = peer
        if left <= 0 or time.monotonic() > until_s:
            break
    return found


class _Look(NamedTuple):
    found: dict[Owner, Peer]
    descriptors: int


def looked_at(pid: int, wanted: Mapping[str, Owner], most: int) -> _Look:
    """Which of those it has among its first descriptors."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return _Look({}, 0)
    try:
        its, descriptors = set(), 0
        for link in _open_in(pid, most):
            descriptors += 1
            if link in wanted:
                its.add(wanted[link])
        if not its:
            return _Look({}, descriptors)
        command = procfs.command_line(pid)
        is_inside, is_filtered = has_supervisor_above(pid), carries_more_filters_than_us(pid)
        if has_ended(pidfd):  # then what we read may be of another process
            return _Look({}, descriptors)
    finally:
        os.close(pidfd)
    objection = _INSIDE if is_inside else _FILTERED if is_filtered else ""
    peers = {
        owner: Peer(pid, owner.uid, command, objection, is_inside or is_filtered) for owner in its
    }
    return _Look(peers, descriptors)


def _of_another_user(uid: int) -> str:
    return (
        f"only uid {os.geteuid()} may open this page, and this browser runs as uid {uid}; to see "
        f"the sessions of uid {uid}, run sigwrap serve as that user"
    )


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
