from __future__ import annotations

from sigwrap.mediate.headcount import Headcount
from sigwrap.policy.judge.request import TargetType, with_implied

Types = frozenset[TargetType]
Image = tuple[int, ...]  # addresses of code, stack and heap; empty where it can't be read
File = tuple[int, ...]  # its inode, device and mount

_RELATIONS_KEPT = 32
_IMAGES_KEPT = 10_000  # in about 6 MB
_HAS_RUN = ("",)


class Family:
    """Processes that run one program, with nothing else between them: a server and its workers. A
    fork stays in its parent's, and so does an exec of the very same file. Who once ran something
    else is out of it for good, also where it runs that file again."""

    __slots__ = ("program",)

    def __init__(self, program: File | None = None) -> None:
        self.program = program  # None where nobody knows


class Process:
    """A process of the tree, from when it was first seen until its end."""

    __slots__ = (
        "argv",
        "children",
        "comm",
        "comm_is_current",
        "depth",
        "execs",
        "family",
        "has_ended",
        "image",
        "known_children",
        "parent",
        "pid",
        "pid_namespace",
        "ppid",
        "relations",
        "start_time",
        "stub_attempts",
        "stub_of",
    )

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
        self.start_time = start_time
        self.parent = parent  # None for COMMAND, and for an orphan whose parent was never seen
        self.ppid = ppid
        self.depth = depth
        self.comm = comm
        self.comm_is_current = True  # an exec that was let through changes it
        self.argv: tuple[str, ...] = ()
        self.stub_of = ""  # the program that asked, while the stub waits for its approval
        self.stub_attempts = 0  # since its last exec
        self.execs = 0
        self.pid_namespace = ""  # looked up with its first signal
        self.family = Family()
        # To what it signalled lately, and whose families it was true of.
        self.relations: dict[Process, tuple[tuple[Family | None, ...], Types]] = {}
        self.image: Image = ()  # as last seen: an exec changes it
        self.has_ended = False
        self.known_children = 0  # that are alive and have made themselves known
        self.children: Headcount | None = None  # counted where they are limited at forks

    @property
    def last_name(self) -> str:
        """Of one that can't be asked any more."""
        if self.comm_is_current or not self.argv:
            return self.comm
        return self.argv[0].rpartition("/")[2][:15]

    def becomes_another(self, argv: tuple[str, ...]) -> None:
        """By an exec that goes on."""
        self.comm_is_current = False
        self.argv = argv
        self.stub_of, self.stub_attempts = "", 0
        self.execs += 1

    def runs(self, program: File | None) -> None:
        """Since its last exec; None where nobody knows."""
        if program is None or program != self.family.program:
            self.family = Family(program)

    def ended(self) -> None:
        """A relay, where each makes one and ends, must not grow a chain of the dead. And of each
        no more is kept than its children and orphans are known by: thousands are."""
        self.comm, self.comm_is_current = self.last_name, True
        if self.argv:
            self.argv = _HAS_RUN
        self.relations.clear()
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


class Images:
    """Whose image a process has.

    An exec puts code, stack and heap where chance will have it, and a fork copies all that. So a
    process that nobody has seen yet, and whose parent has ended, still shows which exec it comes
    from. It is placed below the process of that exec, or where nothing is known of it below the
    deepest of all: hiding makes nobody less deep than a child made openly would be.

    Who switches randomization off can have the image of another. Then the deepest with that image
    is taken, and not even the parent that the kernel names is believed: it may be a subreaper that
    made itself look like its orphans.
    """

    def __init__(self) -> None:
        self._loaded: dict[Image, Process] = {}  # the deepest that got it by an exec
        self._deepest: Process | None = None
        self._deepest_unknown: Process | None = None  # of those whose image nobody knows

    def note(self, process: Process, image: Image) -> None:
        """As a fork left it."""
        process.image = image
        self._deepest = _deeper(process, self._deepest)

    def loaded(self, process: Process, image: Image) -> None:
        """By an exec."""
        process.image = image
        if not image:
            self.loads_unseen(process)
            return
        if len(self._loaded) >= _IMAGES_KEPT:
            self._forget_the_dead()
        self._loaded[image] = _deeper(process, self._loaded.get(image))

    def loads_unseen(self, process: Process) -> None:
        """By an exec that nobody will look at."""
        process.image = ()
        self._deepest_unknown = _deeper(process, self._deepest_unknown)

    def knows(self, image: Image) -> bool:
        return image in self._loaded

    def parent_by_image(self, image: Image, parent: Process | None) -> Process | None:
        """`parent` is what the kernel says: None, and one whose image is another, may just have
        adopted an orphan. So may one that hides its image, from one that hides it too."""
        looks_alike = parent is not None and image != () and image == parent.image
        can_be_anothers = is_repeatable(image)
        origin = self._loaded.get(image) if can_be_anothers or not looks_alike else None
        if can_be_anothers and self._deepest_unknown is not None:
            origin = _deeper(self._deepest_unknown, origin)
        if origin is None and not looks_alike:
            origin = self._deepest
        if origin is None or origin is parent:
            return parent
        return _deeper(_between(origin), parent) if _is_deeper(origin, parent) else parent

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
    """Whether the stack is where it is without randomization, below arguments of any length. Of
    32-bit programs every one counts: theirs is moved by less than that."""
    if not image:
        return False
    _code, stack, _heap = image
    return stack > _STACKS_END - _ARGUMENTS_MAX or stack < _STACKS_END_32


def _between(origin: Process) -> Process:
    """Somebody who has ended unseen: it is how a process gets away from an `origin` that lives, and
    from one that has ended it may have been the same."""
    between = Process(pid=0, start_time=0, parent=origin, ppid=0, depth=origin.depth + 1, comm="")
    between.has_ended = True
    return between


def _is_deeper(one: Process, other: Process | None) -> bool:
    return other is None or one.depth > other.depth


def _deeper(one: Process, other: Process | None) -> Process:
    return one if other is None or one.depth > other.depth else other


def types_inside(sender: Process, target: Process, command: Process | None) -> Types:
    """All that a target inside the tree is to the sender. Whose child it is never changes; whose
    family it is of, an exec can change."""
    families = (sender.family, target.family, None if command is None else command.family)
    known = sender.relations.get(target)
    if known is None or known[0] != families:
        if len(sender.relations) >= _RELATIONS_KEPT:
            sender.relations.clear()
        known = sender.relations[target] = families, _types_inside(sender, target, command)
    return known[1]


def _types_inside(sender: Process, target: Process, command: Process | None) -> Types:
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
    return _with_implied(tuple(found))


def types_outside(*, is_system: bool, same_user: bool) -> Types:
    if is_system:
        return _SYSTEM
    return _USER if same_user else _EXTERNAL


_known: dict[tuple[TargetType, ...], Types] = {}


def _with_implied(types: tuple[TargetType, ...]) -> Types:
    if types not in _known:
        _known[types] = with_implied(types)
    return _known[types]


_SELF = with_implied({TargetType.SELF})
_SYSTEM = with_implied({TargetType.SYSTEM})
_USER = with_implied({TargetType.USER})
_EXTERNAL = with_implied({TargetType.EXTERNAL})
SIGWRAP_ITSELF = with_implied({TargetType.PARENT})
