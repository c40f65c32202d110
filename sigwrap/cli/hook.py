"""sigwrap hook: judge a tool call of an agent before it happens. It records nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from sigwrap.cli.examples import examples
from sigwrap.cli.hook_facts import ThisMachine
from sigwrap.cli.options import StoreOption, store_folder
from sigwrap.cli.output import note, out
from sigwrap.cli.policy.shared import load
from sigwrap.errors import InternalError, SessionError, SigwrapError, UsageError
from sigwrap.hooks.calls import BadCall, Call, FileCall, ShellCall, WebCall
from sigwrap.hooks.formats import AGENTS, FORMATS, AgentProgram, call_in, project_in
from sigwrap.hooks.judged_line import judged
from sigwrap.hooks.shell_line import read_line
from sigwrap.hooks.verdict import Answer, Finding, Verdict, combined, denial, finding_of
from sigwrap.linux.peer import is_inside_a_session
from sigwrap.mediate.wording import TO_AN_AGENT
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import Operation
from sigwrap.run.settings import DEFAULT_POLICY
from sigwrap.status import BLOCKED
from sigwrap.store import killswitch

MAX_CALL_BYTES = 16 << 20
WITHIN_S = 20  # the program itself waits longer (hooks/settings.py), and lets the call through then

_DEPTH_OF_THE_SHELL = 1
_NOT_ASKED = "This agent cannot ask its user; a rule of the policy can allow it"

HookPolicyOption = Annotated[
    str, typer.Option("--policy", "-p", metavar="NAME|FILE", help="Policy that decides")
]


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("hook"))(hook)


def hook(
    program: Annotated[
        AgentProgram, typer.Argument(metavar="AGENT", help=f"Agent that calls: {AGENTS}")
    ],
    policy: HookPolicyOption = DEFAULT_POLICY,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Project directory [default: the agent's project]",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = None,
) -> int:
    """Judge an agent's tool call from standard input.

    The answer is in the agent's own format. It is empty if the policy allows the call: then the
    agent asks as usual. Otherwise it asks the user or denies the call, with a reason. To set up the
    hook: sigwrap install.
    """
    if sys.stdin is None:
        return _blocked(program, "standard input is closed")
    if sys.stdin.isatty():
        raise UsageError("no tool call on standard input", "to set up the hook: sigwrap install")
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(WITHIN_S)
    try:
        _refuse_by_killswitch(store)
        text = _read()
        verdict, call = _judged(program, text, policy, root)
    except BadCall as problem:
        return _blocked(program, str(problem))
    except SigwrapError as failure:
        return _blocked(program, *failure.lines)
    except (OSError, MemoryError, RecursionError) as failure:
        return _blocked(program, str(failure) or "out of memory")
    except Exception as bug:
        return _blocked(program, *InternalError.of(bug).lines)
    answer, reason = verdict.answer, verdict.reason
    if answer is Answer.ASK and call.nobody_asked:
        answer = Answer.DENY
        reason = denial(f"{reason.removeprefix('sigwrap: ')}. {_NOT_ASKED}")
    said = FORMATS[program].answered(answer, reason)
    if said:
        out(said)
    return 0


def _blocked(program: AgentProgram, *lines: str) -> int:
    note(*(f"denied: hook {program.value}: {line}" for line in lines[:-1]))
    note(f"denied: hook {program.value}: {lines[-1]}{TO_AN_AGENT}")
    return BLOCKED


def _too_late(_number: int, _frame: Any) -> NoReturn:
    raise SessionError(f"the call could not be judged within {WITHIN_S} s")


def _refuse_by_killswitch(store: str | None) -> None:
    state = killswitch.known(killswitch.stores(store_folder(store), os.environ))
    if state is not None:
        raise SessionError(str(state), "sigwrap killswitch off")


def _read() -> bytes:
    text = sys.stdin.buffer.read(MAX_CALL_BYTES + 1)
    if len(text) > MAX_CALL_BYTES:
        raise BadCall(f"the call is longer than {MAX_CALL_BYTES >> 20} MiB")
    return text


def _judged(
    program: AgentProgram, text: bytes, policy: str, root: Path | None
) -> tuple[Verdict, Call]:
    call = call_in(program, text)
    if not call.doings:
        return combined(()), call
    known = FORMATS[program].root_variable
    project = os.environ.get(known, "") if known else ""
    engine = Engine(load(policy, root or Path(project or project_in(text) or Path.cwd())))
    machine, inside = ThisMachine(engine), is_inside_a_session()
    found = [
        finding
        for doing in call.doings
        for finding in _findings(doing, call, engine, machine, inside=inside)
    ]
    return combined(found), call


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
            yield from _of_line(doing.line, folder, engine, machine, inside=inside)
        case FileCall():
            path = os.path.join(call.folder or os.getcwd(), os.path.expanduser(doing.path))
            operation = doing.operation
            if operation is None:
                operation = Operation.WRITE if os.path.exists(path) else Operation.CREATE
            decision = machine.operation(operation, path)
            yield finding_of(f"{operation.value} {path}", decision, name, inside=inside)
        case WebCall():
            found = machine.connection(doing.host, doing.port)
            if found is None:
                raise BadCall(f"{doing.host!r} is not a valid host name")
            what = f"connect to {doing.host}:{doing.port}"
            yield finding_of(what, found, name, inside=inside)


def _of_line(
    line: str, folder: str, engine: Engine, machine: ThisMachine, *, inside: bool
) -> Iterator[Finding]:
    """Judge the line, and the shell that the agent starts for it."""
    shell = machine.request(("bash", "-c", line), folder, _DEPTH_OF_THE_SHELL, frozenset())
    decision = engine.decide_command(shell)
    yield finding_of("the agent's shell", decision, engine.policy.name, inside=inside)
    home = os.environ.get("HOME", "")
    depth = _DEPTH_OF_THE_SHELL + 1
    read = read_line(line, folder=os.path.normpath(folder), home=home, depth=depth)
    yield from judged(read, engine, machine, inside=inside)
