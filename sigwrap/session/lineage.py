from __future__ import annotations

from sigwrap.policy.request import TargetType, with_implied
from sigwrap.session.headcount import Headcount

Types = frozenset[TargetType]

_RELATIONS_KEPT = 32
_IMAGES_KEPT = 20_000


class Process:
    """A process of the tree, from when it was first seen until its end."""

    __slots__ = (
        "argv",
        "children",
        "comm",
        "comm_is_current",
        "depth",
        "has_ended",
        "image",
        "parent",
        "pid",
        "pid_namespace",
        "ppid",
        "relations",
        "start_time",
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
        self.pid_namespace = ""  # looked up with its first signal
        self.relations: dict[Process, Types] = {}  # to what it signalled lately
        self.image = b""  # as last seen: an exec changes it
        self.has_ended = False
        self.children: Headcount | None = None  # counted where they are limited at forks

    @property
    def last_name(self) -> str:
        """Of one that has ended, and can't be asked any more."""
        if self.comm_is_current or not self.argv:
            return self.comm
        return self.argv[0].rpartition("/")[2][:15]

    def ended(self) -> None:
        """A relay, where each makes one and ends, must not grow a chain of the dead."""
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
    from. Of several processes with that image the deepest is taken, and where nothing is known of
    it the deepest of all: hiding makes nobody less deep than a child made openly would be.
    """

    def __init__(self) -> None:
        self._deepest: dict[bytes, Process] = {}
        self._deepest_of_all: Process | None = None

    def note(self, process: Process, image: bytes) -> None:
        process.image = image
        if _is_deeper(process, self._deepest_of_all):
            self._deepest_of_all = process
        if not image:
            return
        if len(self._deepest) >= _IMAGES_KEPT:
            alive = {key: each for key, each in self._deepest.items() if not each.has_ended}
            self._deepest = alive if len(alive) < _IMAGES_KEPT else {}
        if _is_deeper(process, self._deepest.get(image)):
            self._deepest[image] = process

    def parent_by_image(self, image: bytes, parent: Process | None) -> Process | None:
        """`parent` is what the kernel says: None, and one whose image is another, may just have
        adopted an orphan."""
        if parent is not None and image == parent.image:
            return parent
        origin = self._deepest.get(image)
        if origin is parent is not None:
            return parent
        if origin is None:
            origin = self._deepest_of_all
        elif not origin.has_ended:
            origin = _between(origin)
        return origin if origin is not None and _is_deeper(origin, parent) else parent


def _between(origin: Process) -> Process:
    """`origin` lives, but isn't the parent any more, so somebody in between has ended unseen."""
    between = Process(pid=0, start_time=0, parent=origin, ppid=0, depth=origin.depth + 1, comm="")
    between.has_ended = True
    return between


def _is_deeper(one: Process, other: Process | None) -> bool:
    return other is None or one.depth > other.depth


def types_inside(sender: Process, target: Process, command: Process | None) -> Types:
    """All that a target inside the tree is to the sender; whose child it is never changes."""
    types = sender.relations.get(target)
    if types is None:
        if len(sender.relations) >= _RELATIONS_KEPT:
            sender.relations.clear()
        types = sender.relations[target] = _types_inside(sender, target, command)
    return types


def _types_inside(sender: Process, target: Process, command: Process | None) -> Types:
    if target is sender:
        return _SELF_AND_ROOT if target is command else _SELF
    found = [TargetType.SESSION]
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
_SELF_AND_ROOT = with_implied({TargetType.SELF, TargetType.ROOT})
_SYSTEM = with_implied({TargetType.SYSTEM})
_USER = with_implied({TargetType.USER})
_EXTERNAL = with_implied({TargetType.EXTERNAL})
SIGWRAP_ITSELF = with_implied({TargetType.PARENT})
