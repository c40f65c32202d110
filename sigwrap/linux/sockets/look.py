"""Whom a call on a socket would reach: the facts that it is judged by."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from sigwrap import calls
from sigwrap.errors import KernelError
from sigwrap.linux import proc_files
from sigwrap.linux.file_state import born_of, kind_of
from sigwrap.linux.memory import Unreadable
from sigwrap.linux.paths import Caller, MayWait, Passed, lies_at, our_view, path_of
from sigwrap.linux.pidfd import duplicate_socket
from sigwrap.linux.seccomp import Notification
from sigwrap.linux.sockets import ours
from sigwrap.linux.sockets.address import (
    Elsewhere,
    Kind,
    Nowhere,
    concrete,
    endpoint,
    unix_path,
)
from sigwrap.linux.sockets.asked import Asked, asked
from sigwrap.linux.sockets.own_servers import OwnServers
from sigwrap.linux.sockets.places import KeptPlaces
from sigwrap.linux.taken import let_go
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.network_facts import Aim, NewSocket, NoAddress, NoMatter, OutOfRules
from sigwrap.policy.judge.network import Direction, Endpoint, NetworkRules, Protocol
from sigwrap.policy.judge.request import Action
from sigwrap.tuples import NamedTuple

_MSG_ZEROCOPY = 0x4000000
_TO_THE_KERNEL = (calls.AF_NETLINK, calls.AF_ALG)
_NO_SUCH_KIND = (
    *(errno.EAFNOSUPPORT, errno.ESOCKTNOSUPPORT, errno.EPROTONOSUPPORT),
    *(errno.EPROTOTYPE, errno.EINVAL),
)
_SOCKETS = next(
    call.handed_over for call in calls.TABLE if isinstance(call.handed_over, calls.OfOtherSockets)
)
# With a message, these have it go by way of somebody else.
_WAYS = frozenset(
    {
        (calls.IPPROTO_IP, calls.IP_RETOPTS),
        (calls.IPPROTO_IPV6, calls.IPV6_RTHDR),
        (calls.IPPROTO_IPV6, calls.IPV6_2292RTHDR),
    }
)


class Looked(NamedTuple):
    asked: Asked
    aim: Aim
    kind: Kind | None = None  # of the socket; None: it has none, or has none yet
    held: int = -1  # ours: a duplicate of the socket, which the caller can't swap
    place: int = -1  # an O_PATH descriptor of the socket file that it would connect to
    way: tuple[Passed, ...] = ()  # to it

    @property
    def goes_by_address_alone(self) -> bool:
        """Not by a file, for which the caller may lack the rights."""
        return self.kind is not None and self.kind.domain in _SOCKETS.with_address

    @property
    def is_connecting_by_address(self) -> bool:
        return self.goes_by_address_alone and self.asked.syscall == "connect"

    @property
    def is_connecting_to_unix(self) -> bool:
        is_unix = self.kind is not None and self.kind.domain == calls.AF_UNIX
        return is_unix and self.asked.syscall == "connect"

    @property
    def takes_no_rights(self) -> bool:
        """Options that go with a message can take some (SO_MARK)."""
        return self.goes_by_address_alone and not self.asked.control

    @property
    def is_about_a_file(self) -> bool:
        if not isinstance(self.aim, Endpoint) or self.aim.protocol is not Protocol.UNIX:
            return False
        return bool(self.asked.address and unix_path(self.asked.address))

    def let_go(self, close: Callable[[int], None] = let_go) -> None:
        """`close`: a socket, in bounded time."""
        for passed in self.way:
            os.close(passed.folder)
        if self.place >= 0:
            os.close(self.place)
        if self.held >= 0:
            close(self.held)


class Sockets:
    """What there is to be known of sockets, from the session's begin on."""

    def __init__(self, rules: NetworkRules) -> None:
        self.own = OwnServers()
        self._rules = rules
        self._view = our_view()
        self._kept = KeptPlaces(rules.kept_sockets)

    def look(
        self, notification: Notification, process: Process, syscall: str, *, may_wait: bool = False
    ) -> Looked:
        """What it holds is the caller's to let go. Raises MayWait, and Unreadable where memory is
        to be read by who may wait."""
        try:
            found = asked(notification, syscall, may_wait=may_wait)
        except Unreadable:
            aim = _hidden(syscall) if _is_hidden(notification.tid) else WouldFail(errno.EFAULT)
            return Looked(Asked(syscall), aim)
        except OSError as refusal:
            return Looked(Asked(syscall), WouldFail(refusal.errno or errno.EPERM))
        if found.syscall == "io_uring_setup":
            return Looked(found, OutOfRules("io_uring"))
        if found.syscall == "socket":
            return Looked(found, _of_new_socket(*found.socket, may_wait=may_wait))
        if found.flags & calls.MSG_FASTOPEN:
            return Looked(found, WouldFail(errno.EOPNOTSUPP))
        if found.flags & _MSG_ZEROCOPY:
            return Looked(found, WouldFail(errno.ENOBUFS))  # programs send it again without
        try:
            held = _take(notification.tid, found.fd)
        except (KernelError, OSError) as refusal:
            if found.syscall == "listen" and not self._rules.must_mediate_servers:
                return Looked(found, NoMatter())
            if refusal.errno == errno.EPERM:
                return Looked(found, _hidden(found.syscall))
            return Looked(found, WouldFail(refusal.errno or errno.EPERM))
        try:
            looked = _of_held(found, held)
            if looked.is_about_a_file:
                caller = Caller(notification.tid, process.pid, self._view, may_wait=may_wait)
                return self._with_file(looked, caller)
            return self._with_name(looked)
        except BaseException:
            let_go(held)
            raise

    def _with_file(self, looked: Looked, caller: Caller) -> Looked:
        way: list[Passed] = []
        try:
            place = caller.open_for_it(unix_path(looked.asked.address or b""), way)
        except BaseException as refusal:
            for passed in way:
                os.close(passed.folder)
            if not isinstance(refusal, OSError):
                raise
            return looked._replace(aim=WouldFail(refusal.errno or errno.ENOENT))
        looked = looked._replace(place=place, way=tuple(way))
        try:
            return looked._replace(aim=self._aim_at_file(looked, caller))
        except BaseException:
            looked._replace(held=-1).let_go()
            raise

    def _aim_at_file(self, looked: Looked, caller: Caller) -> Endpoint:
        state, path = caller.known_state(looked.place), path_of(looked.place)
        inode, names = state.inode, self._kept.names_of(born_of(looked.place))
        if not (caller.is_local(state) or lies_at(path, inode) or self.own.has_file(inode)):
            names |= {""}  # it is mounted there for its caller alone, who chose the name
        assert isinstance(looked.aim, Endpoint), "about a file"
        aim = looked.aim._replace(socket=path, names=names)
        if not self._is_free(aim) and self.own.has_file(inode):
            aim = aim._replace(is_own=True)
        return aim

    def _with_name(self, looked: Looked) -> Looked:
        aim = looked.aim
        if not isinstance(aim, Endpoint) or not aim.socket or self._is_free(aim):
            return looked
        assert looked.kind is not None, "of a socket"
        is_own = self.own.has_name(aim.socket, looked.kind.type)
        return looked._replace(aim=aim._replace(is_own=is_own))

    def _is_free(self, aim: Endpoint) -> bool:
        """Whoever has that socket: so nobody has to ask whose it is."""
        return self._rules.decide(aim).action is Action.ALLOW


def _hidden(syscall: str) -> OutOfRules:
    return OutOfRules(
        f"{syscall} by a process whose memory sigwrap cannot read",
        "under network rules, sigwrap has to make this call itself",
    )


def _is_hidden(tid: int) -> bool:
    try:
        os.close(proc_files.open_file(f"/proc/{tid}/mem"))
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def _of_new_socket(family: int, kind: int, protocol: int, *, may_wait: bool) -> Aim:
    is_plain = family in _SOCKETS.families or (
        family in _SOCKETS.with_address
        and kind & calls.SOCK_TYPE_MASK in _SOCKETS.types
        and protocol in _SOCKETS.protocols
    )
    if is_plain:
        return NewSocket()
    if not may_wait:
        raise MayWait("the kernel may load a module for it")
    try:
        os.close(ours.make(family, kind, protocol))
    except OSError as refusal:
        if refusal.errno in _NO_SUCH_KIND:
            return WouldFail(refusal.errno)
    return OutOfRules(f"a socket of family {family}, type {kind & calls.SOCK_TYPE_MASK}")


def _take(tid: int, fd: int) -> int:
    try:
        kind, _major = kind_of(b"/proc/%d/fd/%d" % (tid, fd))
    except OSError as missing:
        error = errno.EPERM if missing.errno == errno.EACCES else errno.EBADF
        raise OSError(error, os.strerror(error)) from missing
    if kind != stat.S_IFSOCK:
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
    return duplicate_socket(tid, fd)


def _of_held(found: Asked, held: int) -> Looked:
    try:
        kind = ours.kind_of(held)
    except OSError as refusal:  # another thread has put something else there
        return Looked(found, WouldFail(refusal.errno or errno.ENOTSOCK), held=held)
    if found.address is not None:
        meant = concrete(found.address, kind, lambda: ours.own_address(held))
        found = found._replace(address=meant)
    looked = Looked(found, NoAddress(), kind, held)
    is_listening = found.syscall == "listen"
    address = ours.own_address(held) if is_listening else found.address
    if found.is_cut and kind.type != calls.SOCK_STREAM:
        return looked._replace(aim=WouldFail(errno.EMSGSIZE))
    if any((each.level, each.kind) in _WAYS for each in found.control):
        return looked._replace(aim=OutOfRules("a message with source routing"))
    if address is None:
        return looked
    try:
        aim = endpoint(
            address,
            kind,
            Direction.BIND if is_listening else Direction.CONNECT,
            sends=found.syscall.startswith("send"),
        )
    except Nowhere:
        return looked
    except Elsewhere as elsewhere:
        if elsewhere.family in _TO_THE_KERNEL:
            return looked
        return looked._replace(aim=OutOfRules(f"a socket of family {elsewhere.family}"))
    if aim.protocol is not Protocol.UNIX:
        return looked._replace(aim=aim)
    # Without a name nobody can connect to it.
    return looked._replace(aim=aim) if aim.socket else looked
