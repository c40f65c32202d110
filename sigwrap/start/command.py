"""Finds the command, and starts it as if sigwrap were not there."""

from __future__ import annotations

import errno
import os
import stat

from sigwrap.bare import TYPE_CHECKING, NamedTuple, NoReturn, signal
from sigwrap.errors import NOT_EXECUTABLE, NOT_FOUND, SigwrapError
from sigwrap.kernel import libc, limits, procfs, signals
from sigwrap.start import onefile

if TYPE_CHECKING:
    from sigwrap.policy.judge.rules import EnvPolicy

# A service checks these for its own pid.
_OF_A_MANAGER = (b"LISTEN_PID", b"WATCHDOG_PID", b"SYSTEMD_EXEC_PID")
_DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"
# Python ignores these two from its start; their earlier state is unknown.
_IGNORED_BY_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})


class CommandError(SigwrapError):
    """The command cannot be run; `status` is NOT_FOUND or NOT_EXECUTABLE."""

    def __init__(self, message: str, status: int, hint: str = "") -> None:
        super().__init__(message, hint)
        self.status = status


class Inherited(NamedTuple):
    """The state that the command inherits, from before sigwrap's start changed it."""

    environment: dict[bytes, bytes]
    signal_mask: frozenset[int]
    ignored_signals: frozenset[int]
    limits: tuple[limits.Limit, ...]
    with_our_pid: tuple[bytes, ...] = ()  # variables that hold the pid of a service

    @classmethod
    def capture(cls) -> Inherited:
        # Unchanged in the one-file binary: its bootloader forks before it handles signals.
        ignored = signals.ignored_signals(os.getpid()) - _IGNORED_BY_PYTHON
        environment = onefile.original_environment(procfs.environment())
        # The bootloader corrects one of these variables itself.
        known_pids = (b"%d" % onefile.bootloader_pid(), b"%d" % os.getpid())
        return cls(
            environment=environment,
            signal_mask=frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            ignored_signals=ignored,
            limits=limits.of_the_caller(),
            with_our_pid=tuple(n for n in _OF_A_MANAGER if environment.get(n) in known_pids),
        )


class HostEnvironment(NamedTuple):
    """sigwrap's own environment, and the part that the command gets."""

    own: dict[bytes, bytes]
    given: dict[bytes, bytes]
    removed: tuple[bytes, ...]

    @classmethod
    def under(cls, policy: EnvPolicy, environment: dict[bytes, bytes]) -> HostEnvironment:
        from sigwrap.policy.judge.environment import (  # a join needs none
            ALWAYS_REMOVED,
            judge_names,
        )

        never_given = frozenset(map(str.encode, ALWAYS_REMOVED))
        judged = judge_names(policy, map(os.fsdecode, environment))
        removed = dict.fromkeys(os.fsencode(each.name) for each in judged.removed)
        own = {name: value for name, value in environment.items() if name not in never_given}
        given = {name: value for name, value in own.items() if name not in removed}
        return cls(own, given, tuple(removed))


def find_program(command: str, environment: dict[bytes, bytes]) -> bytes:
    name = os.fsencode(command)
    if not name:
        raise CommandError("the command is empty", NOT_FOUND)
    if b"/" in name:
        candidates = [name]
    else:
        folders = environment.get(b"PATH", _DEFAULT_PATH).split(b":")
        candidates = [os.path.join(folder or b".", name) for folder in folders]
    refused = b""
    for candidate in candidates:
        try:
            mode = os.stat(candidate).st_mode
        except OSError as failure:
            if failure.errno == errno.EACCES and b"/" in name:
                raise CommandError(
                    f"{command}: {os.strerror(errno.EACCES)}", NOT_EXECUTABLE
                ) from failure
            continue  # execvp also skips a directory on PATH that it cannot search
        if stat.S_ISREG(mode) and os.access(candidate, os.X_OK):
            return candidate
        if b"/" in name or not stat.S_ISDIR(mode):
            refused = refused or candidate
    if refused:
        raise not_executable(refused)
    where = "" if b"/" in name else " on PATH"
    where += " (options go before --)" if command.startswith("-") else ""
    raise CommandError(f"{command}: command not found{where}", NOT_FOUND)


def not_executable(program: bytes) -> CommandError:
    shown = os.fsdecode(program)
    if os.path.isdir(program):
        return CommandError(f"{shown}: is a directory, not a program", NOT_EXECUTABLE)
    return CommandError(f"{shown}: not executable", NOT_EXECUTABLE, f"try: chmod +x {shown}")


def become(
    program: bytes, arguments: tuple[str, ...], inherited: Inherited, added: dict[bytes, bytes]
) -> NoReturn:
    """Execute the command in this process, or raise CommandError."""
    error = exec_command(program, arguments, inherited, added)
    raise CommandError(f"{os.fsdecode(program)}: {os.strerror(error)}", NOT_EXECUTABLE)


def exec_command(
    program: bytes, arguments: tuple[str, ...], inherited: Inherited, added: dict[bytes, bytes]
) -> int:
    """Execute the command, or return the errno."""
    given = [os.fsencode(argument) for argument in arguments]
    words, words_of_sh = libc.strings(given), libc.strings([b"sh", program, *given[1:]])
    its_pid = b"%d" % os.getpid()
    meant = {name: its_pid for name in inherited.with_our_pid if name in inherited.environment}
    variables = (inherited.environment | meant | added).items()
    environment = libc.strings(name + b"=" + value for name, value in variables)
    restore_signals(inherited)
    try:
        limits.give_back(inherited.limits)  # last, since memory may be limited after that
        error = libc.execve(program, words, environment)
        if error == errno.ENOEXEC:  # a script without a first line, as in execvp
            error = libc.execve(b"/bin/sh", words_of_sh, environment)
    except MemoryError:
        error = errno.ENOMEM
    return error


def restore_signals(inherited: Inherited) -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        ignored = number in inherited.ignored_signals
        signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, inherited.signal_mask)
