"""pause, resume, stop, signal: agent signals to a running session."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Annotated

import typer

from sigwrap.agent import AgentSignal, agent_signal
from sigwrap.cli.control import check, running_session
from sigwrap.cli.examples import examples
from sigwrap.cli.options import JsonOption, StoreOption, store_folder
from sigwrap.cli.output import out
from sigwrap.errors import SessionError, UsageError
from sigwrap.escape import printable
from sigwrap.events import number, text
from sigwrap.outcomes import counted
from sigwrap.protocols.control import ControlReply
from sigwrap.protocols.control_client import ControlClient, ask_one

SIGNAL_SCHEMA = "sigwrap.signal/1"
_SETTLES_WITHIN_S = 3.0  # longer than a session waits for its execs
_ASKS_EVERY_S = 0.02
_LONGEST_REASON = 500

_WORDS = "[SESSION] SIGNAL"
_SESSION = "id, its unique start or end, or a session name [default: the latest running session]"

RunningArgument = Annotated[
    str | None,
    typer.Argument(metavar="[SESSION]", help=f"Session {_SESSION}", show_default=False),
]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="R", help="Reason to log in the session")
]


_SHORTCUTS = {
    "pause": (AgentSignal.SIGSTOP, "Freeze the processes of a session, until sigwrap resume."),
    "resume": (AgentSignal.SIGCONT, "Continue a paused session."),
    "stop": (AgentSignal.SIGINT, "End a session cleanly, as Ctrl+C does."),
}


def register(app: typer.Typer) -> None:
    for name, (wanted, meaning) in _SHORTCUTS.items():
        app.command(name, help=meaning, epilog=examples(name))(_shortcut(wanted))
    app.command(epilog=examples("signal"))(signal)


def _shortcut(wanted: AgentSignal) -> Callable[..., None]:
    def command(
        session: RunningArgument = None,
        reason: ReasonOption = "",
        store: StoreOption = None,
        as_json: JsonOption = False,
    ) -> None:
        _send(wanted, session, reason, store, as_json=as_json)

    return command


def signal(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar=_WORDS,
            help=f"SESSION: {_SESSION}. SIGNAL: {', '.join(each.name for each in AgentSignal)}",
            show_default=False,
        ),
    ],
    reason: ReasonOption = "",
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send an agent signal to a whole session.

    SIGUSR1 prints a diagnostic, SIGUSR2 saves a copy of the log.
    """
    session, wanted = _session_and_signal(words)
    _send(wanted, session, reason, store, as_json=as_json)


def _send(
    wanted: AgentSignal, selector: str | None, reason: str, store: str | None, *, as_json: bool
) -> None:
    if len(reason) > _LONGEST_REASON:
        raise UsageError(f"--reason: more than {_LONGEST_REASON} characters")
    if selector == "":  # perhaps an unset variable, which must not mean the latest session
        raise UsageError("the session can't be empty", "name one, or none for the latest")
    folder = store_folder(store)
    request = {"do": "signal", "signal": wanted.name, "reason": reason}
    with ask_one(folder, running_session(folder, selector or ""), request) as (session, first):
        check(session, first)
        reply = _settled(session, first, wanted)
    if as_json:
        known = {name: value for name, value in reply.items() if name not in ("v", "ok")}
        out(json.dumps({"schema": SIGNAL_SCHEMA, **known}, indent=2))
    else:
        out(f"{result_line(reply)} (session {session.session_id})")
    if reply.get("outcome") == "failed":
        error = printable(text(reply.get("error")) or "internal error of sigwrap")
        raise SessionError(f"{wanted.name} failed: {error}")


def _session_and_signal(words: list[str]) -> tuple[str | None, AgentSignal]:
    *session, word = words
    usage = f"sigwrap signal {_WORDS}"
    if len(words) > 2:
        raise UsageError(f"too many arguments: {len(words)}", usage)
    if word.isdecimal():
        raise UsageError(
            f"{word}: agent signals have other numbers than kill(1)", "use a name, such as SIGSTOP"
        )
    try:
        return (session[0] if session else None), agent_signal(word)
    except ValueError as unknown:
        raise UsageError(str(unknown), usage) from unknown


def _settled(session: ControlClient, reply: ControlReply, wanted: AgentSignal) -> ControlReply:
    """Wait until the current execs have ended and the process tree is frozen."""
    until_s = time.monotonic() + _SETTLES_WITHIN_S
    while _is_unsettled(reply, wanted) and time.monotonic() < until_s:
        time.sleep(_ASKS_EVERY_S)
        try:
            reply = session.ask({"do": "signal-outcome", "sequence": reply.get("sequence")})
        except SessionError:  # the session has ended meanwhile
            return reply
        check(session, reply)
    return reply


def _is_unsettled(reply: ControlReply, wanted: AgentSignal) -> bool:
    if reply.get("outcome") == "pending":
        return True
    is_stop = wanted is AgentSignal.SIGSTOP or reply.get("follows") == "SIGSTOP"
    is_stopped = reply.get("state") == "STOPPED" and not reply.get("ending")
    return is_stop and is_stopped and reply.get("frozen") is not True


def result_line(reply: ControlReply) -> str:
    """Return in one line what the signal did."""
    name = printable(text(reply.get("signal")))
    match reply.get("outcome"):
        case "no-op":
            return f"{name}: no-op: {_already(reply)}"
        case "pending":
            count = number(reply.get("in_flight"))
            return f"{name}: pending: waiting for {counted(count, 'exec')} to finish"
        case "delivered":
            return _effect(reply)
        case outcome:
            return f"{name}: {printable(str(outcome))}"


def _already(reply: ControlReply) -> str:
    if reply.get("state") not in ("STOPPED", "RUNNING"):
        return "the session is already ending (SIGKILL ends it at once)"
    return "the session is not stopped" if reply.get("signal") == "SIGCONT" else "already stopped"


def _effect(reply: ControlReply) -> str:
    name = printable(text(reply.get("signal")))
    effect = text(reply.get("follows")) or name
    processes = counted(number(reply.get("processes")), "process", "processes")
    held = number(reply.get("held"))
    grace_s = reply.get("grace_s")
    match effect:
        case "SIGSTOP" if reply.get("ending"):
            done = "nothing was frozen, because the run is ending"
        case "SIGSTOP" if reply.get("state") == "RUNNING":
            done = "stopped, and continued since"
        case "SIGSTOP":
            wait = f"{counted(held, 'exec')} {'waits' if held == 1 else 'wait'}"
            soon = "" if reply.get("frozen") else " so far"
            done = f"stopped: {processes} frozen{soon}, {wait}"
        case "SIGCONT":
            done = f"continued: {processes}"
        case "SIGINT":
            done = f"interrupted, as by Ctrl+C: force kill after at most {grace_s} s"
        case "SIGTERM":
            done = f"terminating: sent SIGTERM, SIGKILL follows after {grace_s} s"
        case "SIGKILL":
            done = "killed the whole process tree"
        case "SIGUSR1":
            done = "the diagnostic is in the log, and on the session's standard error"
        case "SIGUSR2":
            done = f"the checkpoint is {printable(text(reply.get('checkpoint')))}"
        case _:
            done = "logged, with no other effect"
    return f"{name}, then {effect}: {done}" if effect != name else f"{name}: {done}"
