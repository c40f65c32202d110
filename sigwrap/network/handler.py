"""Gather facts for the network mediator, and make the calls that it allows on a duplicate of the
caller's socket.

The loop makes a call that mostly ends at once. A worker makes any other, and for a while after a
connection took long, all connections. Either ends after 5 ms: the loop then checks on the caller,
so a slow other end delays no other caller.
"""

from __future__ import annotations

import errno
import os
import select
import struct
import time
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING, signal, suppress
from sigwrap.calls import AF_UNIX, SOCK_DGRAM
from sigwrap.errors import KernelError
from sigwrap.kernel import procfs, signals
from sigwrap.kernel.libc import Bounded, run_bounded, syscall
from sigwrap.kernel.memory import may_be_served, write_memory
from sigwrap.kernel.procfs import Rights
from sigwrap.kernel.ptrace import ERESTARTSYS
from sigwrap.kernel.seccomp import Notification
from sigwrap.machine import NUMBERS
from sigwrap.network import call
from sigwrap.network.call import Carried, SocketCall, address_of_file
from sigwrap.network.judge import NetworkFacts, NetworkMediator, OutOfRules, SocketAim
from sigwrap.network.look import SocketFacts, Sockets
from sigwrap.network.peers import HostNames, Servers
from sigwrap.policy.judge.network import LOOPBACK_ADDRESS, Endpoint, Protocol
from sigwrap.session.effects import LookUpNames, MakeSocket, Outside, Reach, Reached, would_fail
from sigwrap.session.lineage import Process
from sigwrap.session.loop import Done, Late, Loop, Outcome, Raised
from sigwrap.session.perform import PAUSED, NoHoldings, Request
from sigwrap.session.processes import refresh_comm

if TYPE_CHECKING:
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

_LOOKS_EVERY_S = 0.05  # whether a signal came for a caller that waits
_FOR_EACH_LOOK_S = 0.002  # if many wait: the loop has other requests to serve
_FIRST_RETRY_S = 0.001
_LONG_S = 0.001  # for a connect in the loop; a server decides when it takes a connection
_REST_AFTER_IT = 50  # times as long as it took, workers make the connections
_NEVER = float("inf")
_MSG_DONTWAIT, _MSG_NOSIGNAL = 0x40, 0x4000

_SYS_SETGROUPS = NUMBERS["setgroups"]
_SYS_SETRESUID = NUMBERS["setresuid"]
_SYS_SETRESGID = NUMBERS["setresgid"]
_SYS_CAPSET = NUMBERS["capset"]
_SYS_PRCTL = NUMBERS["prctl"]
_PR_SET_KEEPCAPS = 8
_CAPABILITIES = struct.Struct("=6I")
_CAPSET_HEADER = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread


_NOTHING_FOUND = SocketFacts(SocketCall(""), would_fail(errno.EPERM))


class _Held(NoHoldings):
    """The socket of a request, and the progress of its call."""

    def __init__(self, bounded: Bounded) -> None:
        self.looked = _NOTHING_FOUND
        self._bounded = bounded
        self.is_in_use = False  # a worker or the loop makes a call on it
        self.is_over = False
        self.rest = b""
        self.sent = 0
        self.waits = False  # the caller's call blocks until it is done
        self.deadline_s = _NEVER
        self.retry_s = _FIRST_RETRY_S
        self.turn = 0  # the attempt; a look that belongs to an earlier one is ignored
        self.is_watched: Loop | None = None

    def done(self, error: int = 0) -> Reached:
        """Close the duplicate before the answer: the caller's own close must be the last one."""
        messages_or_bytes = 1 if self.looked.asked.count_at else self.sent
        self.close()
        return Reached(messages_or_bytes) if self.sent or not error else Reached(0, error)

    def stop_watching(self) -> None:
        if self.is_watched is not None:
            self.is_watched.unwatch(self.looked.held)
            self.is_watched = None

    def may_wait(self, *, waited_lately: bool) -> bool:
        """Return whether the call can block: a connect waits for its peer, a call to a socket file
        for the file's server, and any call for the socket's lock, which a process that copies from
        served memory can hold."""
        looked, asked, kind = self.looked, self.looked.asked, self.looked.kind
        if asked.syscall == "listen" and kind is not None and kind.domain == AF_UNIX:
            return False  # it takes no such lock, and must be noted before clients connect
        if may_be_served() or kind is None or (looked.place >= 0 and not looked.is_local):
            return True
        if asked.syscall != "connect" or kind.type == SOCK_DGRAM:
            return False
        if waited_lately or self.turn > 1:
            return True
        if kind.domain == AF_UNIX:
            return False  # the kernel connects at once if the server has room
        if self.waits and not _is_loopback(looked.aim):
            return True
        return kind.transport is not Protocol.TCP

    def is_used_no_more(self) -> None:
        self.is_in_use = False
        if self.is_over:
            self.close()

    def close(self) -> None:
        """Close the duplicate, at once or when no call uses it any more."""
        self.stop_watching()
        self.is_over = True
        if not self.is_in_use and self.looked.held >= 0:
            looked, self.looked = self.looked, self.looked._replace(held=-1, place=-1, way=())
            looked.let_go(self._bounded.close)


class SocketCalls:
    """The handler of calls on sockets."""

    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._approvals = session.approvals
        self._performer = performer = mediation.performer
        self._listener = mediation.listener
        self._rules = session.engine.network
        self._mediator = NetworkMediator(self._rules, session.policy.name)
        self._pool = session.pool
        self._loop = session.loop
        self._servers = Servers(session)
        self._sockets = Sockets(self._rules, self._servers)
        self._bounded = Bounded()
        self._looks = 0  # looks that are due later
        self._workers_until_s = 0.0
        self._other_rights = _OtherRights()
        self._names = HostNames(session, performer)
        performer.offer(
            {
                LookUpNames: self._names.look_up,
                Reach: self._reach,
                MakeSocket: self._make_socket,
            }
        )

    def begin(self, notification: Notification, process: Process, syscall: str) -> None:
        steps = self._mediator.mediate()
        held = _Held(self._bounded)
        self._performer.begin(
            Request(notification, process, syscall, steps, handler=self, holdings=held)
        )

    def look(self, request: Request, *, may_wait: bool) -> SocketFacts:
        return self._sockets.look(
            request.notification, request.process, request.syscall, may_wait=may_wait
        )

    def facts(self, request: Request, looked: SocketFacts) -> NetworkFacts:
        request.holdings.looked = looked
        refresh_comm(request.process)
        aim = looked.aim
        if self._rules.names and isinstance(aim, Endpoint) and aim.address:
            aim = aim._replace(names=self._names.of(aim.address))
        return NetworkFacts(request.process, request.syscall, aim)

    def stalled(self, request: Request, why: str) -> NetworkFacts:
        return self.facts(
            request, SocketFacts(SocketCall(request.syscall), OutOfRules(request.syscall, why))
        )

    def drop(self, looked: SocketFacts) -> None:
        looked.let_go()

    # Calls

    def _reach(self, request: Request, effect: Reach) -> object:
        self._performer.demand_event(request, effect, effect.unrecorded)
        self._performer.check(request)
        held: _Held = request.holdings
        asked, fd = held.looked.asked, held.looked.held
        held.rest = asked.data
        held.waits = call.waits(fd) and not asked.flags & _MSG_DONTWAIT
        return self._attempt(request)

    def _attempt(self, request: Request) -> object:
        held: _Held = request.holdings
        if held.is_in_use:  # one attempt at a time
            return PAUSED
        held.is_in_use = True
        held.turn += 1
        if held.looked.is_connecting_to_unix:
            self._servers.connects(held.looked, request.process)

        def work() -> object:
            if not request.is_over:
                _carry_out(request)
            return None

        def then(outcome: Outcome) -> None:
            self._resume(request, self._attempted(request, outcome))

        rights = None if held.looked.takes_no_rights else self._other_rights.of(request.tid)
        waited_lately = time.monotonic() < self._workers_until_s
        if rights is None and not held.may_wait(waited_lately=waited_lately):
            return self._bounded.call(lambda: self._attempt_now(request, work))
        if rights is not None:
            work = _with_rights(rights, held.looked, work)
        self._pool.run(
            lambda: run_bounded(work),
            then,
            over=held.is_used_no_more,
            keeps_thread=rights is None,
        )
        return PAUSED

    def _attempt_now(self, request: Request, work: Callable[[], object]) -> object:
        held: _Held = request.holdings
        began_s = time.monotonic()
        outcome = _result_of(work)
        ended_s = time.monotonic()
        if ended_s - began_s > _LONG_S and held.looked.asked.syscall == "connect":
            self._workers_until_s = ended_s + _REST_AFTER_IT * (ended_s - began_s)
        held.is_used_no_more()
        return self._attempted(request, outcome)

    def _resume(self, request: Request, reply: object) -> None:
        if reply is not PAUSED and not request.is_over:
            self._performer.resume(request, reply)

    def _attempted(self, request: Request, outcome: Outcome) -> object:
        held: _Held = request.holdings
        if request.is_over:
            return PAUSED
        error = errno.EPERM
        match outcome:
            case Late():  # the worker still uses the socket
                return held.done(errno.EAGAIN)
            case Done():
                outside = None
                if held.looked.kind is not None and held.looked.kind.domain == AF_UNIX:
                    outside = self._note(held.looked)
                return held.done()._replace(outside=outside)
            case Raised(error=InterruptedError()):
                # The kernel goes on with the connection, or has not begun.
                by_address = held.looked.is_connecting_by_address
                error = errno.EINPROGRESS if by_address else errno.EAGAIN
            case Raised(error=KernelError() | OSError() as refusal):
                error = refusal.errno or errno.EPERM
        if held.waits and _has_to_wait(held.looked, error):
            self._wait(request, held)
            return PAUSED
        if error == errno.EPIPE and not held.looked.asked.flags & _MSG_NOSIGNAL:
            with suppress(KernelError, OSError):
                _send_sigpipe(request)
        return held.done(error)

    def _note(self, looked: SocketFacts) -> Outside | None:
        """Note a server of the session, or return the process outside that a connection reached."""
        with suppress(OSError):
            if looked.asked.syscall == "listen":
                self._servers.note(looked)
            elif looked.asked.syscall == "connect":
                pid, uid = call.listener(looked.held)
                self._approvals.typists.session_connected_to(pid)
                return self._servers.outside(looked, pid, uid)
        return None

    # Waiting for the other end

    def _wait(self, request: Request, held: _Held) -> None:
        if held.turn == 1 and (most_s := call.waits_for_s(held.looked.held)) is not None:
            held.deadline_s = time.monotonic() + most_s
        if held.looked.is_connecting_by_address:
            with suppress(OSError):  # no more watches: the timer checks it
                self._loop.watch(held.looked.held, lambda _: self._again(request), select.EPOLLOUT)
                held.is_watched = self._loop
        self._check_later(request, held)

    def _again(self, request: Request) -> None:
        request.holdings.stop_watching()
        self._resume(request, self._attempt(request))

    def _check_later(self, request: Request, held: _Held) -> None:
        turn = held.turn
        delay_s = _LOOKS_EVERY_S if held.is_watched else held.retry_s
        held.retry_s = min(2 * held.retry_s, _LOOKS_EVERY_S)
        delay_s = max(delay_s, self._looks * _FOR_EACH_LOOK_S)
        self._looks += 1
        self._loop.call_at(
            min(time.monotonic() + delay_s, held.deadline_s),
            lambda: self._check(request, held, turn),
        )

    def _check(self, request: Request, held: _Held, turn: int) -> None:
        self._looks -= 1
        if request.is_over or held.turn != turn:
            return
        if not self._listener.is_waiting(request.id):
            self._performer.finish(request)
        elif time.monotonic() >= held.deadline_s:
            is_connecting = held.looked.is_connecting_by_address
            late = errno.EINPROGRESS if is_connecting else errno.EAGAIN
            self._performer.resume(request, held.done(late))
        elif (broken_off_by := signals.breaks_off(request.tid)) is not None:
            has_deadline = held.deadline_s != _NEVER
            error = ERESTARTSYS if broken_off_by and not has_deadline else errno.EINTR
            self._performer.resume(request, held.done(error))
        elif held.is_watched:
            self._check_later(request, held)
        else:
            self._again(request)

    def _make_socket(self, request: Request, effect: MakeSocket) -> object:
        """Make the socket that the caller's memory asks for."""
        self._performer.demand_event(request, effect, effect.unrecorded)
        self._performer.check(request)
        asked = request.holdings.looked.asked.socket
        try:
            if procfs.link(f"/proc/{request.tid}/ns/net") != procfs.link("/proc/self/ns/net"):
                return errno.EPERM
            rights = self._other_rights.of(request.tid)
            if rights is None:
                return self._made(request, Done(call.make(*asked)))
        except OSError as refusal:
            return refusal.errno or errno.EPERM
        self._pool.run(
            _with_rights(rights, request.holdings.looked, lambda: call.make(*asked)),
            lambda outcome: self._resume(request, self._made(request, outcome)),
            drop=os.close,
            keeps_thread=False,
        )
        return PAUSED

    def _made(self, request: Request, outcome: Outcome) -> object:
        if not isinstance(outcome, Done):
            error = outcome.error if isinstance(outcome, Raised) else None
            return getattr(error, "errno", 0) or errno.EPERM
        try:
            if request.is_over:
                return PAUSED
            _family, kind, _protocol = request.holdings.looked.asked.socket
            self._listener.answer_with_descriptor(
                request.id, outcome.value, closes_on_exec=bool(kind & os.O_CLOEXEC)
            )
        except OSError as refusal:
            return refusal.errno or errno.EPERM
        finally:
            os.close(outcome.value)
        self._performer.mark_answered(request)
        return 0


def _with_rights(
    rights: Rights, looked: SocketFacts, work: Callable[[], object]
) -> Callable[[], object]:
    """Wrap work for a thread that ends after it: a thread cannot give rights back."""

    def with_rights() -> object:
        _take_rights(rights)
        for passed in looked.way:
            passed.demand()
        return work()

    return with_rights


def _result_of(work: Callable[[], object]) -> Outcome:
    try:
        return Done(work())
    except (KernelError, OSError) as refusal:
        return Raised(refusal)


def _is_loopback(aim: SocketAim) -> bool:
    return isinstance(aim, Endpoint) and aim.address in LOOPBACK_ADDRESS.values()


def _has_to_wait(looked: SocketFacts, error: int) -> bool:
    if looked.is_connecting_by_address:
        return error in (errno.EINPROGRESS, errno.EALREADY)
    return error == errno.EAGAIN and looked.asked.syscall != "listen"


def _carry_out(request: Request) -> None:
    """Make the call in the caller's place. Raises the OSError that its own call would get."""
    held: _Held = request.holdings
    looked = held.looked
    asked, fd = looked.asked, looked.held
    address = asked.address if looked.place < 0 else address_of_file(looked.place)
    match asked.syscall:
        case "connect":
            call.connect(fd, address or b"")
        case "listen":
            is_unix = looked.kind is not None and looked.kind.domain == AF_UNIX
            (call.listen_from_child if is_unix else call.listen)(fd, asked.backlog)
        case "sendmmsg" if not asked.count_at:
            pass  # no message
        case _:
            _send(request, held, address)


def _send(request: Request, held: _Held, address: bytes | None) -> None:
    """Send the data; all of it if the caller waits and the socket takes it in parts."""
    asked, fd = held.looked.asked, held.looked.held
    control = () if held.sent else asked.control
    with_it = Carried(request.tid, request.process.pid, control)
    try:
        sent = call.send(fd, held.rest, asked.flags, address, with_it.ready)
    finally:
        with_it.close()
    while True:
        held.sent += sent
        held.rest = held.rest[sent:]
        if asked.count_at:
            write_memory(request.tid, asked.count_at, struct.pack("i", held.sent))
        if not (held.rest and held.waits):
            return
        sent = call.send(fd, held.rest, asked.flags, address, ())


def _send_sigpipe(request: Request) -> None:
    held = signals.open_thread(request.tid)
    try:
        signals.send(held, signal.SIGPIPE, sender_pid=request.process.pid, sender_uid=os.getuid())
    finally:
        os.close(held)


class _OtherRights:
    """Finds threads whose rights differ from the supervisor's."""

    def __init__(self) -> None:
        self._own = procfs.rights("self") if os.geteuid() == 0 else None
        self._user_namespace = procfs.user_namespace("self")

    def of(self, tid: int) -> Rights | None:
        """Return the rights of a thread if they differ from ours and we could take them."""
        own = self._own
        found = procfs.rights(tid) if own is not None else None
        if own is None or found is None:
            return None
        kept = found.capabilities & own.capabilities
        if kept and procfs.user_namespace(tid) != self._user_namespace:
            kept = 0  # they are valid in their own namespace only
        found = found._replace(capabilities=kept)
        return None if found == own else found


def _take_rights(rights: Rights) -> None:
    """Give these rights to the thread that calls it, for good. Raises KernelError."""
    uid, gid, capabilities = rights.uid, rights.gid, rights.capabilities
    packed = struct.pack(f"={len(rights.groups)}I", *rights.groups)
    syscall("setgroups", _SYS_SETGROUPS, len(rights.groups), packed)
    syscall("setresgid", _SYS_SETRESGID, gid, gid, gid)
    # A user other than root can have capabilities too: ambient ones, or a file's.
    syscall("prctl", _SYS_PRCTL, _PR_SET_KEEPCAPS, 1, 0, 0, 0)
    syscall("setresuid", _SYS_SETRESUID, uid, uid, uid)
    low, high = capabilities & 0xFFFFFFFF, capabilities >> 32
    sets = _CAPABILITIES.pack(low, low, 0, high, high, 0)  # effective, permitted, inheritable
    syscall("capset", _SYS_CAPSET, _CAPSET_HEADER, sets)
