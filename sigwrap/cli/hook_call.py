"""Judges a tool call from standard input, records it, and answers.

It does without typer: an agent starts this before each tool call, and waits for it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

from sigwrap.approve.requests import TO_AN_AGENT
from sigwrap.bare import Any, NamedTuple, NoReturn, signal
from sigwrap.cli.hook_facts import ThisMachine
from sigwrap.cli.hook_log import record
from sigwrap.cli.output import note, out
from sigwrap.control import killswitch
from sigwrap.errors import BLOCKED, InternalError, SessionError, SigwrapError
from sigwrap.hooks.calls import BadCall, Call, FileCall, ShellCall, WebCall
from sigwrap.hooks.formats import FORMATS, AgentProgram, call_in
from sigwrap.hooks.verdict import (
    Answer,
    Finding,
    Verdict,
    combined,
    denial,
    finding_of,
    reads_too_much,
)
from sigwrap.kernel.peer import is_inside_a_session
from sigwrap.log.folder import default_store
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import Operation
from sigwrap.session.settings import DEFAULT_POLICY
from sigwrap.start.command import find_program
from sigwrap.start.policy_files import host_variables, load_with_sources

MAX_CALL_BYTES = 16 << 20
WITHIN_S = 20  # the program itself waits longer (hooks/settings.py), and lets the call through then

_DEPTH_OF_THE_SHELL = 1
_NOT_ASKED = "This agent cannot ask its user; a rule of the policy can allow it"
_OPTIONS = {"--policy": "policy", "-p": "policy", "--root": "root", "--store": "store"}


class HookLine(NamedTuple):
    program: AgentProgram
    policy: str = DEFAULT_POLICY
    root: str = ""
    store: str | None = None


def read_hook_line(words: list[str]) -> HookLine | None:
    """Read `hook run AGENT` and `hook AGENT` with plain options; None for any other line."""
    words = words[1:] if words[1:2] == ["run"] else words
    if sys.stdin is None or sys.stdin.isatty() or len(words) < 2 or len(words) % 2:
        return None
    names, values = words[2::2], words[3::2]
    if not set(names) <= _OPTIONS.keys() or not all(values):
        return None
    try:
        program = AgentProgram(words[1])
    except ValueError:
        return None
    given = {_OPTIONS[name]: value for name, value in zip(names, values, strict=True)}
    return HookLine(program, **given)


def hook_in_line(line: str) -> HookLine | None:
    """Read the line that `hook install` writes into an agent's settings, which ends with
    `|| exit 2`; None for any other."""
    import shlex

    try:
        words = shlex.split(line)[:-3]
    except ValueError:
        return None
    is_sigwrap = os.path.basename(words[0]) == "sigwrap" and words[1:2] == ["hook"]
    return read_hook_line(words[1:]) if is_sigwrap else None


def answer(given: HookLine) -> int:
    program = given.program
    if sys.stdin is None:
        return _blocked(program, "standard input is closed")
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(WITHIN_S)
    try:
        store = default_store(os.environ) if given.store is None else given.store
        _refuse_by_killswitch(store)
        started_ns = time.perf_counter_ns()
        call = call_in(program, _read())
        inside = is_inside_a_session()
        verdict, policy = _judged(program, call, given, inside=inside)
        said, reason = verdict.answer, verdict.reason
        if said is Answer.ASK and call.cannot_ask:
            said = Answer.DENY
            reason = denial(f"{reason.removeprefix('sigwrap: ')}. {_NOT_ASKED}")
        took_us = (time.perf_counter_ns() - started_ns) // 1000
        if call.doings:
            verdict = verdict._replace(answer=said)
            record(store, program.value, policy, call, verdict, reason, took_us, inside=inside)
    except BadCall as problem:
        return _blocked(program, str(problem))
    except SigwrapError as failure:
        return _blocked(program, *failure.lines)
    except (OSError, MemoryError, RecursionError) as failure:
        return _blocked(program, str(failure) or "out of memory")
    except Exception as bug:
        return _blocked(program, *InternalError.of(bug).lines)
    shown = FORMATS[program].answered(said, reason)
    if shown:
        out(shown)
    return 0


def _blocked(program: AgentProgram, *lines: str) -> int:
    note(*(f"denied: hook {program.value}: {line}" for line in lines[:-1]))
    note(f"denied: hook {program.value}: {lines[-1]}{TO_AN_AGENT}")
    return BLOCKED


def _too_late(_number: int, _frame: Any) -> NoReturn:
    raise SessionError(f"the call could not be judged within {WITHIN_S} s")


def _refuse_by_killswitch(store: str) -> None:
    state = killswitch.known(killswitch.stores(store, os.environ))
    if state is not None:
        raise SessionError(str(state), "sigwrap killswitch off")


def _read() -> bytes:
    text = sys.stdin.buffer.read(MAX_CALL_BYTES + 1)
    if len(text) > MAX_CALL_BYTES:
        raise BadCall(f"the call is longer than {MAX_CALL_BYTES >> 20} MiB")
    return text


def _judged(
    program: AgentProgram, call: Call, given: HookLine, *, inside: bool
) -> tuple[Verdict, str]:
    """Return the verdict, and the name of the policy."""
    if not call.doings:
        return combined(()), ""
    known = FORMATS[program].root_variable
    project = os.environ.get(known, "") if known else ""
    root = given.root or project or call.project or os.getcwd()
    policy, _ = load_with_sources(given.policy, variables=host_variables(root))
    engine = Engine(policy)
    machine = ThisMachine(engine, runs_in_session=inside or _runs_in_a_session(program))
    found = [
        finding
        for doing in call.doings
        for finding in _findings(doing, call, engine, machine, inside=inside)
    ]
    return combined(found), engine.policy.name


def _findings(
    doing: ShellCall | FileCall | WebCall,
    call: Call,
    engine: Engine,
    machine: ThisMachine,
    *,
    inside: bool,
) -> Iterator[Finding]:
    name = engine.policy.name
    match doing:
        case ShellCall():
            folder = os.path.join(call.folder or os.getcwd(), doing.folder)
            yield from _of_line(doing.line, folder, engine, machine)
        case FileCall():
            path = os.path.join(call.folder or os.getcwd(), os.path.expanduser(doing.path))
            operation = doing.operation
            if operation is None:
                operation = Operation.WRITE if os.path.exists(path) else Operation.CREATE
            decision = machine.operation(operation, path)
            yield finding_of(f"{operation.value} {path}", decision, name, inside=inside)
            if doing.with_all_below and not machine.reads_everything_below(path):
                yield reads_too_much(path, inside=inside)
        case WebCall():
            found = machine.connection(doing.host, doing.port)
            if found is None:
                raise BadCall(f"{doing.host!r} is not a valid host name")
            what = f"connect to {doing.host}:{doing.port}"
            yield finding_of(what, found, name, inside=inside)


def _runs_in_a_session(program: AgentProgram) -> bool:
    """Return whether the agent's settings have this sigwrap run its shell commands."""
    prefix = os.environ.get("CLAUDE_CODE_SHELL_PREFIX", "")
    if program is not AgentProgram.CLAUDE_CODE or os.path.basename(prefix) != "sigwrap-shell":
        return False
    try:
        path = os.path.realpath(find_program(prefix, dict(os.environb)))
    except SigwrapError:
        return False
    own = (os.path.realpath(sys.argv[0]), os.path.abspath(sys.executable))
    return os.path.dirname(os.fsdecode(path)) in map(os.path.dirname, own)


def _of_line(line: str, folder: str, engine: Engine, machine: ThisMachine) -> Iterator[Finding]:
    """Judge the line, and the shell that the agent starts for it."""
    inside = machine.runs_in_session
    from sigwrap.hooks.judged_line import judged
    from sigwrap.hooks.shell_reader import read_line

    shell = machine.request(("bash", "-c", line), folder, _DEPTH_OF_THE_SHELL, frozenset())
    decision = engine.decide_command(shell)
    yield finding_of("the agent's shell", decision, engine.policy.name, inside=inside)
    home = os.environ.get("HOME", "")
    depth = _DEPTH_OF_THE_SHELL + 1
    read = read_line(line, folder=os.path.normpath(folder), home=home, depth=depth)
    yield from judged(read, engine, machine, inside=inside)
