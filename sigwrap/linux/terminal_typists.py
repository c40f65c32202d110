"""Who could type on our terminal in the place of a person, because the session can have it done.

- A multiplexer, or a terminal with a remote control: `tmux send-keys` types, and the socket for it
  belongs to the same user. It is known by its name, as the one that holds the other end of the
  pseudo-terminal, and by the variable that it sets. Where the policy keeps the session from all
  sockets of a multiplexer, only those who can type on its clients' terminals count.
- A recorder (`script`): the code that a yes needs (run/asking/terminal_answers.py) is in its file.
- A process inside a session that holds the other end itself.
- Whoever holds the other end, where nothing keeps the session from taking it away (pidfd_getfd):
  neither a Landlock domain around the session nor Yama.

`script`, `sudo` and their like pass on what is typed on a terminal of their own: that one counts as
well. Not known here: what types for a whole desktop (X11's XTEST, /dev/uinput).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

from sigwrap.linux import proc_files, procfs
from sigwrap.linux.peer import carries_more_filters_than_us
from sigwrap.linux.sockets.diag import listening_at
from sigwrap.tuples import NamedTuple

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
# Processor time, so that a busy machine finds as many (some 200,000 descriptors); the session could
# open any number.
_SEARCH_AT_MOST_S = 1.0
_MOST_TERMINALS = 16


class Typist(NamedTuple):
    pid: int  # 0 where it is known by a variable only
    why: str


class _TooMany(Exception):
    pass


def find_typist(*, walled: bool, keeps: Callable[[Sequence[str]], bool]) -> Typist | None:
    """None where only a person can type. `walled`: a Landlock domain is around the session.
    `keeps`: the policy keeps the session from connecting to these unix sockets."""
    terminals, looked_at = [procfs.controlling_terminal(os.getpid())], set[int]()
    kept = set[str]()  # the variables of multiplexers whose sockets are
    try:
        while terminals:
            terminal = terminals.pop()
            if terminal is None or os.major(terminal) not in _PSEUDO_TERMINALS:
                continue
            if terminal in looked_at or len(looked_at) == _MOST_TERMINALS:
                continue
            looked_at.add(terminal)
            for pid in list(_holders(terminal)) or _presumed_holder(terminal):
                name = procfs.comm(pid)
                program = name.partition(":")[0]
                is_kept = program in _MULTIPLEXERS and keeps(_listening_sockets(pid))
                if objection := _objection(pid, name, walled, is_kept=is_kept):
                    return Typist(pid, objection)
                if is_kept:
                    kept.add(_MULTIPLEXERS[program])
                    terminals += _terminals_of(program)
                elif name in _RELAYS:
                    terminals.append(procfs.controlling_terminal(pid))
    except _TooMany:
        return Typist(0, "too many open descriptors to find the program that drives this terminal")
    for variable in _VARIABLES:
        if variable not in kept and os.environ.get(variable):
            return Typist(
                0, f"${variable} is set, so a process in the session may type on this terminal"
            )
    return None


def types_for(pid: int, typist: int) -> bool:
    """Whether `typist` holds the other end of the terminal that `pid` is on, or started it."""
    terminal = procfs.controlling_terminal(pid)
    above = procfs.stat(pid)
    while above is not None and above.pid > 1:
        if above.pid == typist:
            return True
        above = procfs.stat(above.ppid)
    try:
        return terminal is not None and typist in _holders(terminal)
    except _TooMany:
        return True


def _objection(pid: int, name: str, walled: bool, *, is_kept: bool) -> str:
    if not _is_within_reach(pid):
        return ""
    if name.startswith(_TYPISTS) and not is_kept:
        return f"{name.partition(':')[0]} lets processes in the session type on this terminal"
    if name in _RECORDERS:
        return f"{name} records this terminal to a file that processes in the session may read"
    if pid not in (os.getpid(), os.getppid()) and carries_more_filters_than_us(pid):
        return f"{name} (pid {pid}) drives this terminal and is in a session"
    if not walled and not _only_descendants_are_traced():
        return f"a process in the session could take this terminal over from {name} (pid {pid})"
    return ""


def _listening_sockets(pid: int) -> list[str]:
    """The unix sockets at which a process accepts connections; empty where none can be known."""
    try:
        fds = proc_files.names(f"/proc/{pid}/fd")
        links = [proc_files.link(f"/proc/{pid}/fd/{fd}") for fd in fds]
    except OSError:
        return []
    numbers = (int(link[8:-1]) for link in links if link.startswith("socket:["))
    return [name for number in numbers if (name := listening_at(number))]


def _terminals_of(program: str) -> list[int | None]:
    """Where its clients run."""
    clients = (pid for pid in proc_files.all_pids() if procfs.comm(pid).startswith(program))
    return [procfs.controlling_terminal(pid) for pid in clients]


def _is_within_reach(pid: int) -> bool:
    us = os.geteuid()
    try:
        return us in (0, proc_files.file_status(f"/proc/{pid}").st_uid)
    except OSError:
        return False


def _only_descendants_are_traced() -> bool:
    return int(proc_files.contents(_YAMA) or 0) > 0 and os.geteuid() != 0


def _holders(terminal: int) -> Iterator[int]:
    """Who has the other end open, of those that we may look into; the session may look into no
    others either."""
    index = b"\ntty-index:\t%d\n" % os.minor(terminal)
    until_s = time.thread_time() + _SEARCH_AT_MOST_S
    for pid in proc_files.all_pids():
        try:
            fds = proc_files.names(f"/proc/{pid}/fd")
        except OSError:
            continue
        for position, fd in enumerate(fds):
            if position % 100 == 0 and time.thread_time() > until_s:
                raise _TooMany
            if _is_master(f"/proc/{pid}", fd, index):
                yield pid
                break


def _is_master(process: str, fd: str, index: bytes) -> bool:
    try:
        if not proc_files.link(f"{process}/fd/{fd}").endswith("/ptmx"):
            return False
    except OSError:
        return False
    return index in (proc_files.contents(f"{process}/fdinfo/{fd}") or b"")


def _presumed_holder(terminal: int) -> list[int]:
    """Where it may not be looked into (a sudo): whoever started what is on the terminal."""
    found = procfs.stat(os.getpid())
    while found is not None and found.ppid > 1:
        if procfs.controlling_terminal(found.ppid) != terminal:
            return [found.ppid]
        found = procfs.stat(found.ppid)
    return []
