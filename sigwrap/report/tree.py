"""The process tree, as a fold: equal children of one parent are one node with a count.

A process is known from its first exec; an exec in place becomes a child node marked so. Bounded:
past NODE_LIMIT different nodes, processes are only counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NODE_LIMIT = 1_000
# A bound on processes whose end was not recorded; the default pid_max is smaller.
_LIVING_LIMIT = 65_536
_WORDS_KEPT = 64
_CHARACTERS_KEPT = 400

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLine:
    """A node in a tree that is written down top to bottom: a hostile tree may be a thousand deep,
    too deep for nested JSON and for recursion."""

    depth: int
    command: CommandLine
    in_place: bool
    first_pid: int
    count: int
    running: int
    failed: int
    killed: tuple[tuple[str, int], ...]


@dataclass(slots=True, kw_only=True)
class _Node:
    command: CommandLine
    in_place: bool
    first_pid: int
    count: int = 0
    running: int = 0
    failed: int = 0
    killed: dict[str, int] = field(default_factory=dict)
    children: dict[tuple[CommandLine, bool], _Node] = field(default_factory=dict)


class ProcessTree:
    def __init__(self) -> None:
        self._root = _Node(command="", in_place=False, first_pid=0)
        self.processes = 0
        self.not_shown = 0
        self._nodes = 0
        self._living: dict[int, tuple[int, _Node]] = {}

    @property
    def running(self) -> int:
        return len(self._living)

    def executed(self, pid: int, ppid: int, argv: list[str]) -> None:
        known = self._living.get(pid)
        # Another parent means another process, whose predecessor's end was not seen.
        in_place = known is not None and known[0] == ppid
        if known is not None:
            known[1].running -= 1
        if in_place and known is not None:
            parent = known[1]
        else:
            self.processes += 1
            parent = self._living[ppid][1] if ppid in self._living else self._root
        node = self._child(parent, command_line(argv), in_place, pid)
        node.count += 1
        node.running += 1
        self._living[pid] = (ppid, node)
        if len(self._living) > _LIVING_LIMIT:
            self._forget(next(iter(self._living)))

    def exited(self, pid: int, exit_code: int | None, signal_name: str) -> None:
        node = self._forget(pid)
        if node is None:
            return
        if signal_name:
            node.killed[signal_name] = node.killed.get(signal_name, 0) + 1
        elif exit_code:
            node.failed += 1

    def lines(self) -> tuple[TreeLine, ...]:
        found: list[TreeLine] = []
        waiting = [(0, node) for node in reversed(self._root.children.values())]
        while waiting:
            depth, node = waiting.pop()
            found.append(
                TreeLine(
                    depth=depth,
                    command=node.command,
                    in_place=node.in_place,
                    first_pid=node.first_pid,
                    count=node.count,
                    running=node.running,
                    failed=node.failed,
                    killed=tuple(node.killed.items()),
                )
            )
            waiting += [(depth + 1, child) for child in reversed(node.children.values())]
        return tuple(found)

    def _forget(self, pid: int) -> _Node | None:
        known = self._living.pop(pid, None)
        if known is None:
            return None
        node = known[1]
        node.running -= 1
        return node

    def _child(self, parent: _Node, command: CommandLine, in_place: bool, pid: int) -> _Node:
        key = (command, in_place)
        node = parent.children.get(key)
        if node is not None:
            return node
        node = _Node(command=command, in_place=in_place, first_pid=pid)
        if self._nodes >= NODE_LIMIT:
            self.not_shown += 1
            return node
        self._nodes += 1
        parent.children[key] = node
        return node
