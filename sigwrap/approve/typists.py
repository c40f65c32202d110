"""Finds programs through which the session could type on our terminal, as if it were the user: the
supervisor does not ask there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from sigwrap.approve.terminal_prompt import TerminalPrompt
from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.kernel import procfs
from sigwrap.kernel.peer import Peer, carries_more_filters_than_us, listening_at, peer_of

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_LOOK_AGAIN_EVERY_S = 1.0
_MULTIPLEXERS = {"tmux": "TMUX", "screen": "STY", "SCREEN": "STY", "zellij": "ZELLIJ"}
_TYPISTS = (*_MULTIPLEXERS, "dtach", "abduco", "shpool", "wezterm", "nvim", "emacs")
_RECORDERS = ("script", "asciinema", "ttyrec")
_RELAYS = (*_RECORDERS, "sudo", "su", "expect", "unbuffer", "systemd-run", "rlwrap")
_VARIABLES = (
    *dict.fromkeys(_MULTIPLEXERS.values()),
    *("ABDUCO_SESSION", "WEZTERM_UNIX_SOCKET", "KITTY_LISTEN_ON", "NVIM", "INSIDE_EMACS"),
)
_PSEUDO_TERMINALS = range(136, 144)
_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
# Processor time: 60,000 descriptors took 0.3 to 0.5 s, and the session could open any number.
_SEARCH_AT_MOST_S = 0.5
_MOST_TERMINALS = 16
_LOOKS = 4  # for the clients of a multiplexer
_BETWEEN_LOOKS_S = 0.01  # in which a client that ends can close its sockets
_SOCKET = "socket:["


class Typist(NamedTuple):
    pid: int  # 0 if only a variable shows it
    why: str


class TypistSearch(NamedTuple):
    typist: Typist | None  # None if only the user can type
    # The policy denies their sockets to the session; a connection to one would make it a typist.
    # If there are any, another search may find another typist, or none.
    multiplexers: frozenset[int] = frozenset()


class _TooMany(Exception):
    pass


class Typists:
    def __init__(self, session: Session, prompt: TerminalPrompt) -> None:
        self._session = session
        self._prompt = prompt
        self._found: TypistSearch | None = None  # None before the first search
        self._search_again_s = 0.0

    def found(self) -> Typist | None:
        """Return the program that could type an answer for the session, if there is one."""
        if self._found is None:
            in_domain = self._session.facts.sandbox.domain
            self._found = find_typist(in_domain=in_domain, keeps=self._keeps_from)
            if self._found.typist is not None:
                self._prompt.ask_elsewhere(self._found.typist.why)
        return self._found.typist

    def search_again(self) -> Typist | None:
        """Search once more if there is a multiplexer: its clients come and go."""
        before = self._found
        if before is not None and before.multiplexers:
            self._found = None
            if self.found() is None and before.typist is not None:
                self._prompt.ask_here_again(before.typist.why)
        return self.found()

    def search_again_if_due(self) -> None:
        """Search at most for a twentieth of the time: a search reads all of /proc."""
        now_s = time.monotonic()
        if self._found is not None and now_s >= self._search_again_s:
            self.search_again()
            ended_s = time.monotonic()
            self._search_again_s = now_s + max(_LOOK_AGAIN_EVERY_S, 20 * (ended_s - now_s))

    def session_connected_to(self, pid: int) -> None:
        """Stop asking on the terminal if `pid` is the multiplexer that drives it."""
        if self._found is not None and pid in self._found.multiplexers:
            why = f"the session has connected to {procfs.comm(pid)} and may type here"
            self._found = TypistSearch(Typist(pid, why))
            self._prompt.ask_elsewhere(why)

    def type_for(self, peer: Peer) -> bool:
        """Return whether the session could type on the terminal of `peer`: if the program holds its
        other end, or started `peer`."""
        typist = self.found()
        if typist is None or typist.pid == 0:
            return False
        if typist.pid in (peer.pid, *procfs.ancestors(peer.pid)):
            return True
        terminal = procfs.controlling_terminal(peer.pid)
        try:
            return terminal is not None and typist.pid in _Holders().of_terminal(terminal)
        except _TooMany:
            return True

    def _keeps_from(self, sockets: Sequence[str]) -> bool:
        """Return whether the policy keeps the session from all of the sockets, and there is one."""
        return bool(sockets) and all(map(self._session.keeps_from, sockets))


class _Holders:
    """The processes that hold the other ends of pseudo-terminals, and unix sockets.

    Searches readable processes only: the session can read no others either.
    """

    def __init__(self) -> None:
        self._of_terminal: dict[int, list[int]] = {}  # by its index
        self.of_socket: dict[int, list[int]] = {}  # by its inode
        until_s = time.thread_time() + _SEARCH_AT_MOST_S
        for pid in procfs.all_pids():
            for position, (fd, link) in enumerate(procfs.open_files(pid)):
                if position % 100 == 0 and time.thread_time() > until_s:
                    raise _TooMany
                if link.startswith(_SOCKET):
                    self.of_socket.setdefault(int(link[len(_SOCKET) : -1]), []).append(pid)
                elif link.endswith("/ptmx") and (index := _terminal_index(pid, fd)) is not None:
                    self._of_terminal.setdefault(index, []).append(pid)

    def of_terminal(self, terminal: int) -> list[int]:
        return self._of_terminal.get(os.minor(terminal), [])


def find_typist(*, in_domain: bool, keeps: Callable[[Sequence[str]], bool]) -> TypistSearch:
    """Find a program that can type on the terminal for the session.

    `in_domain`: the session is in a Landlock domain. `keeps`: the policy keeps the session from
    connecting to these unix sockets.
    """
    terminals, looked_at = [procfs.controlling_terminal(os.getpid())], set[int]()
    multiplexers, variables = set[int](), set(_VARIABLES)
    doubted = None
    try:
        holders = _Holders()
        while terminals:
            terminal = terminals.pop()
            if terminal is None or terminal in looked_at or not _is_pseudo(terminal):
                continue
            looked_at.add(terminal)
            if len(looked_at) > _MOST_TERMINALS:
                raise _TooMany
            for pid in holders.of_terminal(terminal) or _presumed_holder(terminal):
                name = procfs.comm(pid)
                program = name.partition(":")[0]
                is_kept = program in _MULTIPLEXERS and keeps(_listening_sockets(pid))
                if objection := _objection(pid, name, in_domain, is_kept=is_kept):
                    return TypistSearch(Typist(pid, objection))
                if is_kept:
                    multiplexers.add(pid)
                    variables.discard(_MULTIPLEXERS[program])
                    clients, are_all = _clients_of(pid, holders)
                    connected = Typist(pid, f"the session may be connected to {program}")
                    if any(map(_may_be_inside, clients)):
                        return TypistSearch(connected)
                    doubted = doubted if are_all else connected
                    terminals += map(procfs.controlling_terminal, clients)
                elif name in _RELAYS:
                    terminals.append(procfs.controlling_terminal(pid))
    except _TooMany:
        why = "too many open descriptors to find the program that drives this terminal"
        return TypistSearch(Typist(0, why))
    for variable in sorted(variables):
        if os.environ.get(variable):
            why = f"${variable} is set, so a process in the session may type on this terminal"
            return TypistSearch(Typist(0, why))
    return TypistSearch(doubted, frozenset(multiplexers))


def _objection(pid: int, name: str, in_domain: bool, *, is_kept: bool) -> str:
    if not _is_within_reach(pid):
        return ""
    if name.startswith(_TYPISTS) and not is_kept:
        return f"{name.partition(':')[0]} lets processes in the session type on this terminal"
    if name in _RECORDERS:
        return f"{name} records this terminal to a file that processes in the session may read"
    if pid not in (os.getpid(), os.getppid()) and carries_more_filters_than_us(pid):
        return f"{name} (pid {pid}) drives this terminal and is in a session"
    if not in_domain and not _only_descendants_are_traced():
        return f"a process in the session could take this terminal over from {name} (pid {pid})"
    return ""


def _listening_sockets(pid: int) -> list[str]:
    """Return the unix sockets at which a process accepts connections, as far as readable."""
    return [name for number in _sockets_of(pid) if (name := listening_at(number))]


def _clients_of(pid: int, holders: _Holders) -> tuple[set[int], bool]:
    """Return the processes at the other ends of a process's unix sockets, and whether these are
    all.

    False if no process holds an end. The session may have hidden it in a message; but a client that
    exits also loses its descriptors a moment before the kernel closes its sockets.
    """
    clients, unheld = set[int](), set[int]()
    for look in range(_LOOKS):
        if look:
            time.sleep(_BETWEEN_LOOKS_S)
            holders = _Holders()  # a client may have come or gone
        missing = set[int]()
        for number in _sockets_of(pid):
            if peer := peer_of(number):
                clients.update(holders.of_socket.get(peer, ()))
                if peer not in holders.of_socket:
                    missing.add(number)
        unheld = missing & unheld if look else missing
        if not unheld:
            break
    return clients - {pid}, not unheld


def _may_be_inside(pid: int) -> bool:
    """Return whether it may be in a session, or is ours: the command inherits our descriptors."""
    is_ours = pid in (os.getpid(), os.getppid())
    may_be = is_ours or carries_more_filters_than_us(pid)
    return may_be and not procfs.has_ended(pid)  # last: the above is unknown for one that has


def _sockets_of(pid: int) -> list[int]:
    links = (link for _, link in procfs.open_files(pid))
    return [int(link[len(_SOCKET) : -1]) for link in links if link.startswith(_SOCKET)]


def _is_within_reach(pid: int) -> bool:
    us = os.geteuid()
    try:
        return us in (0, procfs.file_status(f"/proc/{pid}").st_uid)
    except OSError:
        return False


def _only_descendants_are_traced() -> bool:
    return int(procfs.contents(_YAMA) or 0) > 0 and os.geteuid() != 0


def _is_pseudo(terminal: int) -> bool:
    return os.major(terminal) in _PSEUDO_TERMINALS


def _terminal_index(pid: int, fd: str) -> int | None:
    found = (procfs.contents(f"/proc/{pid}/fdinfo/{fd}") or b"").partition(b"\ntty-index:\t")[2]
    return int(found.split()[0]) if found else None


def _presumed_holder(terminal: int) -> list[int]:
    """Return the process that started the terminal's programs, for an unreadable holder (sudo)."""
    for pid in procfs.ancestors(os.getpid()):
        if pid > 1 and procfs.controlling_terminal(pid) != terminal:
            return [pid]
    return []
