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
from sigwrap.exec import is_wanted, native
from sigwrap.exec.executable import Executable
from sigwrap.exec.facts import ExecFacts, exit_payload, nearest_that_ran
from sigwrap.exec.host import in_a_system_folder, is_the_systems
from sigwrap.exec.verify import ExecHoldings
from sigwrap.kernel import procfs
from sigwrap.kernel.file_state import Place, State
from sigwrap.kernel.memory import may_be_served
from sigwrap.kernel.paths import AT_FDCWD, Caller, our_view
from sigwrap.kernel.seccomp import Notification, read_notification
from sigwrap.log.codec import EVENT_LIMIT, encode_payload, encode_whole
from sigwrap.policy.judge.request import AskedFact, Program, answer_of
from sigwrap.policy.judge.rules import Crowd
from sigwrap.policy.judge.wrappers import unwrap
from sigwrap.session.effects import Record
from sigwrap.session.lineage import Image, Process, cut_words
from sigwrap.session.perform import Request

if TYPE_CHECKING:
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

# Outcomes of native.serve, in the order of the enum in _repeated.c.
_QUIET, _LEFT, _AGAIN, _HELD, _UNWRITTEN, _CHILDREN, _BROKEN = range(7)
_KEPT = 1024
_EXIT = "process_exited"
_UNKNOWN, _ADOPT_FIRST = (-1, 0, 0, 0), (-2, 0, 0, 0)
_NUMBERS_TAKE = 256  # at most, in bytes: the fields that differ from exec to exec
_LONGEST_STAY_S = 0.5


class _Plain(NamedTuple):
    main: Program  # without the facts that differ each time
    state: State
    image: Place


class _Remembered(NamedTuple):
    """A judged exec."""

    event: str
    before: str  # its encoded payload before the numbers that differ each time
    after: str
    rule: str
    exit_parts: tuple[str, str, str]  # the payload of its exit, around the two numbers
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
        self._remembered: dict[tuple[Any, ...], _Remembered] = {}
        self._is_set_up = False
        self._listener = mediation.listener
        limits = session.policy.limits
        self._counts_crowd = limits.count_at_execs
        self._most = (limits.max_children, limits.max_processes) if self._counts_crowd else (0, 0)

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
            and not self._recorder.log.wants_indexing
        )

    def serve(self, request: bytes) -> Notification | None:
        """Serve this exec, and those that come next. Return a request that needs the slow path, or
        None."""
        while True:
            outcome, request, held = self._serve(request)
            if outcome != _AGAIN or not self.may_serve():
                break
        if outcome == _CHILDREN:
            self._session.ending.take()
        elif outcome == _BROKEN:
            return self._listener.receive()  # which raises the error
        elif held is not None:
            self._hold(read_notification(request), *held, is_recorded=outcome == _HELD)
        elif request:
            return read_notification(request)
        return None

    def _serve(self, request: bytes) -> tuple[int, bytes, tuple[Any, ...] | None]:
        if len(self._remembered) >= _KEPT:
            self._remembered.clear()
        if not self._is_set_up:
            self._is_set_up = True
            self._set_up()
        until_s = self._loop.next_deadline_s
        if until_s is None:
            until_s = time.monotonic() + _LONGEST_STAY_S
        outcome, request, processes, ended, held = native.serve(
            self._loop.poll.fileno(),
            self._processes.ends.fileno(),
            self._processes.by_pid,
            self._remembered,
            self._plain,
            max(0, int(until_s * 1e9)),
            request,
        )
        self._take_processes(processes)
        for pidfd in ended:
            self._processes.on_end(pidfd)
        return outcome, request, held

    def _set_up(self) -> None:
        (proc,) = procfs.held()
        native.set_up(
            self,
            self._listener.fd,
            self._session.child_signals.fd,
            proc,
            our_view().root,
            our_view().mounts.id_bit,
            our_view().mounts.same_for_all,
            self._processes.first_left_to_others,
            *self._most,
        )

    # What the extension asks for

    def record_exec(
        self,
        entry: _Remembered,
        pid: int,
        ppid: int,
        below: int,
        siblings: int,
        processes: int,
        took_us: int,
    ) -> bool:
        nearest = f',"below":{below}' if below else ""
        crowd = f',"siblings":{siblings},"processes":{processes}' if self._counts_crowd else ""
        after = f'{nearest}{entry.after}{crowd},"evaluation_us":{took_us}}}'
        if not self._recorder.record_text(entry.event, pid, f"{entry.before}{ppid}{after}", {}):
            return False
        self._recorder.repeated += 1
        self._watchers.on_repeated_exec(entry.facts)
        if self._watchers.has_due:
            native.leave()
        return True

    def record_exit(self, entry: _Remembered, pid: int, ppid: int, code: int) -> bool:
        before, between, after = entry.exit_parts
        text = f"{before}{ppid}{between}{code}{after}"
        return self._recorder.record_text(_EXIT, pid, text, {})

    def is_missing(self, tid: int, path: bytes, error: int) -> bool:
        """Return whether the caller would get the same error for a path. The extension asks where
        it can't see that by itself."""
        caller = Caller(tid, tid)
        return caller.is_the_same_for_it(AT_FDCWD, path, OSError(error, ""))

    def place_of_child(self, ppid: int, image: Image, may_adopt: int) -> tuple[int, int, int, int]:
        """Return the depth of a child with this image, its parent, its nearest ancestor that has
        executed something unless that is the parent, and the number of its siblings.

        A parent that has executed nothing may be new. `may_adopt`: whether all processes that the
        extension has seen are known.
        """
        parent = self._processes.by_pid.get(ppid)
        if parent is None and ppid != os.getpid():
            if not may_adopt:
                return _ADOPT_FIRST
            parent = self._processes.of_pid(ppid)
        if parent is None or parent.image != image:
            return _UNKNOWN
        return parent.depth + 1, ppid, _below(parent, ppid), parent.known_children

    def place_of(self, pid: int, start_time: int) -> tuple[int, int, int, int]:
        """Return the same of a known process, and the number of its siblings and itself, unless its
        last exec has an effect on this one."""
        process = self._processes.known(pid, start_time)
        if process is None or self._turns.is_busy(process) or process.stub_of:
            return _UNKNOWN
        if self._mediator.has_approved_script(process):
            return _UNKNOWN
        parent, ppid = process.parent, process.ppid
        siblings = 0 if parent is None else parent.known_children
        return process.depth, ppid, _below(parent, ppid), siblings

    # The extension's results

    def _take_processes(self, processes: list[tuple[Any, ...]]) -> None:
        """Take over processes in the order of their start, and execs of known ones."""
        seen: dict[int, Process] = {}
        ended: list[Process] = []
        for each in processes:
            pid, ppid, depth, start, pidfd, comm, forked, entry, has_run, image, *states = each
            has_ended, is_known = states
            comm = comm.decode("utf-8", "surrogateescape")
            if is_known:
                process = self._processes.by_pid[pid]
                process.comm, process.comm_is_current = comm, True
                if self._refused is not None:
                    self._refused.forget(process)
            else:
                process = seen[pid] = Process(
                    pid=pid,
                    start_time=start,
                    parent=seen.get(ppid) or self._processes.by_pid.get(ppid),
                    ppid=ppid,
                    depth=depth,
                    comm=comm,
                )
                self._processes.came_up(process, forked, None if has_ended else pidfd)
            if has_run:
                process.becomes_another(entry.argv)
                self._processes.loaded(process, entry.image, image)
            if has_ended:
                ended.append(process)
        for process in ended:
            process.ended()

    def _hold(
        self,
        notification: Notification,
        fd: int,
        entry: _Remembered,
        wait_status: int,
        *,
        is_recorded: bool,
    ) -> None:
        """Take over an exec that takes long, that failed, or that loaded another file.

        `fd`: the file that was judged. `wait_status`: -1 if there is none yet.
        """
        process = self._processes.by_pid[notification.tid]
        if is_recorded:
            process.becomes_another(entry.argv)
        facts = entry.facts._replace(process=process)
        holdings = ExecHoldings(self._execs)
        steps = self._mediator.follow(facts, entry.rule)
        tid = notification.tid
        request = Request(
            notification, process, facts.syscall, steps, handler=self._execs, holdings=holdings
        )
        self._tracer.held_already(request)
        if not is_recorded:
            os.close(fd)
            holdings.is_refused = True
        else:
            try:
                holdings.executable = holdings.judged = Executable.again(
                    tid, process.pid, fd, facts.programs, entry.line, self._ours
                )
            except OSError:  # it has ended; otherwise its exec stop kills it
                os.close(fd)
            holdings.is_continued = True
            self._turns.begun(holdings)
        self._performer.take_over(request, is_written=is_recorded)
        if wait_status >= 0:
            self._session.ending.on_status(tid, wait_status)

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
            self._remembered.clear()
        main = facts.programs[0]._replace(argv=(), sha256=None, system_file=None, loads_code=False)
        self._plain[asked.path] = _Plain(main, state, executable.image)

    def judge(self, key: tuple[Any, ...], fd: int) -> None:
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
        text = encode_whole(recorded.event, {**recorded.payload, "ppid": 0})
        is_long = len(text) > EVENT_LIMIT - _NUMBERS_TAKE  # it could be cut
        if is_long or len(self._remembered) >= _KEPT:
            return
        before, ppid, after = text[:-1].partition('"ppid":0')
        before += ppid[:-1]
        main = facts.programs[0]._replace(sha256=None, system_file=None, loads_code=False)
        facts = facts._replace(programs=(main,), here=(main,))
        argv = cut_words(main.argv)
        facts.process.becomes_another(argv)
        self._remembered[key] = _Remembered(
            recorded.event,
            before,
            after,
            recorded.payload["rule_name"],
            _exit_parts(facts.process),
            facts,
            argv,
            key[4],
            image,
        )


def _exit_parts(process: Process) -> tuple[str, str, str]:
    payload = exit_payload(0, process.last_name, process.depth, 0, None)
    before, ppid, rest = encode_payload(_EXIT, payload).partition('"ppid":0')
    between, code, after = rest.partition('"exit_code":0')
    return before + ppid[:-1], between + code[:-1], after


def _below(parent: Process | None, ppid: int) -> int:
    above = nearest_that_ran(parent)
    return 0 if above == ppid else above


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


# Find execs that may repeat an earlier one without a new judgement.

_REPEATED = frozenset({"exec_allowed", "exec_audited"})


def may_repeat(session: Session) -> bool:
    """Return whether execs may run without being judged each time.

    A limit that counts execs or forks needs each one, and a profile each program.
    """
    limits = session.policy.limits
    return (
        session.facts.launched.waits_through_signals
        and not (limits.max_execs or limits.at_fork)
        and not session.watchers.looks_at_execs
        and is_wanted()
        and bool(procfs.held())
    )


def _is_repeatable(facts: ExecFacts, recorded: Record) -> bool:
    """Return whether the exec can be repeated: the rules asked only for facts that last while the
    file's path and state do. Only root can make a file's owner less trustworthy.

    `recorded`: the event that says it may run.
    """
    if recorded.event not in _REPEATED or recorded.escalation is not None:
        return False
    if not (facts.readable and recorded.payload.get("verified")) or facts.truncated:
        return False
    if len(facts.programs) != 1 or facts.scripts or facts.stub_rule is not None:
        return False
    program, path = facts.programs[0], facts.path
    if "approval_id" in recorded.payload or facts.syscall != "execve" or not facts.cwd:
        return False
    if not program.argv or not path.startswith("/") or not program.path_is_told:
        return False
    if program.elsewhere or program.shadows or program.counts_by_name or program.missing:
        return False
    if answer_of(program.loads_code) is not None or answer_of(program.system_file) is False:
        return False
    return not (isinstance(program.sha256, AskedFact) and program.sha256.answer is not None)
