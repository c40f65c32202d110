"""The processes of a session: parents, depths, and the relation of a target to its sender."""

from __future__ import annotations

from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.policy.judge.request import TargetType, with_implied
from sigwrap.text import masked_text

if TYPE_CHECKING:
    from sigwrap.control.forks import Headcount

Types = frozenset[TargetType]
Image = tuple[int, ...]  # addresses of code, stack and heap; empty if it cannot be read
File = tuple[int, ...]  # its inode, device and mount

_IMAGES_KEPT = 10_000  # about 6 MB
_HAS_RUN = ("",)
_WORDS_KEPT, _WORD_CHARACTERS = 16, 200


class WouldFail(NamedTuple):
    """An errno with which the kernel would refuse the call. Sigwrap returns it itself, because the
    kernel would read the caller's memory again, which may have changed."""

    errno: int


class ProgramFamily:
    """Processes that run one program, such as a server and its workers.

    A fork stays in its parent's family, and so does an exec of the very same file. A process that
    ran another file has left the family for good, even if it runs the first file again.
    """

    def __init__(self, program: File | None = None) -> None:
        self.program = program  # None if it is unknown


class Process:
    """A process of the tree, from when it was first seen until its end."""

    def __init__(
        self,
        *,
        pid: int,
        start_time: int,
        parent: Process | None,
        ppid: int,
        depth: int,
        comm: str,
    ) -> None:
        self.pid = pid
        self.pidfd = -1  # while sigwrap would see its end
        self.start_time = start_time
        self.parent = parent  # None for the command, and for an orphan whose parent was never seen
        self.ppid = ppid
        self.depth = depth
        self.comm = comm
        self.comm_is_current = True  # until an exec goes on
        self.argv: tuple[str, ...] = ()
        self.stub_of = ""  # the program that asked, while the stub waits for its approval
        self.stub_attempts = 0  # since its last exec
        self.execs = 0
        self.pid_namespace = ""  # looked up with its first signal
        self.family = ProgramFamily()
        self.image: Image = ()  # as last seen; an exec changes it
        self.has_ended = False
        self.known_children = 0  # living children that sigwrap has seen
        self.children: Headcount | None = None  # set if forks are limited

    @property
    def last_name(self) -> str:
        """Return the name of a process that may have ended."""
        if self.comm_is_current or not self.argv:
            return self.comm
        return self.argv[0].rpartition("/")[2][:15]

    def becomes_another(self, argv: tuple[str, ...]) -> None:
        """Note an exec that goes on."""
        self.comm_is_current = False
        self.argv = argv
        self.stub_of, self.stub_attempts = "", 0
        self.execs += 1

    def runs(self, program: File | None) -> None:
        """Note the file that it runs since its last exec, None if that is unknown."""
        if program is None or program != self.family.program:
            self.family = ProgramFamily(program)

    def ended(self) -> None:
        """Note its end, and keep only what its children and orphans need.

        A relay, where each process makes the next one and ends, must not grow a chain.
        """
        self.comm, self.comm_is_current = self.last_name, True
        if self.argv:
            self.argv = _HAS_RUN
        self.has_ended = True
        while self.parent is not None and self.parent.has_ended and self.parent.parent is not None:
            self.parent = self.parent.parent

    def has_ancestor(self, other: Process) -> bool:
        above = self.parent
        while above is not None:
            if above is other:
                return True
            above = above.parent
        return False


def cut_words(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is kept of a process's arguments while it lives.

    A secret in a long word is masked before the cut, because half of it would not be found.
    """
    return tuple(
        word if len(word) <= _WORD_CHARACTERS else f"{masked_text(word)[:_WORD_CHARACTERS]}…"
        for word in argv[:_WORDS_KEPT]
    )


class Images:
    """The images of processes, which place unseen orphans in the tree.

    An exec loads code, stack and heap at random addresses, and a fork copies them. So the image of
    a process that was never seen, and whose parent has ended, shows the exec it comes from. The
    process is placed below that exec's process, or below the deepest process if the image is
    unknown. So hiding never makes a process less deep than an open fork would.

    Without address randomization, images are equal. Then the process is placed below the deepest
    one with that image, and the parent that the kernel reports does not count: it may be a
    subreaper that made its image look like that of its orphans.
    """

    def __init__(self) -> None:
        self._loaded: dict[Image, Process] = {}  # the deepest process that loaded it by an exec
        self._deepest: Process | None = None
        self._deepest_unknown: Process | None = None  # the deepest with an unknown image

    def note(self, process: Process, image: Image) -> None:
        """Note the image that a fork copied."""
        process.image = image
        self._deepest = _deeper(process, self._deepest)

    def loaded(self, process: Process, image: Image) -> None:
        """Note the image that an exec loaded."""
        process.image = image
        if not image:
            self.loads_unseen(process)
            return
        if len(self._loaded) >= _IMAGES_KEPT:
            self._forget_the_dead()
        self._loaded[image] = _deeper(process, self._loaded.get(image))

    def loads_unseen(self, process: Process) -> None:
        """Note an exec whose image is not read."""
        process.image = ()
        self._deepest_unknown = _deeper(process, self._deepest_unknown)

    def knows(self, image: Image) -> bool:
        return image in self._loaded

    def parent_by_image(self, image: Image, parent: Process | None) -> Process | None:
        """Return the parent of an unseen process. `parent` is the one that the kernel reports.

        A parent with another image, or with a hidden one, may just have adopted an orphan.
        """
        looks_alike = parent is not None and image != () and image == parent.image
        can_be_anothers = is_repeatable(image)
        origin = self._loaded.get(image) if can_be_anothers or not looks_alike else None
        if can_be_anothers and self._deepest_unknown is not None:
            origin = _deeper(self._deepest_unknown, origin)
        if origin is None and not looks_alike:
            origin = self._deepest
        if origin is None or origin is parent:
            return parent
        if parent is not None and origin.depth <= parent.depth:
            return parent
        return _deeper(_between(origin), parent)

    def _forget_the_dead(self) -> None:
        alive: dict[Image, Process] = {}
        for image, process in self._loaded.items():
            if not process.has_ended and len(alive) < _IMAGES_KEPT // 2:
                alive[image] = process
            elif is_repeatable(image):
                self._deepest_unknown = _deeper(process, self._deepest_unknown)
        self._loaded = alive


_STACKS_END = 0x7FFFFFFFF000
_STACKS_END_32 = 0x100000000
_ARGUMENTS_MAX = 8 << 20


def is_repeatable(image: Image) -> bool:
    """Return whether another exec could have loaded the same image.

    The stack is then at its place without randomization, below arguments of any length. Every
    32-bit program counts: its stack moves by less than that.
    """
    if not image:
        return False
    _code, stack, _heap = image
    return stack > _STACKS_END - _ARGUMENTS_MAX or stack < _STACKS_END_32


def _between(origin: Process) -> Process:
    """Return a process that has ended unseen, between `origin` and its orphan."""
    between = Process(pid=0, start_time=0, parent=origin, ppid=0, depth=origin.depth + 1, comm="")
    between.has_ended = True
    return between


def _deeper(one: Process, other: Process | None) -> Process:
    return one if other is None or one.depth > other.depth else other


def types_inside(sender: Process, target: Process, command: Process | None) -> Types:
    """Return the types of a target in the tree. Parents never change, families do at an exec."""
    if target is sender:
        return _SELF
    found = [TargetType.SESSION]
    if target.family is sender.family:
        found.append(TargetType.PEERS)
    elif command is not None and target.family is command.family:
        found.append(TargetType.AGENT)
    if target is command:
        found.append(TargetType.ROOT)
    if target.parent is sender:
        found.append(TargetType.CHILDREN)
    elif sender is command or target.has_ancestor(sender):
        found.append(TargetType.DESCENDANTS)
    elif target is command or sender.has_ancestor(target):
        found.append(TargetType.ANCESTORS)
    elif target.parent is not None and target.parent is sender.parent:
        found.append(TargetType.SIBLINGS)
    return with_implied(found)


def types_outside(*, is_system: bool, same_user: bool) -> Types:
    if is_system:
        return _SYSTEM
    return _USER if same_user else _EXTERNAL


_SELF = with_implied({TargetType.SELF})
_SYSTEM = with_implied({TargetType.SYSTEM})
_USER = with_implied({TargetType.USER})
_EXTERNAL = with_implied({TargetType.EXTERNAL})
SIGWRAP_ITSELF = with_implied({TargetType.SIGWRAP})
