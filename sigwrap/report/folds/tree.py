"""The process tree, as a fold: equal children of one parent are one node with a count.

A process is known from its first exec. An exec in place becomes a child node marked so, and a
denied exec a leaf. A process that only forks, such as a subshell, has no node unless a signal
killed it. Past NODE_LIMIT nodes, processes are only counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sigwrap.events import Event, number, text
from sigwrap.report.folds.bounded import Latest
from sigwrap.tuples import NamedTuple

NODE_LIMIT = 1_000
# A bound on processes whose end was not recorded; the default pid_max is smaller.
_LIVING_LIMIT = 65_536
_REFUSED_LIMIT = 1_000
_WORDS_KEPT = 64
_SIGNALS_KEPT, _NAME_KEPT = 70, 20  # the kernel has 64
_CHARACTERS_KEPT = 400

# What a node stands for. A process that only forked has the kernel's name for it as its command.
RAN, IN_PLACE, REFUSED, FORKED = "ran", "ran in place", "refused", "only forked"

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
    """An exec that a process asked for, and its outcome."""

    seq: int
    pid: int
    ppid: int
    below: int  # the nearest ancestor that ran a program, if that isn't its parent
    argv: list[str]
    outcome: str
    is_selected: bool = True


@dataclass(slots=True)
class Node:
    command: CommandLine
    kind: str
    first_pid: int = 0
    first_seq: int = 0
    depth: int = 0
    count: int = 0
    processes: int = 0  # new ones: an exec in place starts none
    running: int = 0
    failed: int = 0
    not_started: int = 0
    is_selected: bool = False
    killed: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    children: dict[tuple[CommandLine, str], Node] = field(default_factory=dict)  # by kind as well


class _Place(NamedTuple):
    ppid: int
    node: Node
    before: Node | None  # what it ran before its last exec


class ProcessTree:
    def __init__(self) -> None:
        self._root = Node("", RAN, depth=-1)
        self.processes = 0  # that the nodes stand for
        self.ran = 0  # of these, those that have run something
        self.not_shown = 0
        self._nodes = 0
        self._living: dict[int, _Place] = {}
        self._refused: Latest[int, _Place] = Latest(_REFUSED_LIMIT)  # processes that ran nothing

    @property
    def running(self) -> int:
        return len(self._living)

    def runs(self, pid: int, ppid: int, below: int) -> tuple[int, CommandLine] | None:
        """Return the process, or its nearest ancestor that runs something, and what it runs."""
        for each in (pid, ppid, below):
            if each in self._living:
                return each, self._living[each].node.command
        return None

    def executed(self, asked: Asked) -> None:
        pid, ppid = asked.pid, asked.ppid
        known = self._living.get(pid)
        before: Node | None = None
        if known is not None:
            known.node.running -= 1
            # Another parent means another process, whose predecessor's end was not seen.
            if known.ppid == ppid:
                before = known.node
        if before is None:
            node = self._child(self._above(asked), RAN, asked)
            self.ran += 1
            if not self._was_refused(pid, ppid):
                node.processes += 1
                self.processes += 1
        else:
            node = self._child(before, IN_PLACE, asked)
        node.running += 1
        self._living[pid] = _Place(ppid, node, before)
        if len(self._living) > _LIVING_LIMIT:
            self._forget(next(iter(self._living)))

    def refused(self, asked: Asked) -> None:
        known = self._living.get(asked.pid)
        parent = self._above(asked) if known is None else known.node
        node = self._child(parent, REFUSED, asked)
        if known is not None:
            return
        pid, ppid = asked.pid, asked.ppid
        if not self._was_refused(pid, ppid):
            node.processes += 1
            self.processes += 1
        self._refused[pid] = _Place(ppid, node, None)

    def not_started(self, pid: int) -> None:
        """Take back its last exec, which the kernel refused."""
        known = self._living.get(pid)
        if known is None:
            return
        known.node.not_started += 1
        if known.before is not None:
            known.node.running -= 1
            known.before.running += 1
            self._living[pid] = _Place(known.ppid, known.before, None)

    def exited(self, event: Event, is_selected: bool = True) -> None:
        get, pid = event.payload.get, event.pid
        signal_name, exit_code = text(get("signal_name")), get("exit_code")
        node = self._forget(pid)
        if node is None:
            refused = self._refused.pop(pid, None)
            if not signal_name:
                return
            if refused is not None:
                node = refused.node
            else:  # a process that has run nothing
                comm, ppid = text(get("comm")) or "?", number(get("ppid"))
                asked = Asked(event.seq, pid, ppid, 0, [comm], "", is_selected)
                node = self._child(self._above(asked), FORKED, asked)
                node.processes += 1
                self.processes += 1
        if signal_name:
            name = signal_name[:_NAME_KEPT]
            if name in node.killed or len(node.killed) < _SIGNALS_KEPT:
                node.killed[name] = node.killed.get(name, 0) + 1
        elif exit_code:
            node.failed += 1

    def lines(self) -> tuple[Node, ...]:
        """Return the selected nodes and their ancestors, top to bottom.

        A hostile tree may be a thousand deep: too deep for recursion and for nested JSON.
        """
        order: list[Node] = []
        waiting = _latest_first(self._root)
        while waiting:
            order.append(waiting.pop())
            waiting += _latest_first(order[-1])
        shown: list[Node] = []
        depth = 0  # of the ancestor that the next shown node needs
        for node in reversed(order):
            if node.is_selected or node.depth < depth:
                shown.append(node)
                depth = node.depth
        return tuple(reversed(shown))

    def _above(self, asked: Asked) -> Node:
        for pid in (asked.ppid, asked.below):
            if pid in self._living:
                return self._living[pid].node
        return self._root

    def _was_refused(self, pid: int, ppid: int) -> bool:
        """Return whether a refused exec has counted it."""
        known = self._refused.pop(pid, None)
        return known is not None and known.ppid == ppid

    def _forget(self, pid: int) -> Node | None:
        known = self._living.pop(pid, None)
        if known is None:
            return None
        known.node.running -= 1
        return known.node

    def _child(self, parent: Node, kind: str, asked: Asked) -> Node:
        key = command_line(asked.argv), kind
        node = parent.children.get(key)
        if node is None:
            node = Node(*key, asked.pid, asked.seq, parent.depth + 1)
            if self._nodes >= NODE_LIMIT:
                self.not_shown += 1
            else:
                self._nodes += 1
                parent.children[key] = node
        node.count += 1
        node.is_selected |= asked.is_selected
        if asked.outcome:
            node.outcomes[asked.outcome] = node.outcomes.get(asked.outcome, 0) + 1
        return node


def _latest_first(node: Node) -> list[Node]:
    return sorted(node.children.values(), key=lambda child: -child.first_seq)
