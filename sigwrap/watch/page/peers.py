"""The process at the other end of a TCP connection on loopback, and whether it is in a session.

TCP has no SO_PEERCRED. The kernel gives the inode of the other end's socket (tcp_diag), and /proc
the processes that have it open. A pidfd holds each of these while sigwrap examines it, so that no
other process gets its number meanwhile. A connection whose socket no visible process has is
refused: the socket is in a message, in a thread's own descriptor table, in another network
namespace, or belongs to a process that we may not examine.

A search through /proc takes some milliseconds. So processes that were accepted before are examined
first, which finds a browser at once. One thread searches for all others together, with a pause
after each search, so that a flood of connections cannot take a processor.

A process outside all sessions that passes its connection into one, or forwards a port, lends out
its own right, as with kernel/peer.py. The cookie protects the page from those.

Refusals are told on standard error and in the session that the process belongs to. Of a flood only
a part is told."""

from __future__ import annotations

import os
import queue
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice

from sigwrap.approve.control_client import ask_all
from sigwrap.bare import NamedTuple
from sigwrap.kernel import procfs
from sigwrap.kernel.peer import (
    Peer,
    carries_more_filters_than_us,
    has_supervisor_above,
    sock_diag,
)
from sigwrap.kernel.signals import has_ended

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
_FIRST_DESCRIPTORS = 1_000  # examined in a process that was accepted before
_MOST_DESCRIPTORS = 400_000  # in all of /proc
_SEARCH_AT_MOST_S = 2.0
_PAUSE_S = 0.1

_ASKED = struct.Struct("=BBBBI")  # family, protocol, extensions, nothing, states
_PORTS = struct.Struct("!HH")
_ADDRESSES = struct.Struct("=4s12x4s12x")
_NO_COOKIE = struct.pack("=IQ", 0, 0xFFFFFFFFFFFFFFFF)  # for any interface
_ANSWER_BYTES = 72  # struct inet_diag_msg
_IDENTITY = slice(4, 40)  # its ports and addresses, as requested
_OWNER = struct.Struct("=II")  # at the end: uid, inode
_ANY_STATE = 0xFFFFFFFF


class Owner(NamedTuple):
    uid: int  # the user that made the socket
    inode: int


def owner_of(local: tuple[str, int], remote: tuple[str, int]) -> Owner | None:
    """Return the owner of the socket whose own address is `local`. None if it is gone, there is no
    answer, or no process has it open. The kernel may answer for a listener at that port instead."""
    identity = _PORTS.pack(local[1], remote[1]) + _ADDRESSES.pack(
        socket.inet_aton(local[0]), socket.inet_aton(remote[0])
    )
    asked = _ASKED.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
    answer = sock_diag(asked + identity + _NO_COOKIE, _ANSWER_BYTES)
    if answer is None or answer[_IDENTITY] != identity:
        return None
    uid, inode = _OWNER.unpack_from(answer, _ANSWER_BYTES - _OWNER.size)
    return Owner(uid, inode) if inode else None


Then = Callable[[Peer], None]


class _Sought(NamedTuple):
    owner: Owner
    until_s: float
    then: Then


class Peers:
    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._accepted: list[int] = []  # pids, the latest first
        self._sought: list[_Sought] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._search_on, daemon=True).start()

    @property
    def sought(self) -> int:
        return len(self._sought)

    def examine(self, end: socket.socket, then: Then) -> None:
        """Call `then` with the peer: at once if possible, else on the thread that searches."""
        theirs, ours = end.getpeername(), end.getsockname()
        owner = owner_of(theirs, ours)
        if not theirs[0].startswith(_LOOPBACK):
            then(_refused(-1, _NOT_LOOPBACK))
        elif owner is None:
            then(_refused(-1, _NOT_FOUND))
        elif owner.uid not in (os.geteuid(), 0):
            then(_refused(owner.uid, _of_another_user(owner.uid)))
        elif (found := self._among_the_accepted(owner)) is not None:
            then(found)
        else:
            with self._changed:
                self._sought.append(_Sought(owner, time.monotonic() + self._within_s, then))
                self._changed.notify()

    def give_up_late(self) -> None:
        """Refuse the connections whose search takes too long."""
        now_s = time.monotonic()
        for each in self._taken(lambda each: each.until_s <= now_s):
            each.then(_refused(each.owner.uid, _NOT_FOUND))

    def _taken(self, is_wanted: Callable[[_Sought], bool]) -> list[_Sought]:
        with self._changed:
            found = [each for each in self._sought if is_wanted(each)]
            self._sought = [each for each in self._sought if not is_wanted(each)]
        return found

    def _among_the_accepted(self, owner: Owner) -> Peer | None:
        for pid in tuple(self._accepted):
            found = examined(pid, {_link(owner): owner}, _FIRST_DESCRIPTORS).found
            if owner in found:
                self._remember(found[owner])
                return found[owner]
        return None

    def _remember(self, peer: Peer) -> None:
        with self._changed:
            others = [pid for pid in self._accepted if pid != peer.pid]
            self._accepted = others if peer.objection else [peer.pid, *others][:_REMEMBERED]

    def _search_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._sought)
                owners = {each.owner for each in self._sought}
            self._search(owners)
            time.sleep(_PAUSE_S)

    def _search(self, owners: set[Owner]) -> None:
        try:
            found = search(owners, procfs.all_pids())
        except Exception:  # refuses these peers, and goes on with the next search
            found = {}
        for peer in found.values():
            self._remember(peer)
        for each in self._taken(lambda each: each.owner in owners):
            each.then(found.get(each.owner) or _refused(each.owner.uid, _NOT_FOUND))


def search(owners: set[Owner], pids: Iterable[int]) -> dict[Owner, Peer]:
    """Examine every process, as far as there is time: a socket can be open in several, of which one
    may be in a session."""
    wanted = {_link(owner): owner for owner in owners}
    # Processes in sessions come last: however many descriptors they hold, a browser is found.
    inside_last = sorted(pids, key=carries_more_filters_than_us)
    until_s, left = time.monotonic() + _SEARCH_AT_MOST_S, _MOST_DESCRIPTORS
    found: dict[Owner, Peer] = {}
    for pid in inside_last:
        its = examined(pid, wanted, left)
        left -= its.descriptors
        for owner, peer in its.found.items():
            if owner not in found or peer.objection:  # one objection is enough
                found[owner] = peer
        if left <= 0 or time.monotonic() > until_s:
            break
    return found


class _Examined(NamedTuple):
    found: dict[Owner, Peer]
    descriptors: int


def examined(pid: int, wanted: Mapping[str, Owner], most: int) -> _Examined:
    """Find which of the wanted sockets a process has among its first descriptors."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return _Examined({}, 0)
    try:
        its, descriptors = set(), 0
        for link in _open_in(pid, most):
            descriptors += 1
            if link in wanted:
                its.add(wanted[link])
        if not its:
            return _Examined({}, descriptors)
        command = procfs.command_line(pid)
        is_inside, is_filtered = has_supervisor_above(pid), carries_more_filters_than_us(pid)
        if has_ended(pidfd):  # then what we read may be of another process
            return _Examined({}, descriptors)
    finally:
        os.close(pidfd)
    objection = _INSIDE if is_inside else _FILTERED if is_filtered else ""
    peers = {
        owner: Peer(pid, owner.uid, command, objection, is_inside or is_filtered) for owner in its
    }
    return _Examined(peers, descriptors)


def _refused(uid: int, why: str) -> Peer:
    return Peer(0, uid, "", why, False)


def _of_another_user(uid: int) -> str:
    return (
        f"only uid {os.geteuid()} may open this page, and this browser runs as uid {uid}; to see "
        f"the sessions of uid {uid}, run sigwrap serve as that user"
    )


def _link(owner: Owner) -> str:
    return f"socket:[{owner.inode}]"


def _open_in(pid: int, most: int) -> Iterator[str]:
    """Yield what its descriptors lead to; nothing if it may not be examined, or has ended."""
    try:
        folder = procfs.open_file(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY)
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


_WHERE = "the page of sigwrap serve"
_EQUAL_ONES_S = 1.0
_BETWEEN_REPORTS_S = 0.25
_MOST_WAITING = 16


class Refusals:
    def __init__(self, store: str, tell: Callable[[str], None]) -> None:
        """`tell`: prints a line; it may wait."""
        self._store = store
        self._tell = tell
        self._waiting: queue.Queue[Peer] = queue.Queue(_MOST_WAITING)
        self._told: dict[tuple[str, str], float] = {}
        self._left_out = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._report_on, daemon=True).start()

    def add(self, peer: Peer) -> None:
        key, now_s = (peer.command, peer.objection), time.monotonic()
        with self._lock:
            self._told = {each: at for each, at in self._told.items() if now_s - at < _EQUAL_ONES_S}
            if key in self._told or self._waiting.full():
                self._left_out += 1
            else:
                self._told[key] = now_s
                self._waiting.put(peer)

    def _report_on(self) -> None:
        while True:
            peer = self._waiting.get()
            with self._lock:
                left_out, self._left_out = self._left_out, 0
            self._report(peer, left_out)
            time.sleep(_BETWEEN_REPORTS_S)

    def _report(self, peer: Peer, left_out: int) -> None:
        process = f"process {peer.pid} ({peer.command})" if peer.pid else "a process"
        others = f" (and {left_out} more since the last line)" if left_out else ""
        self._tell(f"the page refused {process}: {peer.objection}{others}")
        if peer.inside_session:
            request = {"do": "refused", "pid": peer.pid, "where": _WHERE}
            try:
                ask_all(self._store, request)
            except Exception as failure:  # the thread goes on with the next refusal
                self._tell(f"cannot log this refusal in its session: {failure}")
