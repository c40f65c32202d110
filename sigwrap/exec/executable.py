"""What an exec would run: the file, its interpreters, and what a wrapper wraps.

sigwrap finds it while the caller waits, and holds the files by descriptors until the exec is over.
The caller can still change its memory and the files' names, so the exec stop compares this with
what the kernel loaded.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence

from sigwrap.exec import content
from sigwrap.exec.asked import Asked, Environment, Given, Search
from sigwrap.exec.content import (
    HASHED_AT_ONCE_BYTES,
    MAX_INTERPRETERS,
    READ_TO_COMPARE_BYTES,
    ExecRefused,
    command_line,
    interpreter_argv,
    shebang,
)
from sigwrap.exec.host import HostView, Where, is_the_systems
from sigwrap.kernel.file_state import Inode, Place, State
from sigwrap.kernel.paths import (
    AT_FDCWD,
    SERVED,
    Caller,
    WouldBlock,
    is_found_at,
    our_view,
    path_of,
)
from sigwrap.policy.judge.request import AskedFact, Fact, Program
from sigwrap.policy.judge.wrappers import is_loader, keeps_search_path, plain_words, unwrap

_UNSEEN_FOLDER = "/usr/bin/"  # for a wrapped program that is not found
_AT_EMPTY_PATH = 0x1000


class Executable:
    """What an exec would run.

    The policy judges `programs`; this exec itself would run those in `here`. `image` is the file
    whose code would run, and `command_line` its arguments, or their start if they were cut.
    """

    __slots__ = (
        "_besides",
        "_caller",
        "_content",
        "_digests",
        "_files",
        "_loader_fd",
        "_named_loader",
        "_ours",
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
        asked: Asked | Given,
        ours: HostView,
        environment: Environment | None = None,
    ) -> None:
        """Find it. Raises WouldBlock, and OSError or ExecRefused with the errno of the kernel.

        The arguments are read once the file is found, as in the kernel: a search along PATH fails
        before.
        """
        self._begin(caller, environment, ours)
        try:
            self._resolve(asked)
        except BaseException:
            self.close()
            raise

    def _begin(self, caller: Caller, environment: Environment | None, ours: HostView) -> None:
        self._caller = caller
        self.environment = environment
        self._ours = ours
        self.root = caller.root
        self.where = Where(caller)
        self._files: dict[int, State] = {}  # by the descriptor that holds it
        self._digests: dict[int, str] = {}  # those that a rule has asked for
        self._shown_differently: set[int] = set()  # these may show each reader another content
        self._content: tuple[str, ...] = ()
        self._besides: dict[int, State] = {}
        self.scripts: tuple[str, ...] = ()  # the file and interpreters that are scripts, as called
        # The command that their interpreter executes, if its arguments are nothing else.
        self.script_wraps: Program | None = None
        self.readable = True
        self._named_loader: tuple[int, content.Loader] | None = None
        self._loader_fd = -1  # -1 for a usual one

    def close(self) -> None:
        self._close(self._files)
        self._close(self._besides)
        # The programs' facts refer to this object: it would wait for the garbage collector.
        self.programs: tuple[Program, ...] = ()
        self.here: tuple[Program, ...] = ()
        self.environment = None

    def _close(self, files: dict[int, State]) -> None:
        for fd in files:
            os.close(fd)
        files.clear()

    @classmethod
    def again(
        cls, tid: int, pid: int, fd: int, programs: tuple[Program, ...], line: bytes, ours: HostView
    ) -> Executable:
        """Return the file of `fd`, which was judged before by the same facts (repeated execs).

        The caller's root was sigwrap's then, and may have changed since. Raises OSError.
        """
        self = cls.__new__(cls)
        self._begin(Caller(tid, pid), None, ours)
        self.root = our_view().root
        self._hold(fd, self._caller.state_of(fd))
        self.image = self._files[fd].place
        self.programs = self.here = programs
        self.command_line, self.cut = line, False
        return self

    def stays(self) -> State | None:
        """Return the file's state if all that was found depends only on that and the path."""
        state, *others = self._files.values()
        is_plain = not (others or self._shown_differently or self.scripts or self.cut)
        if not (is_plain and self.readable and self._caller.shares_our_root):
            return None
        if self._digests or self._content or self._loader_fd >= 0:
            return None
        if self._named_loader is None or self._named_loader[1] != content.USUAL_OF_ROOT:
            return None
        if not (self._caller.is_local(state) and content.has_settled(state)):
            return None
        path = self.programs[0].path
        if not self._ours.named_files.is_original(state, path):
            return None
        return state

    @property
    def verified_image(self) -> Place | None:
        """Return the image, once it was compared; None if sigwrap may not read it."""
        return self.image if self.readable else None

    @property
    def is_elf(self) -> bool:
        """Return whether it is an ELF file, or a script whose interpreter is one.

        If it is neither, its exec fails, and a shell interprets it.
        """
        return self._named_loader is not None

    def place_of_image(self, pid: int) -> Place:
        return self._caller.place_of(b"/proc/%d/exe" % pid)

    def inodes(self) -> list[Inode]:
        """Return those of the file and its interpreters."""
        return [state.inode for state in self._files.values()]

    # Digests

    def take_large_digests(self) -> None:
        for fd, state in self._files.items():
            if state.size > HASHED_AT_ONCE_BYTES and fd not in self._shown_differently:
                self._digests[fd] = content.digest(fd)

    def is_read_slowly(self) -> bool:
        """Return whether the exec stop has to read large files, or from a slow file system."""
        return any(not self._caller.is_local(state) for state in self._files.values()) or any(
            self._files[fd].size > HASHED_AT_ONCE_BYTES for fd in self._digests
        )

    def digests_hold(self) -> bool:
        """Check at the exec stop, when no process can write to the files any more."""
        return all(content.digest(fd) == digest for fd, digest in self._digests.items())

    def _digester(self, fd: int) -> Callable[[], str]:
        """Return a fact that raises WouldBlock for a large file before take_large_digests."""

        def known_digest() -> str:
            if fd in self._shown_differently:
                return ""
            known = self._digests.get(fd)
            if known is None:
                if self._files[fd].size > HASHED_AT_ONCE_BYTES:
                    raise WouldBlock
                known = self._digests[fd] = content.digest(fd)
            return known

        return AskedFact(known_digest)

    # What would run

    def read_content(self, besides: Sequence[str] = ()) -> tuple[str, ...]:
        """Return fingerprints of its files and of those in `besides`, which the exec stop compares.

        Return () if one of `besides` can't be opened without waiting.
        """
        self._close(self._besides)
        try:
            for path in besides:
                self._hold_besides(self._caller.open(os.fsencode(path)))
        except (OSError, WouldBlock):
            return ()
        self._content = self._content_now()
        return self._content

    def _hold_besides(self, fd: int) -> None:
        self._besides[fd] = state = self._caller.state_of(fd)
        if not self._caller.is_plain(fd, state):
            raise WouldBlock(SERVED)

    def content_holds(self) -> bool:
        return not self._content or self._content == self._content_now()

    def _content_now(self) -> tuple[str, ...]:
        """Return the fingerprints now. Beyond a number of bytes, only the state counts: reading
        large files would stall the loop."""
        found, left = list[str](), READ_TO_COMPARE_BYTES
        for fd in (*self._files, *self._besides):
            state = self._caller.known_state(fd)
            by_state_alone = fd in self._shown_differently or state.size > left
            left -= 0 if by_state_alone else state.size
            found.append(content.fingerprint(fd, state, by_state_alone=by_state_alone))
        return tuple(found)

    def _resolve(self, asked: Asked | Given) -> None:
        called = path = asked.path
        folder_fd = asked.folder_fd
        if not path and asked.flags & _AT_EMPTY_PATH and folder_fd != AT_FDCWD:
            fd = self._caller.open_descriptor(folder_fd)
            called = b"/dev/fd/%d" % folder_fd
        else:
            fd = self._caller.open(path, folder_fd)
            if folder_fd != AT_FDCWD and not path.startswith(b"/"):
                called = b"/dev/fd/%d/%b" % (folder_fd, path)
        state = self._pin(fd)
        argv, self.cut = asked.read_argv()
        # A search along PATH passes no descriptor of the folder.
        searched = called if called is not path else b"".join(argv[:1])
        programs = [self._program(fd, path, argv, searched)]
        also = self._originals(state, programs[0])
        start = self._beginning(fd, state)
        for depth in range(MAX_INTERPRETERS + 1):
            script = None if start is None else shebang(start.header)
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
            start = self._beginning(fd, state)
        self.readable = start is not None
        self.image: Place = state.place
        whole = command_line(argv)
        self.command_line = whole[:-1] if self.cut else whole
        here, later = [*programs, *also], list[Program]()
        if isinstance(asked, Asked):
            search = Search(self._caller, asked)
            for program in (*programs, *also):
                own, others = self._wrapped(program, search)
                here += own
                later += others
                if self.scripts and program is programs[-1]:
                    self.script_wraps = _plainly_wrapped(program, others)
        if start is not None and start.loader is not None:
            self._named_loader = fd, start.loader
            here += self._loader(start.loader.path, argv)
        self.here = tuple(here)
        self.programs = (*here, *later)

    def _originals(self, state: State, program: Program) -> list[Program]:
        return self._ours.named_files.originals(state, program)

    def _loader(self, path: bytes, argv: list[bytes]) -> list[Program]:
        """Return the loader that an ELF file names, if it is not the C library's: that one runs."""
        if not path:
            return []
        self._loader_fd = self._caller.open(path)
        loader_state = self._pin(self._loader_fd)
        program = self._program(self._loader_fd, path, argv, path)._replace(counts_by_name=True)
        return [program, *self._originals(loader_state, program)]

    def loader_holds(self, pid: int) -> bool:
        """Check at the exec stop, when no process can write to the files any more."""
        if self._named_loader is not None:
            fd, loader = self._named_loader
            if loader.may_change and content.beginning_now(fd).loader != loader:
                return False
        return self._loader_fd < 0 or content.is_mapped(pid, self._loader_fd)

    def _pin(self, fd: int) -> State:
        try:
            state = self._caller.state_of(fd)
        except BaseException:
            os.close(fd)
            raise
        self._hold(fd, state)
        if not self._caller.may_wait and not self._caller.is_local(state):
            raise WouldBlock(SERVED)
        if not stat.S_ISREG(state.mode) or not state.mode & 0o111:
            raise ExecRefused(errno.EACCES)
        return state

    def _hold(self, fd: int, state: State) -> None:
        self._files[fd] = state
        if not self._caller.is_plain(fd, state):
            self._shown_differently.add(fd)

    def _program(self, fd: int, called: bytes, argv: list[bytes], searched: bytes) -> Program:
        """Describe a file. `searched`: the word that may have led to it along PATH."""
        path = path_of(fd)
        name = os.fsdecode(called.rpartition(b"/")[2]) or path.rpartition("/")[2]
        path = path or f".../{name}"
        elsewhere = self._is_elsewhere(fd)
        shadows = ""
        if b"/" not in searched:
            shadows = self._ours.commands.shadowed(
                self._caller, fd, self._files[fd], called, elsewhere=elsewhere
            )
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

    def _system_file(self, fd: int, called: bytes, path: str, *, elsewhere: bool) -> Fact:
        if elsewhere or fd in self._shown_differently:
            return False
        return AskedFact(lambda: is_the_systems(fd, os.fsdecode(called), path))

    def _loads_code(self, names: tuple[str, str], added: tuple[str, ...] = ()) -> Fact:
        environment = self.environment
        if environment is None:
            return False
        # What is unreadable can't be compared with the new image's either.
        return AskedFact(lambda: not self.readable or environment.loads_code(names, added))

    def _is_elsewhere(self, fd: int) -> bool:
        """Return whether sigwrap finds another file at the path of the one just opened."""
        caller = self._caller
        if not caller.shares_our_root:
            return True
        if caller.found_below_our_root:
            return False
        return not is_found_at(path_of(fd), fd, may_wait=caller.may_wait)

    def _beginning(self, fd: int, state: State) -> content.Beginning | None:
        return content.beginning(fd, state, may_wait=self._caller.may_wait)

    def _wrapped(self, program: Program, search: Search) -> tuple[list[Program], list[Program]]:
        """Return what runs within this exec (an applet, what ld.so maps), and what execs later."""
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
                # With another PATH, the exec that follows shows it.
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
        """Return a command's file, and what else it counts as, without arguments."""
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


def _plainly_wrapped(interpreter: Program, wrapped: Sequence[Program]) -> Program | None:
    if wrapped and wrapped[0].argv == plain_words(interpreter.argv):
        return wrapped[0]
    return None
