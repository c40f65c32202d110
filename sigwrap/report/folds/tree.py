"""The processes of a session: what each runs, what may explain its end, and their tree.

In the tree, equal children of one parent are one node with a count. A process is in it from its
first exec. An exec in place becomes a child node marked so, and a denied exec a leaf. A process
that only forks, such as a subshell, has no node unless a signal killed it. Past NODE_LIMIT nodes,
processes are only counted.
"""

from __future__ import annotations

from sigwrap.events import Event, Payload, number, text, texts
from sigwrap.policy.presets import as_meant
from sigwrap.report.folds.bounded import Latest
from sigwrap.report.folds.cause import Sender, Why, name_of_signal, shortened, shown_command
from sigwrap.report.folds.steps import Exec, Step

NODE_LIMIT = 1_000
# A bound on processes whose end was not recorded; the default pid_max is smaller.
_PROCESSES_LIMIT = 65_536
_SIGNALS_OF_ONE = 128
_WORDS_KEPT = 64
_SIGNALS_KEPT, _NAME_KEPT = 70, 20  # the kernel has 64
_CHARACTERS_KEPT = 400
_SIGNAL_CHARACTERS = 256

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


# The defaults of nodes and processes are their classes': a log has a million of them, and few of
# their attributes are ever set.


class Node:
    count = 0
    processes = 0  # new ones: an exec in place starts none
    running = 0
    failed = 0
    not_started = 0
    is_selected = False

    def __init__(
        self, command: CommandLine, kind: str, pid: int = 0, seq: int = 0, depth: int = 0
    ) -> None:
        self.command = command
        self.kind = kind
        self.first_pid = pid
        self.first_seq = seq
        self.depth = depth
        self.killed: dict[str, int] = {}
        self.outcomes: dict[str, int] = {}
        self.children: dict[tuple[CommandLine, str], Node] = {}  # by kind as well


class NotShown(Node):
    """A node past NODE_LIMIT, of which only the command is read.

    A log can have a million of these. So they share what they write, which stays small.
    """

    depth = 0
    killed, outcomes, children = {}, {}, {}

    def __init__(self, command: CommandLine) -> None:
        self.command = command


class Process:
    command: CommandLine = ""
    command_before: CommandLine = ""
    denied_exec: str = ""  # its last exec, if that was denied, as the end of a sentence
    denied_fork: str = ""
    refused_file: str = ""  # probably, by the kernel
    is_mismatched: bool = False  # it loaded another program than the one that was judged
    child: Why | None = None  # the end of a child, whose status it may pass on
    # The last signals by name; None, since few processes get any, and a dict each takes time.
    sent: dict[str, Sender] | None = None  # by other processes
    raised: dict[str, Sender] | None = None  # by itself, since then
    # For the tree: its node, the one before its last exec, and its parent at that time.
    node: Node | None = None
    node_before: Node | None = None
    node_ppid: int = 0
    has_only_asked: bool = False  # each exec was denied, and the node is a denied one
    step: Step | None = None  # of the agent, to which it belongs
    # Once it has ended by itself.
    end_seq: int = 0
    exit_code: object = None
    comm: str = ""

    def __init__(self, ppid: int) -> None:
        self.ppid = ppid

    @property
    def ran(self) -> Node | None:
        """Its node, if it has run something."""
        return None if self.has_only_asked else self.node

    @property
    def shown(self) -> str:
        return shown_command(words(self.command)) if self.command else ""

    @property
    def denied(self) -> str:
        return self.denied_exec or self.denied_fork

    @property
    def is_explained(self) -> bool:
        return self.child is not None or bool(self.denied or self.refused_file)

    @property
    def last_signal(self) -> str:
        """The name of its last signal: a process raises signals after it was sent them."""
        return next(reversed(self.raised or self.sent or {}), "")


class Processes:
    def __init__(self) -> None:
        self._living: Latest[int, Process] = Latest(_PROCESSES_LIMIT)
        self.get = self._living.get

    def __contains__(self, pid: int) -> bool:
        return pid in self._living

    def runs(self, *pids: int) -> tuple[int, CommandLine] | None:
        """Return the first of the processes that has run something, and what it runs."""
        for pid in pids:
            if (process := self._living.get(pid)) is not None and process.ran is not None:
                return pid, process.ran.command
        return None

    def step_of(self, *pids: int) -> Step | None:
        """Return the first step to which one of the processes belongs."""
        for pid in pids:
            if (process := self._living.get(pid)) is not None and process.step is not None:
                return process.step
        return None

    def pids(self) -> list[int]:
        return list(self._living)

    def end(self, event: Event) -> Process:
        return self._living.pop(event.pid, None) or Process(number(event.payload.get("ppid")))

    def executed(self, event: Event, asked: CommandLine = "") -> Process:
        """Take an exec; `asked`: the command line of its argv, if it is known."""
        process, command = self.of(event), _command(event.payload, asked)
        if event.type == "exec_denied":
            what, rule = shown_command(words(command)), event.payload.get("rule_name")
            process.denied_exec = f"sigwrap denied its exec of {what} (rule {shortened(rule)})"
        else:
            process.command_before, process.command = process.command, command
            process.denied_exec = ""
        return process

    def exec_failed(self, event: Event) -> None:
        if (process := self._living.get(event.pid)) is not None:
            process.command = process.command_before

    def fork_refused(self, event: Event) -> None:
        process, limit = self._living.get(event.pid), event.payload.get("limit")
        if process is not None and limit != "log_size":
            process.denied_fork = f"sigwrap denied its fork (limit {shortened(str(limit))})"

    def file_refused(self, event: Event) -> None:
        process = self._living.get(event.pid)
        if process is not None and not process.refused_file:
            get = event.payload.get
            what, rule = shortened(f"{get('operation')} {get('path')}"), shortened(get("rule_name"))
            process.refused_file = f"the kernel refused it: {what} (rule {rule})"

    def mismatched(self, event: Event) -> None:
        self._known(event.pid).is_mismatched = True

    def signalled(self, event: Event) -> None:
        payload = event.payload
        source, target = number(payload.get("source_pid")), payload.get("target_pid")
        if not isinstance(target, int) or target <= 0:
            return
        name = str(payload.get("signal_name") or "")[:_SIGNAL_CHARACTERS]
        sender = self._sender(event, source, name)
        process = self._known(target)
        if source == target:
            received = process.raised = process.raised or {}
        else:
            received = process.sent = process.sent or {}
            (process.raised or {}).pop(name, None)
        if received.pop(name, None) is not None or len(received) < _SIGNALS_OF_ONE:
            received[name] = sender

    def _sender(self, event: Event, pid: int, name: str) -> Sender:
        """Name the sender and its parent by what they run now."""
        payload = event.payload
        known = self._living.get(pid) or Process(0)
        parent = self._living.get(known.ppid)
        asked_for = payload.get("original_signal")
        is_same = asked_for in (None, payload.get("signal"))
        return Sender(
            pid=pid,
            command=known.shown or shortened(payload.get("source_cmd")),
            parent_pid=known.ppid,
            parent_command=parent.shown if parent is not None else "",
            signal_name=shortened(name),
            asked_for="" if is_same else shortened(name_of_signal(asked_for)),
            decision=str(payload.get("decision") or "")[:_SIGNAL_CHARACTERS],
            rule=shortened(str(payload.get("rule_name") or "")),
            event_type=event.type,
        )

    def of(self, event: Event) -> Process:
        """Return the process of an event; it is a new one if it is unknown."""
        process = self._living.get(event.pid)
        if process is None:
            ppid = number(event.payload.get("ppid"))
            process = self._living[event.pid] = Process(ppid)
        return process

    def _known(self, pid: int) -> Process:
        process = self._living.get(pid)
        if process is None:
            process = self._living[pid] = Process(0)
        return process


class ProcessTree:
    def __init__(self, processes: Processes) -> None:
        self._root = Node("", RAN, depth=-1)
        self.processes = 0  # that the nodes stand for
        self.ran = 0  # of these, those that have run something
        self.running = 0
        self.not_shown = 0
        self._nodes = 0
        self._known = processes

    def executed(self, process: Process, run: Exec) -> None:
        # Another parent means another process, whose predecessor's end was not seen.
        known = process.node if process.node_ppid == run.ppid else None
        before = None if process.has_only_asked else known
        self._stop_running(process)
        if before is None:
            node = self._child(self._above(run), RAN, run)
            self.ran += 1
            self._count(node, is_new=known is None)
        else:
            node = self._child(before, IN_PLACE, run)
        node.running += 1
        self.running += 1
        process.node, process.node_before, process.node_ppid = node, before, run.ppid
        process.has_only_asked = False

    def refused(self, process: Process, run: Exec) -> None:
        if process.ran is not None:
            self._child(process.ran, REFUSED, run)
            return
        node = self._child(self._above(run), REFUSED, run)
        self._count(node, is_new=process.node is None or process.node_ppid != run.ppid)
        process.node, process.node_ppid, process.has_only_asked = node, run.ppid, True

    def not_started(self, process: Process) -> None:
        """Take back its last exec, which the kernel refused."""
        if (node := process.ran) is None:
            return
        node.not_started += 1
        if process.node_before is not None:
            node.running -= 1
            process.node_before.running += 1
            process.node, process.node_before = process.node_before, None

    def exited(self, event: Event, process: Process, is_selected: bool = True) -> None:
        get = event.payload.get
        signal_name, exit_code = text(get("signal_name")), get("exit_code")
        node, has_run = process.node, self._stop_running(process)
        if not has_run and not signal_name:
            return
        if node is None:  # a process that has run nothing
            comm, ppid = text(get("comm")) or "?", number(get("ppid"))
            run = Exec(event, ppid, 0, [comm], command_line([comm]), False, "", is_selected)
            node = self._child(self._above(run), FORKED, run)
            self._count(node, is_new=True)
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

    def _above(self, run: Exec) -> Node:
        for pid in (run.ppid, run.below):
            if (process := self._known.get(pid)) is not None and (ran := process.ran) is not None:
                return ran
        return self._root

    def _stop_running(self, process: Process) -> bool:
        if (node := process.node) is None or process.has_only_asked:
            return False
        node.running -= 1
        self.running -= 1
        return True

    def _count(self, node: Node, *, is_new: bool) -> None:
        node.processes += is_new
        self.processes += is_new

    def _child(self, parent: Node, kind: str, run: Exec) -> Node:
        key = run.line, kind
        node = parent.children.get(key)
        if node is None:
            if self._nodes >= NODE_LIMIT:
                self.not_shown += 1
                return NotShown(run.line)
            self._nodes += 1
            node = Node(*key, run.event.pid, run.event.seq, parent.depth + 1)
            parent.children[key] = node
        node.count += 1
        node.is_selected |= run.is_selected
        if run.outcome:
            node.outcomes[run.outcome] = node.outcomes.get(run.outcome, 0) + 1
        return node


def _command(payload: Payload, asked: CommandLine = "") -> CommandLine:
    replacement = payload.get("replacement_argv")
    if asked and not replacement:
        return asked
    argv = texts(replacement) or texts(payload.get("argv"))
    return command_line(as_meant(argv or [str(payload.get("path") or "?")]))


def _latest_first(node: Node) -> list[Node]:
    return sorted(node.children.values(), key=lambda child: -child.first_seq)
