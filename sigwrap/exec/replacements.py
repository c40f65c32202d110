"""Prepare a program that runs in place of an exec, and put it into the caller's own call: the
target of a `redirect`, or a stub, which waits for an approval or records a command."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import struct
from collections.abc import Callable, Sequence

from sigwrap.bare import TYPE_CHECKING
from sigwrap.exec.asked import DEFAULT_PATH, Asked, Given
from sigwrap.exec.content import ExecRefused, command_line
from sigwrap.exec.executable import Executable
from sigwrap.kernel import procfs, signals
from sigwrap.kernel.file_state import Inode, inode_of
from sigwrap.kernel.memory import may_be_served
from sigwrap.kernel.paths import AT_FDCWD, Caller, WouldBlock, open_used
from sigwrap.kernel.restage import Redirection, objection_to, variables_for
from sigwrap.machine import IS_AARCH64, IS_X86_64
from sigwrap.policy.judge.request import Program, Via
from sigwrap.record.recordings import Expected, Recordings, stub_line, stub_variables
from sigwrap.session.effects import (
    Prepare,
    Prepared,
    PrepareStub,
    PrepareStubCommand,
    Replace,
    Unpreparable,
)
from sigwrap.session.lineage import Process
from sigwrap.session.loop import Done, Outcome, Raised
from sigwrap.session.perform import PAUSED, InWorker, Request
from sigwrap.start.own_files import changed_stub_file

if TYPE_CHECKING:
    from sigwrap.exec.handler import Execs
    from sigwrap.exec.verify import ExecHoldings
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

_STUB_ATTEMPTS = 3  # a signal may interrupt one
_A_STUB_OPENS = 24  # descriptors that an interpreter reads at its start, and its own


class _Impossible(Exception):
    """The message says why there is no replacement."""


class Replacements:
    def __init__(self, session: Session, mediation: Mediation, execs: Execs) -> None:
        self._performer = performer = mediation.performer
        self._listener = mediation.listener
        self._recordings = mediation.recordings
        self._tracer = execs.tracer
        self._ours = execs.ours
        self._environment = session.facts.environment
        performer.offer(
            {
                Prepare: self._prepare,
                PrepareStubCommand: self._prepare_stub_command,
                PrepareStub: self._prepare_stub,
                Replace: self._replace,
            }
        )

    def _prepare(self, request: Request, effect: Prepare) -> object:
        held: ExecHoldings = request.holdings
        redirect = effect.redirect
        held.sets_environment = redirect.via is Via.STUB
        host, given = self._environment.own, self._environment.given
        try:
            held.variables = variables_for(redirect, host, given, self._session_of(request))
        except KeyError as missing:
            name = os.fsdecode(missing.args[0])
            return Unpreparable(f"sigwrap has no {name} in its environment")
        held.holds_secret = redirect.has_secret
        if held.holds_secret and (problem := objection_to(request.tid)):
            return Unpreparable(problem)
        if redirect.record and (changed := changed_stub_file()):
            return Unpreparable(f"sigwrap's own file has changed: {changed}")
        held.name = effect.argv[0]  # even if a stub runs in its place
        argv = [os.fsencode(word) for word in effect.argv]

        def find(may_wait: bool) -> list[_Found]:
            found = [self._found(request, redirect.command, argv, may_wait)]
            if redirect.record:
                try:
                    line = stub_line(found[0][0], argv)
                    found.append(self._found(request, *line, may_wait))
                except BaseException as failure:
                    _close(found)
                    if isinstance(failure, _Impossible):
                        raise _Impossible(f"for sigwrap's own program, {failure}") from failure
                    raise
            return found

        def prepare(found: list[_Found]) -> Prepared | Unpreparable:
            path, _, first = found[0]
            shown = first.programs[0].path
            held.path, held.replacement_argv, held.replacement = found[-1]
            if redirect.record:
                inodes = first.inodes()
                first.close()
                if not _has_room_for_a_stub(request.process.pid):
                    return Unpreparable("too few descriptors are free to record it")
                expected = Expected(
                    path, argv, inodes, held.variables, held.holds_secret, effect.rule
                )
                held.holds_secret = False  # the stub
                held.variables = stub_variables(signals.ignored_signals(request.process.pid))
                held.at_exec_stop = _noting(self._recordings, request.process, expected)
            return Prepared(shown, effect.argv, held.replacement.readable)

        return _find(request, redirect.command, find, prepare)

    def _prepare_stub_command(self, request: Request, _effect: PrepareStubCommand) -> object:
        held: ExecHoldings = request.holdings
        expected = held.expected
        assert expected is not None, "a stub's command"
        if changed := changed_stub_file():  # the stub has loaded it since
            return Unpreparable(f"sigwrap's own file has changed: {changed}")
        held.holds_secret = expected.is_secret
        if held.holds_secret and (problem := objection_to(request.tid)):
            return Unpreparable(problem)
        path = os.fsdecode(expected.path)

        def find(may_wait: bool) -> list[_Found]:
            return [self._found(request, path, expected.argv, may_wait)]

        def prepare(found: list[_Found]) -> Prepared | Unpreparable:
            held.path, held.replacement_argv, executable = found[0]
            held.replacement = executable
            if executable.inodes() != expected.inodes:
                return Unpreparable(f"its replacement is another file now: {path}")
            self._performer.check(request)
            try:
                held.recording = self._recordings.begin(request.id, request.process)
            except OSError as failure:
                why = os.strerror(failure.errno or errno.EIO)
                return Unpreparable(f"its input and output can't be recorded: {why}")
            held.variables = expected.variables
            # A child of the stub's caller from before could pass some, and read a secret so.
            held.sets_environment = True
            held.at_exec_stop = held.recording.command_runs
            argv = tuple(map(os.fsdecode, expected.argv))
            held.name = argv[0]
            return Prepared(executable.programs[0].path, argv, executable.readable)

        return _find(request, path, find, prepare)

    def _found(
        self, request: Request, command: str, argv: Sequence[bytes], may_wait: bool
    ) -> _Found:
        """Find a replacement along sigwrap's own PATH. Raises WouldBlock and _Impossible.

        The caller can change its own PATH, its directory, which a relative entry of PATH means, and
        its mounts, which the call uses as well.
        """
        word, path = os.fsencode(command), os.environb.get(b"PATH", DEFAULT_PATH)
        folders = [folder for folder in path.split(b":") if folder.startswith(b"/")]
        if b"/" in word:
            folders = [b"/"]
        try:
            caller = Caller(request.tid, request.process.pid, may_wait=may_wait)
        except OSError:
            folders = []
        for folder in folders:
            path = os.path.join(folder, word)
            try:
                executable = Executable(caller, Given(path, list(argv)), self._ours)
            except (OSError, ExecRefused):
                continue
            if any(each.elsewhere for each in executable.programs):
                executable.close()
                why = "its replacement would be another file than sigwrap's own"
                raise _Impossible(f"{why}: {command}")
            return path, argv, executable
        raise _Impossible(f"its replacement can't be run: {command}")

    def _prepare_stub(self, request: Request, _effect: PrepareStub) -> object:
        held: ExecHoldings = request.holdings
        asked, executable = held.asked, held.executable
        assert asked is not None and executable is not None, "judged before"
        request.process.stub_attempts += 1
        if not (
            executable.is_elf
            and _stub_can_make(asked, executable, request.tid)
            and request.process.stub_attempts <= _STUB_ATTEMPTS
        ):
            return Unpreparable("a stub cannot make the same exec")
        self._performer.check(request)
        notification_id = request.id

        def work() -> tuple[int, int]:
            file = make_file()
            try:
                return file, self._listener.add_descriptor(notification_id, file)
            except BaseException:
                os.close(file)
                raise

        def then(outcome: Outcome) -> Prepared | Unpreparable:
            if not isinstance(outcome, Done):
                return Unpreparable("its caller does not take the stub")
            file, held.descriptor = outcome.value
            return self._stub(request, asked, executable, file)

        # In a worker: the caller itself installs the descriptor, when it next runs.
        return InWorker(work, then, lambda found: os.close(found[0]))

    def _stub(
        self, request: Request, asked: Asked, executable: Executable, file: int
    ) -> Prepared | Unpreparable:
        held: ExecHoldings = request.holdings
        held.name = os.fsdecode(NAME)
        held.replacement_argv = argv = [NAME, asked.path, *asked.argv]
        words = tuple(map(os.fsdecode, argv))
        program = Program(held.name, held.name, words)
        try:
            held.replacement = Executable.again(
                request.tid, request.process.pid, file, (program,), command_line(argv), self._ours
            )
        except OSError as gone:
            os.close(file)
            return Unpreparable(os.strerror(gone.errno or errno.ESRCH))
        held.replacement.root = executable.root  # it opens no file there
        return Prepared(held.name, words, readable=True)

    def _replace(self, request: Request, effect: Replace) -> object:
        held: ExecHoldings = request.holdings
        asked = held.asked
        assert held.tid and asked is not None, "held and prepared before"
        held.redirection = Redirection(
            request.notification,
            held.path,
            held.replacement_argv,
            # If the environment is set at the exec stop, the call itself has an empty one.
            0 if held.sets_environment else asked.environment_at,
            held.descriptor,
        )
        request.process.comm_is_current = False
        self._tracer.restart(request, effect)
        return PAUSED

    def _session_of(self, request: Request) -> bytes:
        asked: Asked | None = request.holdings.asked
        assert asked is not None, "what is redirected was looked at"
        try:
            return asked.variable(b"SIGWRAP_SESSION") or b""
        except WouldBlock:
            return b""


_Found = tuple[bytes, Sequence[bytes], Executable]


def _find(
    request: Request,
    command: str,
    find: Callable[[bool], list[_Found]],
    prepare: Callable[[list[_Found]], Prepared | Unpreparable],
) -> object:
    """Find replacements, in a worker if that may block, and prepare them."""
    try:
        return prepare(find(False))
    except WouldBlock:
        pass
    except _Impossible as why:
        return Unpreparable(str(why))

    def then(outcome: Outcome) -> object:
        request.is_checked = False
        if isinstance(outcome, Done):
            return prepare(outcome.value)
        if isinstance(outcome, Raised) and isinstance(outcome.error, _Impossible):
            return Unpreparable(str(outcome.error))
        return Unpreparable(f"its replacement can't be run: {command}")

    return InWorker(lambda: find(True), then, _close)


def _close(found: list[_Found]) -> None:
    for _, _, executable in found:
        executable.close()


def _stub_can_make(asked: Asked, executable: Executable, tid: int) -> bool:
    """Return whether the same call from the stub means the same file, and the caller's filters and
    memory allow sigwrap to change the call."""
    if asked.folder_fd != AT_FDCWD or asked.flags or asked.truncated or may_be_served():
        return False
    if not _leads_to(asked.path, executable.inodes()[0], tid):
        return False
    own, filters = procfs.filters("self"), procfs.filters(tid)
    return own is None or filters is None or filters <= own + 1


def _leads_to(path: bytes, inode: Inode, tid: int) -> bool:
    """Return whether sigwrap finds the same file at the path. `/proc/self/exe` differs for each
    process."""
    opened = list[int]()
    try:
        opened.append(procfs.open_file(f"/proc/{tid}/cwd", os.O_PATH | os.O_DIRECTORY))
        opened.append(open_used(os.fsdecode(path), opened[0]))
        return inode_of(opened[1]) == inode
    except OSError:
        return False
    finally:
        for fd in opened:
            os.close(fd)


def _noting(recordings: Recordings, stub: Process, expected: Expected) -> Callable[[int], str]:
    def note(_pid: int) -> str:
        recordings.expected[stub] = expected
        return ""

    return note


def _has_room_for_a_stub(pid: int) -> bool:
    """Return whether enough descriptors are free. Otherwise the stub would fail at its start."""
    try:
        limit, _hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        taken = procfs.names(f"/proc/{pid}/fd")
    except OSError:
        return False
    if limit == resource.RLIM_INFINITY or limit - len(taken) >= _A_STUB_OPENS:
        return True
    return limit - sum(_survives_exec(pid, name) for name in taken) >= _A_STUB_OPENS


def _survives_exec(pid: int, fd: str) -> bool:
    flags = procfs.descriptor_field(pid, fd, b"flags")
    return flags is not None and not int(flags, 8) & os.O_CLOEXEC


# Build the program that a process runs while its exec waits for an approval.

NAME = b"sigwrap-stub"
TEXT = b"sigwrap-stub: the approved command failed\n"

# argv: the stub's name, the command's path, the command's argv. EACCES is already reported.
X86_64 = """
488d3550000000  lea rsi, [rip + name]
bf0f000000      mov edi, 15               # PR_SET_NAME
b89d000000      mov eax, 157              # prctl
0f05            syscall
488b0c24        mov rcx, [rsp]            # argc
488b7c2410      mov rdi, [rsp + 16]       # argv[1]
488d742418      lea rsi, [rsp + 24]       # argv + 2
488d54cc10      lea rdx, [rsp + rcx * 8 + 16]  # envp
b83b000000      mov eax, 59               # execve
0f05            syscall
4883f8f3        cmp rax, -13              # EACCES
7418            je 1f
488d352a000000  lea rsi, [rip + text]
bf02000000      mov edi, 2
ba2a000000      mov edx, 42
b801000000      mov eax, 1                # write
0f05            syscall
bf7e000000      1: mov edi, 126
b8e7000000      mov eax, 231              # exit_group
0f05            syscall
"""
AARCH64 = """
a1020010  adr x1, name
e00180d2  mov x0, 15                      // PR_SET_NAME
e81480d2  mov x8, 167                     // prctl
010000d4  svc 0
e20340f9  ldr x2, [sp]                    // argc
e00b40f9  ldr x0, [sp, 16]                // argv[1]
e1630091  add x1, sp, 24                  // argv + 2
e26f228b  add x2, sp, x2, lsl 3
42400091  add x2, x2, 16                  // envp
a81b80d2  mov x8, 221                     // execve
010000d4  svc 0
1f3400b1  cmn x0, 13                      // EACCES
c0000054  b.eq 1f
400080d2  mov x0, 2
41010030  adr x1, text
420580d2  mov x2, 42
080880d2  mov x8, 64                      // write
010000d4  svc 0
c00f80d2  1: mov x0, 126
c80b80d2  mov x8, 94                      // exit_group
010000d4  svc 0
"""
_ADDRESS = 0x400000
_HEADERS = 64 + 2 * 56
_LOADED, _STACK = 1, 0x6474E551
_READ, _WRITE, _EXECUTE = 4, 2, 1
_MFD_EXEC = 0x10  # since Linux 6.3
_ALL_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def program() -> bytes:
    """Return the ELF file. Raises OSError on other machines."""
    if not (IS_X86_64 or IS_AARCH64):
        raise OSError(errno.ENOEXEC, os.strerror(errno.ENOEXEC))
    machine, listing = (62, X86_64) if IS_X86_64 else (183, AARCH64)
    code = code_of(listing)
    end = _HEADERS + len(code)
    head = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH",
        *(2, machine, 1, _ADDRESS + _HEADERS, 64, 0, 0, 64, 56, 2, 0, 0, 0),
    )
    loaded = (_LOADED, _READ | _EXECUTE, 0, _ADDRESS, _ADDRESS, end, end, 0x1000)
    stack = (_STACK, _READ | _WRITE, 0, 0, 0, 0, 0, 16)
    return head + struct.pack("<IIQQQQQQIIQQQQQQ", *loaded, *stack) + code


def code_of(listing: str) -> bytes:
    lines = listing.strip().splitlines()
    return bytes.fromhex("".join(line.split()[0] for line in lines)) + NAME + b"\0" + TEXT


def make_file() -> int:
    """Return a descriptor of the program in a sealed memory file. Raises OSError."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        fd = os.memfd_create("sigwrap-stub", flags | _MFD_EXEC)
    except OSError as refusal:
        if refusal.errno != errno.EINVAL:
            raise
        fd = os.memfd_create("sigwrap-stub", flags)
    os.write(fd, program())
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _ALL_SEALS)
    return fd
