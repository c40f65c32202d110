"""Find the facts of a call on a socket, such as the process that it would reach.

Sockets that a policy keeps are identified by their files, and not only by their names: their owner
can rename them, and any user can mount them elsewhere in a namespace.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from sigwrap import calls
from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.errors import KernelError
from sigwrap.kernel.descriptors import let_go, take_by_pidfd, take_descriptor
from sigwrap.kernel.file_state import Born, born_sockets
from sigwrap.kernel.paths import Caller, Passed, WouldBlock, lies_at, link_target, path_of
from sigwrap.kernel.seccomp import Notification
from sigwrap.network import call
from sigwrap.network.call import SocketCall, SocketKind, concrete, endpoint, read_call, unix_path
from sigwrap.network.judge import OutOfRules, SocketAim
from sigwrap.policy.judge.globs import Glob, is_glob
from sigwrap.policy.judge.network import Direction, Endpoint, NetworkRules, Protocol
from sigwrap.policy.judge.request import Action
from sigwrap.session.effects import Continue, MakeSocket, Reach, Unrecorded, would_fail
from sigwrap.session.lineage import Process

if TYPE_CHECKING:
    from sigwrap.network.peers import Servers

_MSG_ZEROCOPY = 0x4000000
_TO_THE_KERNEL = (calls.AF_NETLINK, calls.AF_ALG)
_NO_SUCH_KIND = (
    *(errno.EAFNOSUPPORT, errno.ESOCKTNOSUPPORT, errno.EPROTONOSUPPORT),
    *(errno.EPROTOTYPE, errno.EINVAL),
)
_SOCKETS = next(
    each.handed_over for each in calls.TABLE if isinstance(each.handed_over, calls.OfOtherSockets)
)
# Control data that gives a message its own route.
_ROUTES = frozenset(
    {
        (calls.IPPROTO_IP, calls.IP_RETOPTS),
        (calls.IPPROTO_IPV6, calls.IPV6_RTHDR),
        (calls.IPPROTO_IPV6, calls.IPV6_2292RTHDR),
    }
)

_LOOKS_EVERY_S = 1.0
# Limits of names for one glob: at the start, and while a caller waits and others can make names.
_MOST_NAMES_AT_FIRST, _MOST_NAMES = 200_000, 2000
_MOST_LATER = 10_000  # sockets that were made after the start
_NONE: dict[str, str] = {}
_REACHES_NO_PROCESS = Reach(Unrecorded.REACHES_NO_PROCESS)


class SocketFacts(NamedTuple):
    asked: SocketCall
    aim: SocketAim
    kind: SocketKind | None = None  # of the socket; None if there is no socket, or not yet
    held: int = -1  # sigwrap's duplicate of the socket, which the caller cannot swap
    place: int = -1  # an O_PATH descriptor of the socket file that it would connect to
    is_local: bool = False  # the file is on a local file system, which answers at once
    way: tuple[Passed, ...] = ()  # the folders that lead to the file

    @property
    def goes_by_address_alone(self) -> bool:
        """Return whether the call uses no file: a file could need rights that the caller lacks."""
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
        """Return whether the call needs no rights of the caller. Message options can (SO_MARK)."""
        return self.goes_by_address_alone and not self.asked.control

    @property
    def is_about_a_file(self) -> bool:
        if not isinstance(self.aim, Endpoint) or self.aim.protocol is not Protocol.UNIX:
            return False
        return bool(self.asked.address and unix_path(self.asked.address))

    def let_go(self, close: Callable[[int], None] = let_go) -> None:
        """Close all descriptors. `close` closes a socket in bounded time."""
        for passed in self.way:
            os.close(passed.folder)
        if self.place >= 0:
            os.close(self.place)
        if self.held >= 0:
            close(self.held)


class Sockets:
    """Finds the facts of socket calls, for a whole session."""

    def __init__(self, rules: NetworkRules, servers: Servers) -> None:
        self._servers = servers
        self._rules = rules
        self._kept = KeptSockets(rules.kept_sockets)

    def look(
        self, notification: Notification, process: Process, syscall: str, *, may_wait: bool = False
    ) -> SocketFacts:
        """Find the facts of a call; `let_go` closes their descriptors. Raises WouldBlock."""
        try:
            found = read_call(notification, syscall, may_wait=may_wait)
        except OSError as refusal:
            is_hidden = refusal.errno in (errno.EPERM, errno.EACCES)
            aim = _hidden(syscall) if is_hidden else would_fail(refusal.errno or errno.EPERM)
            return SocketFacts(SocketCall(syscall), aim)
        if found.syscall == "io_uring_setup":
            return SocketFacts(found, OutOfRules("io_uring"))
        if found.syscall == "socket":
            return SocketFacts(found, _of_new_socket(*found.socket, may_wait=may_wait))
        if found.flags & calls.MSG_FASTOPEN:
            return SocketFacts(found, would_fail(errno.EOPNOTSUPP))
        if found.flags & _MSG_ZEROCOPY:
            # Programs repeat the call without it.
            return SocketFacts(found, would_fail(errno.ENOBUFS))
        try:
            held, kind = _take(notification.tid, process, found.fd)
        except (KernelError, OSError) as refusal:
            if found.syscall == "listen" and not self._rules.must_mediate_servers:
                return SocketFacts(found, Continue(Unrecorded.REACHES_NO_PROCESS))
            if refusal.errno == errno.EPERM:
                return SocketFacts(found, _hidden(found.syscall))
            return SocketFacts(found, would_fail(refusal.errno or errno.EPERM))
        try:
            looked = _of_held(found, held, kind)
            if looked.is_about_a_file:
                try:
                    caller = Caller(notification.tid, process.pid, may_wait=may_wait)
                except OSError as refusal:  # it was killed meanwhile
                    return looked._replace(aim=would_fail(refusal.errno or errno.EPERM))
                return self._with_file(looked, caller)
            return self._with_name(looked)
        except BaseException:
            let_go(held)
            raise

    def _with_file(self, looked: SocketFacts, caller: Caller) -> SocketFacts:
        way: list[Passed] = []
        try:
            place = caller.open_for_it(unix_path(looked.asked.address or b""), way)
        except BaseException as refusal:
            for passed in way:
                os.close(passed.folder)
            if not isinstance(refusal, OSError):
                raise
            return looked._replace(aim=would_fail(refusal.errno or errno.ENOENT))
        looked = looked._replace(place=place, way=tuple(way))
        try:
            state, born = caller.known_state_and_birth(place)
            looked = looked._replace(is_local=caller.is_local(state))
            return looked._replace(aim=self._aim_at_file(looked, born))
        except BaseException:
            looked._replace(held=-1).let_go()
            raise

    def _aim_at_file(self, looked: SocketFacts, born: Born) -> Endpoint:
        path, inode = path_of(looked.place), born[0]
        names = self._kept.names_of(born)
        if not (looked.is_local or lies_at(path, inode) or self._servers.has_file(inode)):
            names |= {""}  # only its caller has it mounted there, and chose the name
        assert isinstance(looked.aim, Endpoint), "about a file"
        aim = looked.aim._replace(socket=path, names=names)
        if not self._is_free(aim) and self._servers.has_file(inode):
            aim = aim._replace(is_own=True)
        return aim

    def _with_name(self, looked: SocketFacts) -> SocketFacts:
        aim = looked.aim
        if not isinstance(aim, Endpoint) or not aim.socket or self._is_free(aim):
            return looked
        assert looked.kind is not None, "of a socket"
        is_own = self._servers.has_name(aim.socket, looked.kind.type)
        return looked._replace(aim=aim._replace(is_own=is_own))

    def _is_free(self, aim: Endpoint) -> bool:
        """Return whether the rules allow it for any listening process."""
        return self._rules.decide(aim).action is Action.ALLOW


def _hidden(syscall: str) -> OutOfRules:
    return OutOfRules(
        f"{syscall} by a process whose memory sigwrap cannot read",
        "under network rules, sigwrap has to make this call itself",
    )


def _of_new_socket(family: int, kind: int, protocol: int, *, may_wait: bool) -> SocketAim:
    is_plain = family in _SOCKETS.families or (
        family in _SOCKETS.with_address
        and kind & calls.SOCK_TYPE_MASK in _SOCKETS.types
        and protocol in _SOCKETS.protocols
    )
    if is_plain:
        return MakeSocket(Unrecorded.REACHES_NO_PROCESS)
    if not may_wait:
        raise WouldBlock("the kernel may load a module for it")
    try:
        os.close(call.make(family, kind, protocol))
    except OSError as refusal:
        if refusal.errno in _NO_SUCH_KIND:
            return would_fail(refusal.errno)
    return OutOfRules(f"a socket of family {family}, type {kind & calls.SOCK_TYPE_MASK}")


def _take(tid: int, process: Process, fd: int) -> tuple[int, SocketKind]:
    """Duplicate a socket; any other file could block when it is closed. Raises OSError."""
    try:
        is_socket = link_target(f"/proc/{tid}/fd/{fd}").startswith("socket:[")  # a path has a slash
    except OSError as missing:
        error = errno.EPERM if missing.errno == errno.EACCES else errno.EBADF
        raise OSError(error, os.strerror(error)) from missing
    if not is_socket:
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
    # A thread may have descriptors of its own.
    is_first_thread = tid == process.pid and process.pidfd >= 0
    held = take_by_pidfd(process.pidfd, fd) if is_first_thread else take_descriptor(tid, fd)
    try:
        return held, call.kind_of(held)
    except BaseException:  # another thread has replaced it
        let_go(held)
        raise


def _of_held(found: SocketCall, held: int, kind: SocketKind) -> SocketFacts:
    if found.address is not None:
        found = found._replace(address=concrete(found.address, kind))
    return SocketFacts(found, _aim_of(found, held, kind), kind, held)


def _aim_of(found: SocketCall, held: int, kind: SocketKind) -> SocketAim:
    is_listening = found.syscall == "listen"
    address = call.own_address(held) if is_listening else found.address
    if found.is_cut and kind.type != calls.SOCK_STREAM:
        return would_fail(errno.EMSGSIZE)
    if found.control and any((each.level, each.kind) in _ROUTES for each in found.control):
        return OutOfRules("a message with source routing")
    if address is None or kind.domain in _TO_THE_KERNEL:
        return _REACHES_NO_PROCESS
    if kind.domain not in (calls.AF_INET, calls.AF_INET6, calls.AF_UNIX):
        return OutOfRules(f"a socket of family {kind.domain}")
    direction = Direction.BIND if is_listening else Direction.CONNECT
    aim = endpoint(address, kind, direction, sends=found.syscall.startswith("send"))
    if aim is None or (aim.protocol is Protocol.UNIX and not aim.socket):
        return _REACHES_NO_PROCESS  # no process can connect to a socket without a name
    return aim


# Sockets that the policy keeps


class KeptSockets:
    """The socket files that the policy's rules name, identified by their inodes."""

    def __init__(self, globs: Iterable[str]) -> None:
        self._globs = tuple(each for each in globs if each.startswith("/"))
        # One name of the socket for each glob: all its names match the same rules.
        self._at_first: dict[Born, dict[str, str]] = {}
        self._later: dict[Born, dict[str, str]] = {}  # least recently seen first
        for glob, path, file in self._look(_MOST_NAMES_AT_FIRST):
            self._at_first.setdefault(file, {}).setdefault(glob, path)

    def names_of(self, file: Born) -> frozenset[str]:
        """Return the names in rules that the file has had in this session."""
        if time.monotonic() - self._looked_s >= _LOOKS_EVERY_S:
            for glob, path, found in self._look(_MOST_NAMES):
                self._note(glob, path, found)
        names = self._at_first.get(file) or self._later.get(file, _NONE)
        return frozenset(names.values())

    def _look(self, most_names: int) -> Iterator[tuple[str, str, Born]]:
        self._looked_s = time.monotonic()
        listed: dict[str, list[str]] = {}  # several globs begin with the same folder
        for glob in self._globs:
            for path, file in born_sockets(_matching(glob, most_names, listed)):
                yield glob, path, file

    def _note(self, glob: str, path: str, file: Born) -> None:
        names = self._at_first.get(file)
        if names is None:
            names = self._later[file] = self._later.pop(file, {})
            if len(self._later) > _MOST_LATER:
                del self._later[next(iter(self._later))]
        names.setdefault(glob, path)


def _matching(glob: str, most_names: int, listed: dict[str, list[str]]) -> list[str]:
    """Return the paths that match, among so many names in folders."""
    found = [""]
    for part in glob.split("/")[1:]:
        folders, found = found, []
        pattern = Glob(part) if is_glob(part) else None
        for folder in folders:
            if pattern is None:
                found.append(f"{folder}/{part}")
                continue
            if folder not in listed:
                listed[folder] = _names_in(folder, most_names)
            names = listed[folder][:most_names]
            most_names -= len(names)
            likely = [name for name in names if name.startswith(pattern.prefix)]
            found += [f"{folder}/{name}" for name in filter(pattern.matches, likely)]
    return found


def _names_in(folder: str, most: int) -> list[str]:
    try:
        with os.scandir(folder or "/") as entries:
            return [entry.name for entry in islice(entries, most)]
    except OSError:
        return []
