"""What an exec would run: the file, its interpreters, and what a wrapper wraps.

Worked out while the caller waits, held by descriptors until the exec is over. The caller can still
change its memory and the files' names; what the kernel then loads is compared with this.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence

from sigwrap.linux.execs import content, elf
from sigwrap.linux.execs.asked import Asked, ExecRefused
from sigwrap.linux.execs.content import HASHED_AT_ONCE_BYTES, READ_TO_COMPARE_BYTES
from sigwrap.linux.execs.loading import Environment
from sigwrap.linux.execs.ours import Ours
from sigwrap.linux.execs.ownership import is_the_systems
from sigwrap.linux.execs.script import (
    MAX_INTERPRETERS,
    NotExecutableFormat,
    command_line,
    interpreter_argv,
    shebang,
)
from sigwrap.linux.execs.search import DEFAULT_PATH, Search
from sigwrap.linux.execs.where import Where
from sigwrap.linux.file_state import Inode, Place, State
from sigwrap.linux.memory import Memory, Unreadable
from sigwrap.linux.paths import AT_FDCWD, SERVED, Caller, MayWait, path_of
from sigwrap.policy.judge.request import AskedFact, Fact, Program
from sigwrap.policy.judge.wrappers import is_loader, keeps_search_path, plain_words, unwrap

_UNSEEN_FOLDER = "/usr/bin/"  # of a wrapped program that can't be found
_AT_EMPTY_PATH = 0x1000


class Executable:
    """What an exec would run. `programs` are what the policy judges, `here` those of them that this
    very exec would run; `image` is the file whose code would run, and `command_line` what it would
    see as its arguments (the start of it, where they were cut)."""

    __slots__ = (
        "_besides",
        "_caller",
        "_content",
        "_demanded",
        "_digests",
        "_files",
        "_loader_fd",
        "_named_loader",
        "_ours",
        "_puts_off",
        "_shown_differently",
        "command_line",
        "cut",
        "environment",
        "here",
        "image",
        "programs",
        "readable",
        "root",
        "script_wraps",
        "scripts",
        "where",
    )

    def __init__(
        self,
        caller: Caller,
        path: bytes,
        argv: Callable[[], tuple[list[bytes], bool]],
        *,
        folder_fd: int = AT_FDCWD,
        flags: int = 0,
        search_path: Callable[[], bytes] | None = None,
        environment: Environment | None = None,
        ours: Ours,
    ) -> None:
        """`argv` says whether it is cut as well, and is asked for once the file is found, as the
        kernel does it: a search along PATH fails before. OSError and ExecRefused carry what the
        kernel would say. Without `search_path`, wrappers are not looked into. Raises MayWait, where
        `caller` may not."""
        self._begin(caller, environment, ours)
        try:
            self._resolve(path, argv, folder_fd, flags, search_path)
        except NotExecutableFormat as refusal:
            self.close()
            raise ExecRefused(errno.ENOEXEC) from refusal
        except BaseException:
            self.close()
            raise

    def _begin(self, caller: Caller, environment: Environment | None, ours: Ours) -> None:
        self._caller = caller
        self.environment = environment
        self._ours = ours
        self.root = caller.root
        self.where = Where(caller, ours.mounts)
        self._files: dict[int, State] = {}  # by the descriptor that holds it
        self._digests: dict[int, str] = {}  # of those that a rule has asked for
        self._shown_differently: set[int] = set()  # maybe: to each who reads them
        self._puts_off = False  # large digests, for put_off_digests
        self._demanded: list[int] = []
        self._content: tuple[str, ...] = ()
        self._besides: dict[int, State] = {}
        self.scripts: tuple[str, ...] = ()  # the file and interpreters that are some, as called
        # What their interpreter is to exec, where its words say that and no more.
        self.script_wraps: Program | None = None
        self.readable = True
        self._named_loader: tuple[int, elf.Loader] | None = None
        self._loader_fd = -1  # where it isn't a usual one

    def close(self) -> None:
        self._close(self._files)
        self._close(self._besides)
        # Its programs' facts lead back here: arguments of megabytes would wait for the collector.
        self.programs: tuple[Program, ...] = ()
        self.here: tuple[Program, ...] = ()
        self.environment = None

    def _close(self, files: dict[int, State]) -> None:
        for fd in files:
            os.close(fd)
        files.clear()

    @classmethod
    def again(
        cls, tid: int, pid: int, fd: int, programs: tuple[Program, ...], line: bytes, ours: Ours
    ) -> Executable:
        """The file of `fd`, which was judged before, by the same facts (run/execs/repeated.py): the
        caller's root was ours then, and may be another since. OSError where it has ended."""
        self = cls.__new__(cls)
        self._begin(Caller(tid, pid, ours.view), None, ours)
        self.root = ours.view.root
        self._hold(fd, self._caller.state_of(fd))
        self.image = self._files[fd].place
        self.programs = self.here = programs
        self.command_line, self.cut = line, False
        return self

    def stays(self) -> State | None:
        """The file's state, where all that was found out about it hangs on that and on its path;
        else None."""
        state, *others = self._files.values()
        is_plain = not (others or self._shown_differently or self.scripts or self.cut)
        if not (is_plain and self.readable and self._caller.shares_our_root):
            return None
        if self._digests or self._content or self._loader_fd >= 0:
            return None
        if self._named_loader is None or self._named_loader[1] != elf.USUAL_OF_ROOT:
            return None
        if not (self._caller.is_local(state) and content.has_settled(state)):
            return None
        path = self.programs[0].path
        if not self._ours.named_files.is_original(state, path):
            return None
        return state

    @property
    def verified_image(self) -> Place | None:
        """Once what was loaded was compared. None of a program that may not be read."""
        return self.image if self.readable else None

    @property
    def is_elf(self) -> bool:
        """Whether it is an ELF file, or a script of one. A shell interprets what is neither, once
        its exec has failed."""
        return self._named_loader is not None

    def place_of_image(self, pid: int) -> Place:
        return self._caller.place_of(b"/proc/%d/exe" % pid)

    def inodes(self) -> list[Inode]:
        """Of the file and its interpreters."""
        return [state.inode for state in self._files.values()]

    # Digests

    def put_off_digests(self, judge: Callable[[], object]) -> bool:
        """Whether `judge` needs digests that take too long for the loop: take_digests, aside."""
        if all(state.size <= HASHED_AT_ONCE_BYTES for state in self._files.values()):
            return False
        self._puts_off = True
        try:
            judge()
        except MayWait:
            return True
        finally:
            self._puts_off = False
        return False

    def take_digests(self) -> None:
        for fd in self._demanded:
            self._digests[fd] = content.digest(fd)
        self._demanded.clear()

    def is_read_slowly(self) -> bool:
        """What has to be read of its files at the exec stop is more than the loop can wait for, or
        lies where somebody may take his time."""
        return any(not self._caller.is_local(state) for state in self._files.values()) or any(
            self._files[fd].size > HASHED_AT_ONCE_BYTES for fd in self._digests
        )

    def digests_hold(self) -> bool:
        """At the exec stop, when nobody can write to the file any more."""
        return all(content.digest(fd) == digest for fd, digest in self._digests.items())

    def _digester(self, fd: int) -> Callable[[], str]:
        def known_digest() -> str:
            if fd in self._shown_differently:
                return ""
            known = self._digests.get(fd)
            if known is None:
                if self._puts_off and self._files[fd].size > HASHED_AT_ONCE_BYTES:
                    self._demanded.append(fd)
                    raise MayWait
                known = self._digests[fd] = content.digest(fd)
            return known

        return AskedFact(known_digest)

    # What would run

    def read_content(self, besides: Sequence[str] = ()) -> tuple[str, ...]:
        """Once it is read, it has to be the same at the exec stop. `besides`: of these files too;
        empty where one of them can't be had without waiting for somebody."""
        self._close(self._besides)
        try:
            for path in besides:
                self._hold_besides(self._caller.open(os.fsencode(path)))
        except (OSError, MayWait):
            return ()
        self._content = self._content_now()
        return self._content

    def _hold_besides(self, fd: int) -> None:
        self._besides[fd] = state = self._caller.state_of(fd)
        if not self._caller.is_plain(fd, state):
            raise MayWait(SERVED)

    def content_holds(self) -> bool:
        return not self._content or self._content == self._content_now()

    def _content_now(self) -> tuple[str, ...]:
        """Files that are large, alone or together, only by their state: to read them would hold
        up everybody."""
        found, left = list[str](), READ_TO_COMPARE_BYTES
        for fd in (*self._files, *self._besides):
            state = self._caller.known_state(fd)
            by_state_alone = fd in self._shown_differently or state.size > left
            left -= 0 if by_state_alone else state.size
            found.append(content.fingerprint(fd, state, by_state_alone=by_state_alone))
        return tuple(found)

    def _resolve(
        self,
        path: bytes,
        read_argv: Callable[[], tuple[list[bytes], bool]],
        folder_fd: int,
        flags: int,
        search_path: Callable[[], bytes] | None,
    ) -> None:
        called = path
        if not path and flags & _AT_EMPTY_PATH and folder_fd != AT_FDCWD:
            fd = self._caller.open_descriptor(folder_fd)
            called = b"/dev/fd/%d" % folder_fd
        else:
            fd = self._caller.open(path, folder_fd)
            if folder_fd != AT_FDCWD and not path.startswith(b"/"):
                called = b"/dev/fd/%d/%b" % (folder_fd, path)
        state = self._pin(fd)
        argv, self.cut = read_argv()
        # Nobody who searches PATH has a descriptor of the folder.
        searched = called if called is not path else _word(argv)
        programs = [self._program(fd, path, argv, searched)]
        also = self._originals(state, programs[0])
        header = self._header(fd, state)
        for depth in range(MAX_INTERPRETERS + 1):
            script = None if header is None else shebang(header)
            if script is None:
                break
            if depth == MAX_INTERPRETERS:
                raise ExecRefused(errno.ELOOP)
            self.scripts += (os.fsdecode(called),)
            argv = interpreter_argv(script, called, argv)
            called = script.interpreter
            fd = self._caller.open(called)
            state = self._pin(fd)
            programs.append(self._program(fd, called, argv, called))
            also += self._originals(state, programs[-1])
            header = self._header(fd, state)
        self.readable = header is not None
        self.image: Place = state.place
        whole = command_line(argv)
        self.command_line = whole[:-1] if self.cut else whole
        here, later = [*programs, *also], list[Program]()
        if search_path is not None:
            search = Search(self._caller, search_path)
            for program in (*programs, *also):
                own, others = self._wrapped(program, search)
                here += own
                later += others
                if self.scripts and program is programs[-1]:
                    self.script_wraps = _plainly_wrapped(program, others)
        if header is not None and header.startswith(elf.MAGIC):
            here += self._loader(fd, state, argv)
        self.here = tuple(here)
        self.programs = (*here, *later)

    def _originals(self, state: State, program: Program) -> list[Program]:
        may_wait = self._caller.may_wait
        return self._ours.named_files.originals(state, program, may_wait=may_wait)

    def _loader(self, fd: int, state: State, argv: list[bytes]) -> list[Program]:
        """What an ELF file names in the place of the C library's loader runs, and it alone."""
        try:
            found = elf.loader(fd, state)
        except BlockingIOError as leased:
            if not self._caller.may_wait:
                raise MayWait(content.LEASED) from leased
            content.await_lease(fd)
            found = elf.loader(fd, state)
        self._named_loader = fd, found
        path = self._named_loader[1].path
        if not path:
            return []
        self._loader_fd = self._caller.open(path)
        loader_state = self._pin(self._loader_fd)
        program = self._program(self._loader_fd, path, argv, path)._replace(counts_by_name=True)
        return [program, *self._originals(loader_state, program)]

    def loader_holds(self, pid: int) -> bool:
        """At the exec stop, when nobody can write to the file any more."""
        if self._named_loader is not None and not elf.holds(*self._named_loader):
            return False
        return self._loader_fd < 0 or elf.is_mapped(pid, self._loader_fd)

    def _pin(self, fd: int) -> State:
        try:
            state = self._caller.state_of(fd)
        except BaseException:
            os.close(fd)
            raise
        self._hold(fd, state)
        if not self._caller.may_wait and not self._caller.is_local(state):
            raise MayWait(SERVED)
        if not stat.S_ISREG(state.mode) or not state.mode & 0o111:
            raise ExecRefused(errno.EACCES)
        return state

    def _hold(self, fd: int, state: State) -> None:
        self._files[fd] = state
        if not self._caller.is_plain(fd, state):
            self._shown_differently.add(fd)

    def _program(self, fd: int, called: bytes, argv: list[bytes], searched: bytes) -> Program:
        """`searched`: the word by which it may have been found along PATH."""
        path = path_of(fd)
        name = os.fsdecode(called.rpartition(b"/")[2]) or path.rpartition("/")[2]
        path = path or f".../{name}"
        elsewhere = self._is_elsewhere(fd)
        shadows = "" if b"/" in searched else self._shadows(fd, called, elsewhere=elsewhere)
        return Program(
            path,
            name,
            tuple(map(os.fsdecode, argv)),
            self._digester(fd),
            elsewhere,
            self._system_file(fd, called, path, elsewhere=elsewhere),
            self._loads_code((name, path.rpartition("/")[2])),
            shadows=shadows,
            found=os.fsdecode(called) if shadows else "",
        )

    def _shadows(self, fd: int, called: bytes, *, elsewhere: bool) -> str:
        return self._ours.commands.shadowed(
            self._caller, fd, self._files[fd], called, elsewhere=elsewhere
        )

    def _system_file(self, fd: int, called: bytes, path: str, *, elsewhere: bool) -> Fact:
        if elsewhere or fd in self._shown_differently:
            return False
        return AskedFact(lambda: is_the_systems(fd, os.fsdecode(called), path))

    def _loads_code(self, names: tuple[str, str], added: tuple[str, ...] = ()) -> Fact:
        environment = self.environment
        if environment is None:
            return False
        # What can't be read can't be held against the new image's either.
        return AskedFact(lambda: not self.readable or environment.loads_code(names, added))

    def _is_elsewhere(self, fd: int) -> bool:
        """Of what the caller's view has just been asked for."""
        caller = self._caller
        if caller.shares_our_root:
            return not (caller.found_below_our_root or self._ours.mounts.hold(fd))
        return True

    def _header(self, fd: int, state: State) -> bytes | None:
        return content.header(fd, state, may_wait=self._caller.may_wait)

    def _wrapped(self, program: Program, search: Search) -> tuple[list[Program], list[Program]]:
        """What runs within this exec (an applet, what ld.so maps), and what execs of its own."""
        basename = program.path.rpartition("/")[2]
        wrapped = unwrap(basename, program.argv)
        if not wrapped and program.name != basename:
            wrapped = unwrap(program.name, program.argv)
        here: list[Program] = []
        later: list[Program] = []
        outer, same_path = program, True
        for inner in wrapped:
            name = inner.argv[0].rpartition("/")[2]
            outer_name = outer.path.rpartition("/")[2]
            is_mapped = is_loader(outer_name)
            if not inner.same_file:
                same_path &= keeps_search_path(outer_name, outer.argv)
            also: list[Program] = []
            file = outer
            if not inner.same_file:
                file, *also = self._look_up(inner.argv[0], search)
            loads_code = self._loads_code((name, file.path.rpartition("/")[2]), inner.variables)
            outer = file._replace(
                name=name,
                argv=inner.argv,
                loads_code=loads_code,
                counts_by_name=inner.spelling,
                # Where it searches another PATH, the exec that follows tells.
                shadows=file.shadows if same_path and not inner.same_file else "",
                sha256=None if inner.spelling else file.sha256,
            )
            if later or not (inner.same_file or is_mapped):
                later.append(outer)
                continue
            here.append(outer)
            for original in also:
                here.append(original._replace(argv=inner.argv))
                own, others = self._wrapped(here[-1], search)
                here += own
                later += others
        return here, later

    def _look_up(self, command: str, search: Search) -> list[Program]:
        """Its file, and what that is as well; the words are for the caller of this to say."""
        found = search.find(os.fsencode(command))
        if found is not None:
            fd, state, called = found
            self._hold(fd, state)
            program = self._program(fd, called, [], os.fsencode(command))
            return [program, *self._originals(state, program)]
        path = command
        if not command.startswith("/"):
            path = _UNSEEN_FOLDER + command.rpartition("/")[2]
        elsewhere = not self._caller.shares_our_root
        return [Program(path, "", (), None, elsewhere, system_file=False, missing=True)]


def _word(argv: Sequence[bytes]) -> bytes:
    return argv[0] if argv else b""


def _plainly_wrapped(interpreter: Program, wrapped: Sequence[Program]) -> Program | None:
    if wrapped and wrapped[0].argv == plain_words(interpreter.argv):
        return wrapped[0]
    return None


def resolve(
    tid: int, pid: int, asked: Asked, memory: Memory, ours: Ours, *, may_wait: bool
) -> Executable:
    """Raises Unreadable where the caller can't be looked into, and MayWait."""

    def search_path() -> bytes:
        path = asked.variable(tid, b"PATH", may_wait=may_wait)
        return DEFAULT_PATH if path is None else path

    def variables_asked() -> list[bytes] | None:
        try:
            return asked.environment(tid, may_wait=may_wait)
        except MayWait:
            return None  # a rule asks for it when it is too late to look aside

    variables = Environment(variables_asked, ours.variables)
    if may_wait:
        variables.read()  # a rule asks for it in the loop, which must not wait
    return Executable(
        _caller(tid, pid, ours, may_wait=may_wait),
        asked.path,
        lambda: asked.read_argv(memory),
        folder_fd=asked.folder_fd,
        flags=asked.flags,
        search_path=search_path,
        environment=variables,
        ours=ours,
    )


def resolve_replacement(
    tid: int, pid: int, command: str, argv: list[bytes], ours: Ours, *, may_wait: bool
) -> tuple[bytes, Executable]:
    """Looked up along sigwrap's own PATH: the caller's is the caller's to choose. What is found may
    lie elsewhere, as the call would find it."""
    caller = _caller(tid, pid, ours, may_wait=may_wait)
    word = os.fsencode(command)
    folders = [b""] if b"/" in word else os.environb.get(b"PATH", DEFAULT_PATH).split(b":")
    failure: OSError | ExecRefused = ExecRefused(errno.ENOENT)
    for folder in folders:
        path = os.path.join(folder, word)
        try:
            return path, Executable(caller, path, lambda: (argv, False), ours=ours)
        except (OSError, ExecRefused) as missing:
            failure = missing
    raise failure


def _caller(tid: int, pid: int, ours: Ours, *, may_wait: bool) -> Caller:
    try:
        return Caller(tid, pid, ours.view, may_wait=may_wait)
    except OSError as refusal:
        raise Unreadable from refusal
