from __future__ import annotations

from sigwrap.policy.request import TargetType, with_implied
from sigwrap.policy.rules import Policy
from sigwrap.session.headcount import Headcount

Types = frozenset[TargetType]

_RELATIONS_KEPT = 32


class Process:
    """A process of the tree, from when it was first seen until its end."""

    __slots__ = (
        "adopts_orphans",
        "argv",
        "children",
        "comm",
        "comm_is_current",
        "depth",
        "has_ended",
        "parent",
        "pid",
        "pid_namespace",
        "ppid",
        "relations",
        "start_time",
        "unseen_births",
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
        self.has_ended = False
        self.unseen_births = 0  # children it may have that haven't been met yet
        self.children: Headcount | None = None  # counted where the policy limits them
        self.adopts_orphans = False  # so who has it for a parent may be another's child

    @property
    def last_name(self) -> str:
        """Of one that has ended, and can't be asked any more."""
        if self.comm_is_current or not self.argv:
            return self.comm
        return self.argv[0].rpartition("/")[2][:15]

    def forget_dead_ancestors(self) -> None:
        """Of one that has ended itself: a relay, where each process makes one and ends, must not
        grow a chain."""
        while self.parent is not None and self.parent.has_ended and self.parent.parent is not None:
            self.parent = self.parent.parent

    def has_ancestor(self, other: Process) -> bool:
        above = self.parent
        while above is not None:
            if above is other:
                return True
            above = above.parent
        return False


def shapes_the_tree(policy: Policy) -> bool:
    """Whether each birth matters: a policy that says nothing about how deep or how many spares its
    programs the telling."""
    limits = policy.limits
    return bool(limits.max_depth or limits.max_children or limits.max_processes) or any(
        rule.min_depth is not None or rule.max_depth is not None for rule in policy.command_rules
    )


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
