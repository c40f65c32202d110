"""The fast path of execs: plain files that have run before.

A file is plain if all its facts follow from its path and state: it is no script, no wrapper, and
its own user cannot change it. The extension (exec/_repeated.c) gathers the facts of a request. If
the file is plain, this module judges them once for all requests with the same facts, unless a rule
asks for a fact that differs each time. Then the extension records, answers and verifies the exec as
the slow path does. For everything else, the mediator and the tracer take over.
"""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING, Any, NamedTuple
from sigwrap.events import Payload
from sigwrap.exec import compiled
from sigwrap.exec.compiled import (
    BROKEN,
    HELD,
    LEFT,
    LEFT_AFTER_ENDS,
    LONGEST_LINE,
    HeldExec,
    SeenProcess,
    Served,
)
from sigwrap.exec.executable import Executable
from sigwrap.exec.facts import ExecFacts, exit_payload, nearest_that_ran
from sigwrap.exec.host import in_a_system_folder, is_the_systems
from sigwrap.exec.verify import ExecHoldings
from sigwrap.kernel import procfs
from sigwrap.kernel.file_state import Place, State
from sigwrap.kernel.memory import may_be_served
from sigwrap.kernel.paths import AT_FDCWD, Caller
from sigwrap.kernel.seccomp import Notification
from sigwrap.log.codec import encode_payload, hasher, json_size, next_hash
from sigwrap.log.writer import SessionLog
from sigwrap.policy.judge.request import AskedFact, Program, answer_of
from sigwrap.policy.judge.rules import Crowd
from sigwrap.policy.judge.wrappers import unwrap
from sigwrap.session.effects import Record
from sigwrap.session.lineage import Image, Process, cut_words
from sigwrap.session.perform import Request

if TYPE_CHECKING:
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

_KEPT = 1024
_NUMBERS_TAKE = 256  # at most, in bytes: the fields that differ from exec to exec
_LONGEST_STAY_S = 0.5


class _Plain(NamedTuple):
    main: Program  # without the facts that differ each time
    state: State
    image: Place


class _Remembered(NamedTuple):
    """The part of an entry that the extension does not read."""

    facts: ExecFacts
    argv: tuple[str, ...]  # which the process shows after the exec
    line: bytes
    image: Place


class RepeatedExecs:
    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._execs = execs = mediation.execs
        self._session = session
        self._recorder = session.recorder
        self._mediator = execs.mediator
        self._performer = mediation.performer
        self._processes = session.processes
        self._expected = mediation.recordings.expected
        self._tracer = execs.tracer
        self._turns = session.exec_turns
        self._watchers = session.watchers
        self._ours = execs.ours
        self._loop = session.loop
        self._refused = mediation.refused
        self._plain: dict[bytes, _Plain] = {}  # by the paths that they were called by
        self._remembered: dict[tuple[Any, ...], list[Any]] = {}  # as the extension reads it
        self._budgets: dict[tuple[str, tuple[str, ...], str], list[int]] = {}
        self._journal_fd = -1
        self._listener = mediation.listener
        limits = session.policy.limits
        most = (limits.max_children, limits.max_processes) if limits.count_at_execs else (0, 0)
        self._crowd = (limits.count_at_execs, *most)

    def may_serve(self) -> bool:
        """Return whether nothing requires judging each exec."""
        return (
            bool(self._plain)
            and self._performer.grants
            and not self._turns.is_closed
            and not may_be_served()
            and not self._expected
            and not self._tracer.redirects
            and self._processes.are_all_told_of
            and self._recorder.log.takes_rows
            and self._recorder.room > 4 * LONGEST_LINE
        )

    def serve(self) -> Notification | None:
        """Return a request that needs the slow path, or None."""
        request = b""
        while True:
            served = self._serve(request)
            self._take(served)
            request = served.request
            if served.outcome != LEFT_AFTER_ENDS or not self.may_serve():
                break
        if served.outcome == BROKEN:
            return self._listener.receive()  # which raises the error
        is_left = served.outcome in (LEFT, LEFT_AFTER_ENDS)
        return served.notification() if is_left else None

    def _serve(self, request: bytes) -> Served:
        if len(self._remembered) >= _KEPT:
            self._forget_remembered()
        log, loop = self._recorder.log, self._loop
        if self._journal_fd != log.journal_fd:  # at first, or another file is the journal now
            self._journal_fd = log.journal_fd
            self._set_up(log)
        until_s = loop.next_deadline_s
        if until_s is None:
            until_s = time.monotonic() + _LONGEST_STAY_S
        return Served(
            *compiled.native.serve(
                loop.poll.fileno(),
                self._processes.ends.fileno(),
                self._processes.by_pid,
                self._remembered,
                self._plain,
                log.seq,
                log.head_bytes,
                self._recorder.room,  # how many bytes the log may grow before the next check
                max(0, int(until_s * 1e9)),
                request,
            )
        )

    def _set_up(self, log: SessionLog) -> None:
        (proc,) = procfs.held()
        compiled.native.set_up(
            self._listener.fd,
            log.journal_fd,
            self._session.child_signals.fd,
            proc,
            self._ours.view.root,
            self._ours.view.mounts.id_bit,
            self._processes.first_left_to_others,
            self._crowd,
            self._judge,
            self._is_missing,
            self._place_of_child,
            next_hash,
            hasher(log.key),
            _exit_texts(),
        )

    def _is_missing(self, tid: int, path: bytes, error: int) -> bool:
        """Return whether the caller would get the same error for a path."""
        caller = Caller(tid, tid, self._ours.view)
        return caller.is_the_same_for_it(AT_FDCWD, path, OSError(error, ""))

    def _place_of_child(self, ppid: int, image: Image) -> tuple[int, int, int]:
        """Return the depth of a child with this image, its nearest ancestor that has executed
        something unless that is the parent, and the number of its siblings."""
        parent = self._processes.by_pid.get(ppid)
        if parent is None or parent.image != image:
            return -1, 0, 0
        above = nearest_that_ran(parent)
        return parent.depth + 1, 0 if above == ppid else above, parent.known_children

    # The extension's results

    def _take(self, served: Served) -> None:
        self._recorder.rows_written(
            served.rows, served.head, served.written_bytes, served.written_ns
        )
        if served.is_torn:
            self._recorder.log.row_failed()
        self._take_processes(served)
        self._recorder.repeated += len(served.hits)
        self._take_hits(served.hits)
        for pidfd in served.ended:
            self._processes.on_end(pidfd)
        self._session.children.on_waited(served.waited)
        if served.held is not None:
            self._hold(served, HeldExec(*served.held))

    def _take_processes(self, served: Served) -> None:
        """Take over processes in the order of their start. Those with children here have executed
        nothing since."""
        seen: dict[int, Process] = {}
        ended: list[Process] = []
        for each in map(SeenProcess._make, served.processes):
            parent = seen.get(each.ppid) or self._processes.by_pid.get(each.ppid)
            process = seen[each.pid] = self._processes.came_up(each, parent)
            for entry, image in each.runs:
                remembered = _of(entry)
                process.becomes_another(remembered.argv)
                self._processes.loaded(process, remembered.image, image)
            if each.has_ended:
                ended.append(process)
        for process in ended:
            process.ended()

    def _take_hits(self, hits: list[tuple[list[Any], int]]) -> None:
        if not self._watchers.counts_execs:
            return
        for entry, at_ns in hits:
            self._watchers.on_repeated_exec(_of(entry).facts, at_ns / 1e9)
        for entry in {id(entry): entry for entry, _ in hits}.values():
            self._renew_budget(_of(entry).facts)

    def _hold(self, served: Served, held: HeldExec) -> None:
        """Hand over an exec that takes long, that failed, or that loaded another file."""
        notification, remembered = served.notification(), _of(held.entry)
        process = self._processes.by_pid[notification.tid]
        is_written = served.outcome == HELD
        if is_written:
            process.becomes_another(remembered.argv)
        facts = remembered.facts._replace(process=process)
        holdings = ExecHoldings(self._execs)
        steps = self._mediator.follow(facts, held.entry[_RULE])
        tid = notification.tid
        request = Request(
            notification, process, facts.syscall, steps, handler=self._execs, holdings=holdings
        )
        self._tracer.held_already(request)
        if not is_written:
            os.close(held.fd)
            holdings.is_refused = True
            self._recorder.row_failed()
        else:
            try:
                holdings.executable = holdings.judged = Executable.again(
                    tid, process.pid, held.fd, facts.programs, remembered.line, self._ours
                )
            except OSError:  # it has ended; otherwise its exec stop kills it
                os.close(held.fd)
            holdings.is_continued = True
            self._turns.begun(holdings)
        self._performer.take_over(request, is_written=is_written)
        if held.wait_status >= 0:
            self._session.children.on_waited([(tid, held.wait_status)])

    # Judging

    def note(self, request: Request) -> None:
        """Remember a plain exec that has just run on the slow path."""
        held: ExecHoldings = request.holdings
        asked, facts, executable = held.asked, held.facts, held.executable
        recorded = request.recorded
        if asked is None or facts is None or executable is None or recorded is None:
            return
        if held.judged is not executable or not _is_repeatable(facts, recorded):
            return
        state = executable.stays()
        if state is None:
            return
        if len(self._plain) >= _KEPT:
            self._plain.clear()
            self._forget_remembered()
        main = facts.programs[0]._replace(argv=(), sha256=None, system_file=None, loads_code=False)
        self._plain[asked.path] = _Plain(main, state, executable.image)
        if _counted_as(facts) in self._budgets:
            self._renew_budget(facts)  # it may be used up

    def _judge(self, key: tuple[Any, ...], fd: int) -> None:
        """Judge an exec of a plain file. If it may run, remember the facts.

        `key`: the facts as the extension has gathered them. `fd`: the file.
        """
        called, *names, comm, line, depth, state = key
        plain = self._plain[called]
        path, real, cwd = map(os.fsdecode, (called, *names))
        argv = tuple(map(os.fsdecode, line[:-1].split(b"\0")))
        if (plain.main.path, plain.state) != (real, State(*state)):
            del self._plain[called]  # the path means another file now
            return
        if self._refused is not None and self._refused.suspects(argv, cwd):
            return
        main = _asked_by(plain.main._replace(argv=argv), path, fd)
        if unwrap(real.rpartition("/")[2], argv) or unwrap(main.name, argv):
            return
        if "/" not in argv[0] and not in_a_system_folder(path):
            return  # a system command of that name may appear later
        comm = comm.decode("utf-8", "surrogateescape")
        caller = Process(pid=0, start_time=0, parent=None, ppid=0, depth=depth, comm=comm)
        facts = ExecFacts(
            caller, "execve", path, cwd, False, (main,), (main,), True, Crowd(0, 0), None
        )
        try:
            recorded = self._mediator.allowing_event(facts)
        except _AskedAnew:
            return
        if recorded is not None and _is_repeatable(facts, recorded):
            self._remember(key, facts, recorded, plain.image)

    def _remember(
        self, key: tuple[Any, ...], facts: ExecFacts, recorded: Record, image: Place
    ) -> None:
        is_long = json_size(recorded.payload) > LONGEST_LINE - _NUMBERS_TAKE  # it could be cut
        if is_long or len(self._remembered) >= _KEPT:
            return
        texts = _texts_of(recorded, counts_crowd=self._crowd[0])
        main = facts.programs[0]._replace(sha256=None, system_file=None, loads_code=False)
        facts = facts._replace(programs=(main,), here=(main,))
        argv = cut_words(main.argv)
        facts.process.becomes_another(argv)
        # An existing budget counts the execs that the extension has not reported yet.
        budget = self._budgets.get(_counted_as(facts))
        if budget is None:
            budget = self._renew_budget(facts)
        self._remembered[key] = [
            recorded.event.encode(),
            *texts,
            _exit_text_after_ppid(facts.process),
            budget,
            recorded.payload["rule_name"],
            _Remembered(facts, argv, key[4], image),
        ]

    def _forget_remembered(self) -> None:
        """Forget all entries. The extension must not be running."""
        self._budgets.clear()
        self._remembered.clear()

    def _renew_budget(self, facts: ExecFacts) -> list[int]:
        """Renew the budget that all entries of the same exec share."""
        budget = self._budgets.setdefault(_counted_as(facts), [0])
        budget[0] = self._watchers.execs_left(facts)
        return budget


def _counted_as(facts: ExecFacts) -> tuple[str, tuple[str, ...], str]:
    """Return what makes two execs the same for agent/watches.py."""
    main = facts.programs[0]
    return main.path, main.argv, facts.cwd


class _AskedAnew(Exception):
    """A rule asks for a fact that differs from exec to exec."""


def _asked_by(program: Program, path: str, fd: int) -> Program:
    def anew() -> Any:
        raise _AskedAnew

    def is_the_systems_own() -> bool:
        return is_the_systems(fd, path, program.path)

    return program._replace(
        sha256=AskedFact(anew),
        loads_code=AskedFact(anew),
        system_file=AskedFact(is_the_systems_own),
    )


_RULE, _REST = 6, 7  # indexes in an entry; the extension reads those before


def _of(entry: list[Any]) -> _Remembered:
    remembered: _Remembered = entry[_REST]
    return remembered


def _texts_of(recorded: Record, *, counts_crowd: bool) -> tuple[bytes, bytes, bytes]:
    """Return the stored payload as the texts around the fields that differ each time.

    These are the parent's pid, the nearest ancestor that has executed something (optional), and at
    the end the number of processes and the time that it took.
    """
    event, payload = recorded.event, recorded.payload
    names = [name for name in payload if name not in _DIFFERS]
    comes = list(payload).index("ppid")
    between = max(map(names.index, {"verified", "message"}.intersection(names))) + 1
    first, second, third = names[:comes], names[comes:between], names[between:]
    before = _encoded(event, {name: payload[name] for name in first})[:-1] + b',"ppid":'
    after_ppid = b"," + _members(event, {name: payload[name] for name in second})
    rest = _members(event, {name: payload[name] for name in third})
    last = b"siblings" if counts_crowd else b"evaluation_us"
    return before, after_ppid, (b"," + rest if rest else b"") + b',"%b":' % last


_DIFFERS = ("ppid", "below", "siblings", "processes", "evaluation_us")


def _exit_texts() -> tuple[bytes, bytes, bytes]:
    event = "process_exited"
    ended = exit_payload(0, "", 0, 0, None)
    before = _encoded(event, {})[:-1] + b',"ppid":'
    after = b"," + _members(event, {name: ended[name] for name in ("signal", "signal_name")}) + b"}"
    return event.encode(), before, after


def _exit_text_after_ppid(process: Process) -> bytes:
    ended = exit_payload(0, process.last_name, process.depth, 0, None)
    between = {name: ended[name] for name in ("comm", "depth")}
    return b"," + _members("process_exited", between) + b',"exit_code":'


def _encoded(event: str, payload: Payload) -> bytes:
    return encode_payload(event, payload).encode()


def _members(event: str, payload: Payload) -> bytes:
    """Return the encoded members without the version in front."""
    return _encoded(event, payload)[len(_encoded(event, {})) :][:-1] if payload else b""


# Find execs that may repeat an earlier one without a new judgement.

_REPEATED = frozenset({"exec_allowed", "exec_audited"})
_NOT_REPEATED = ("approval_id", "elsewhere", "shadows")


def may_repeat(session: Session) -> bool:
    """Return whether execs may run without being judged each time.

    A limit that counts execs or forks needs each one, and a profile each program.
    """
    limits = session.policy.limits
    return (
        session.facts.launched.waits_through_signals
        and not (limits.max_execs or limits.at_fork)
        and not session.watchers.looks_at_execs
        and compiled.is_available()
    )


def _is_repeatable(facts: ExecFacts, recorded: Record) -> bool:
    """Return whether the exec can be repeated. `recorded`: the event that says it may run."""
    if recorded.event not in _REPEATED or recorded.escalation is not None:
        return False
    if not (facts.readable and recorded.payload.get("verified")) or facts.truncated:
        return False
    if len(facts.programs) != 1 or facts.scripts or facts.stub_rule is not None:
        return False
    if any(name in recorded.payload for name in _NOT_REPEATED):
        return False
    return facts.syscall == "execve" and bool(facts.cwd) and _is_plain(facts.programs[0], facts)


def _is_plain(program: Program, facts: ExecFacts) -> bool:
    """Return whether the rules asked only for facts that last while the file's path and state do.
    Only root can make a file's owner less trustworthy."""
    if not program.argv or not facts.path.startswith("/") or not program.path_is_told:
        return False
    if program.elsewhere or program.shadows or program.counts_by_name or program.missing:
        return False
    if answer_of(program.loads_code) is not None or answer_of(program.system_file) is False:
        return False
    return not (isinstance(program.sha256, AskedFact) and program.sha256.answer is not None)
