"""The process tree, as a fold: equal children of one parent are one node with a count.

A process is known from its first exec; an exec in place becomes a child node marked so, and one
that was refused a leaf. Who only forks, such as a subshell, has no node unless a signal killed it:
what it forked hangs where it was forked itself, as soon as the log tells where that is. Bounded:
past NODE_LIMIT different nodes, processes are only counted.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from sigwrap.tuples import NamedTuple

NODE_LIMIT = 1_000
# A bound on processes whose end was not recorded; the default pid_max is smaller.
_LIVING_LIMIT = 65_536
_FORKERS_LIMIT = 256
_GONE_LIMIT = 10_000
_REFUSED_LIMIT = 1_000
_WORDS_KEPT = 64
_SIGNALS_KEPT, _NAME_KEPT = 70, 20  # the kernel has 64
_CHARACTERS_KEPT = 400

# What a node stands for.
_RAN, _IN_PLACE, _REFUSED, _FORKED = "ran", "ran in place", "refused", "only forked"

# argv joined by NUL, which no argument can hold, and cut.
CommandLine = str


def command_line(argv: list[str]) -> CommandLine:
    words = argv if len(argv) <= _WORDS_KEPT else [*argv[:_WORDS_KEPT], "..."]
    try:
        line = "\0".join(words)
    except TypeError:  # only in a log that sigwrap didn't write
        line = "\0".join(map(str, words))
    return line if len(line) <= _CHARACTERS_KEPT else line[:_CHARACTERS_KEPT] + "..."


def words(line: CommandLine) -> list[str]:
    return line.split("\0")


class Asked(NamedTuple):
    """An exec that was asked for, and what became of it."""

    seq: int
    pid: int
    ppid: int
    below: int  # the nearest above it that has run something, where that isn't its parent
    argv: list[str]
    outcome: str
    is_selected: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLine:
    """A node in a tree that is written down top to bottom: a hostile tree may be a thousand deep,
    too deep for nested JSON and for recursion."""

    depth: int
    command: CommandLine
    in_place: bool
    refused: bool
    forked: bool  # it ran nothing itself; the command is what the kernel called it
    first_pid: int
    first_seq: int
    count: int
    processes: int  # that this line is the first one of: what runs in place is none of its own
    running: int
    failed: int
    not_started: int
    killed: tuple[tuple[str, int], ...]
    outcomes: tuple[tuple[str, int], ...]


_Key = tuple[CommandLine, str]


@dataclass(slots=True)
class _Node:
    key: _Key
    first_pid: int = 0
    first_seq: int = 0
    count: int = 0
    processes: int = 0
    running: int = 0
    failed: int = 0
    not_started: int = 0
    is_selected: bool = False
    merged_into: _Node | None = None
    killed: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    children: dict[_Key, _Node] = field(default_factory=dict)


class _Place(NamedTuple):
    ppid: int
    node: _Node
    before: _Node | None  # what it ran before its last exec


class ProcessTree:
    def __init__(self) -> None:
        self._root = _Node(("", _RAN))
        self.processes = 0  # that the nodes stand for
        self.ran = 0  # of these, those that have run something
        self.not_shown = 0
        self._nodes = 0
        self._living: dict[int, _Place] = {}
        # Who forked something, but has run nothing so far: below whom it is isn't known yet.
        self._forkers: dict[int, _Node] = {}
        # Whose child somebody was who ended before anybody below him was heard of.
        self._gone: OrderedDict[int, int] = OrderedDict()
        # Who has run nothing, but asked to.
        self._refused: dict[int, _Place] = {}

    @property
    def running(self) -> int:
        return len(self._living)

    def runs(self, pid: int, ppid: int, below: int) -> tuple[int, CommandLine] | None:
        """The process, or the nearest above it that runs something, and what it runs."""
        for each in (pid, ppid, below):
            if each in self._living:
                return each, _of(self._living[each].node).key[0]
        return None

    def executed(self, asked: Asked) -> None:
        pid, ppid = asked.pid, asked.ppid
        known = self._living.get(pid)
        before: _Node | None = None
        if known is not None:
            node = _of(known.node)
            node.running -= 1
            # Another parent means another process, whose predecessor's end was not seen.
            if known.ppid == ppid:
                before = node
        if before is None:
            if pid in self._forkers:
                self._settle(pid, ppid)
            kind, parent = _RAN, self._above(asked)
        else:
            kind, parent = _IN_PLACE, before
        node = self._child(parent, (command_line(asked.argv), kind), asked)
        if before is None:
            self.ran += 1
            if not self._refused or not self._was_refused(pid, ppid):
                node.processes += 1
                self.processes += 1
        node.running += 1
        self._living[pid] = _Place(ppid, node, before)
        if len(self._living) > _LIVING_LIMIT:
            self._forget(next(iter(self._living)))

    def refused(self, asked: Asked) -> None:
        known = self._living.get(asked.pid)
        parent = self._above(asked) if known is None else _of(known.node)
        node = self._child(parent, (command_line(asked.argv), _REFUSED), asked)
        if known is not None:
            return
        pid, ppid = asked.pid, asked.ppid
        if not self._was_refused(pid, ppid):
            node.processes += 1
            self.processes += 1
        self._refused[pid] = _Place(ppid, node, None)
        if len(self._refused) > _REFUSED_LIMIT:
            del self._refused[next(iter(self._refused))]

    def not_started(self, pid: int) -> None:
        """The kernel refused its last exec."""
        known = self._living.get(pid)
        if known is None:
            return
        node = _of(known.node)
        node.not_started += 1
        if known.before is not None:
            before = _of(known.before)
            node.running -= 1
            before.running += 1
            self._living[pid] = _Place(known.ppid, before, None)

    def exited(
        self,
        pid: int,
        ppid: int,
        exit_code: int | None,
        signal_name: str,
        comm: str = "",
        seq: int = 0,
        is_selected: bool = True,
    ) -> None:
        unrun: _Node | None = None
        if pid not in self._living:
            refused = self._refused.pop(pid, None)
            if signal_name:
                unrun = refused.node if refused else self._fork(pid, comm, seq, is_selected)
        if pid in self._forkers:
            self._settle(pid, ppid)
        node = self._forget(pid)
        if node is None:
            self._gone.pop(pid, None)
            self._gone[pid] = ppid
            if len(self._gone) > _GONE_LIMIT:
                self._gone.popitem(last=False)
            if unrun is None:
                return
            node = _of(unrun)
        if signal_name:
            name = signal_name[:_NAME_KEPT]
            if name in node.killed or len(node.killed) < _SIGNALS_KEPT:
                node.killed[name] = node.killed.get(name, 0) + 1
        elif exit_code:
            node.failed += 1

    def lines(self) -> tuple[TreeLine, ...]:
        """Of what was selected, and what it is below."""
        for forker in tuple(self._forkers):
            self._merge(self._forkers.pop(forker), self._root)
        shown = self._shown()
        found: list[TreeLine] = []
        waiting = [(0, node) for node in _latest_first(self._root)]
        while waiting:
            depth, node = waiting.pop()
            if id(node) not in shown:
                continue
            command, kind = node.key
            found.append(
                TreeLine(
                    depth=depth,
                    command=command,
                    in_place=kind == _IN_PLACE,
                    refused=kind == _REFUSED,
                    forked=kind == _FORKED,
                    first_pid=node.first_pid,
                    first_seq=node.first_seq,
                    count=node.count,
                    processes=node.processes,
                    running=node.running,
                    failed=node.failed,
                    not_started=node.not_started,
                    killed=tuple(node.killed.items()),
                    outcomes=tuple(node.outcomes.items()),
                )
            )
            waiting += [(depth + 1, child) for child in _latest_first(node)]
        return tuple(found)

    def _shown(self) -> set[int]:
        order = [self._root]
        above: dict[int, _Node] = {}
        for node in order:  # grows while it is gone through
            for child in node.children.values():
                above[id(child)] = node
                order.append(child)
        shown: set[int] = set()
        for node in reversed(order):
            if node.is_selected or id(node) in shown:
                shown.add(id(node))
                if id(node) in above:
                    shown.add(id(above[id(node)]))
        return shown

    def _above(self, asked: Asked) -> _Node:
        for pid in (asked.ppid, asked.below):
            if pid in self._living:
                return _of(self._living[pid].node)
        forker = self._forkers.get(asked.ppid)
        if forker is None:
            forker = self._forkers[asked.ppid] = _Node(("", _RAN))
            self._bound_forkers()
        return forker

    def _bound_forkers(self) -> None:
        if len(self._forkers) > _FORKERS_LIMIT:
            oldest = next(iter(self._forkers))
            self._merge(self._forkers.pop(oldest), self._root)

    def _was_refused(self, pid: int, ppid: int) -> bool:
        """And so has been counted."""
        known = self._refused.pop(pid, None)
        return known is not None and known.ppid == ppid

    def _fork(self, pid: int, comm: str, seq: int, is_selected: bool) -> _Node | None:
        """One that was killed and has run nothing, above what it forked, until that settles."""
        self.processes += 1
        if self._nodes >= NODE_LIMIT:
            self.not_shown += 1
            return None
        self._nodes += 1
        node = _Node(
            (command_line([comm or "?"]), _FORKED), pid, seq, 1, 1, is_selected=is_selected
        )
        forker = self._forkers.get(pid)
        if forker is not None:
            node.children = forker.children
        self._forkers[pid] = _Node(("", _RAN), children={node.key: node})
        return node

    def _settle(self, pid: int, ppid: int) -> None:
        """Whose child the forker is is known."""
        forker = self._forkers.pop(pid)
        while ppid not in self._living and ppid in self._gone:
            ppid = self._gone.pop(ppid)
        above = self._living.get(ppid)
        if above is not None:
            node = _of(above.node)
            # In a log that sigwrap didn't write, somebody may be below himself.
            self._merge(forker, self._root if _is_below(forker, node) else node)
        elif ppid in self._forkers:
            self._merge(forker, self._forkers[ppid])
        else:
            self._forkers[ppid] = forker
            self._bound_forkers()

    def _merge(self, source: _Node, target: _Node) -> None:
        waiting = [(source, target)]
        while waiting:
            source, target = waiting.pop()
            for key, child in source.children.items():
                same = target.children.get(key)
                if same is None:
                    target.children[key] = child
                    continue
                _add(child, same)
                self._nodes -= 1
                waiting.append((child, same))

    def _forget(self, pid: int) -> _Node | None:
        known = self._living.pop(pid, None)
        if known is None:
            return None
        node = _of(known.node)
        node.running -= 1
        return node

    def _child(self, parent: _Node, key: _Key, asked: Asked) -> _Node:
        node = parent.children.get(key)
        if node is None:
            node = _Node(key, first_pid=asked.pid, first_seq=asked.seq)
            if self._nodes >= NODE_LIMIT:
                self.not_shown += 1
            else:
                self._nodes += 1
                parent.children[key] = node
        node.count += 1
        node.is_selected |= asked.is_selected
        node.outcomes[asked.outcome] = node.outcomes.get(asked.outcome, 0) + 1
        return node


def _of(node: _Node) -> _Node:
    while node.merged_into is not None:
        node = node.merged_into
    return node


def _is_below(top: _Node, node: _Node) -> bool:
    waiting = [top]
    while waiting:
        children = waiting.pop().children.values()
        if any(child is node for child in children):
            return True
        waiting += children
    return False


def _add(node: _Node, same: _Node) -> None:
    node.merged_into = same
    if node.first_seq < same.first_seq:
        same.first_seq, same.first_pid = node.first_seq, node.first_pid
    same.count += node.count
    same.processes += node.processes
    same.running += node.running
    same.failed += node.failed
    same.not_started += node.not_started
    same.is_selected |= node.is_selected
    for mine, its in ((same.killed, node.killed), (same.outcomes, node.outcomes)):
        for name, count in its.items():
            mine[name] = mine.get(name, 0) + count


def _latest_first(node: _Node) -> list[_Node]:
    return sorted(node.children.values(), key=lambda child: -child.first_seq)
