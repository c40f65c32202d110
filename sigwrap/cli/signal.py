"""signal: an agent signal to a running session, and what has come of it."""

from __future__ import annotations

import json
import time
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
from sigwrap.protocols.control import ControlReply
from sigwrap.protocols.control_client import ControlClient, ask_one
from sigwrap.report.forms.counts import counted

SIGNAL_SCHEMA = "sigwrap.signal/1"
_WAITS_FOR_ACTIONS_S = 3.0  # longer than a session lets them take
_ASKS_EVERY_S = 0.02
_LONGEST_REASON = 500

_WORDS = "[SESSION] SIGNAL"


def register(app: typer.Typer) -> None:
    app.command(name="signal", epilog=examples("signal"))(signal)


def signal(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar=_WORDS,
            help="SESSION: an id, a unique beginning or end of one, or a --name; left out: the "
            "latest that runs. "
            f"SIGNAL: {', '.join(each.name for each in AgentSignal)}.",
            show_default=False,
        ),
    ],
    reason: Annotated[
        str, typer.Option("--reason", metavar="R", help="Goes into the session's log.")
    ] = "",
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop a whole session, let it go on, or end it.

    Or have it say how it is.
    """
    selector, wanted = _meant(words)
    if len(reason) > _LONGEST_REASON:
        raise UsageError(f"--reason: more than {_LONGEST_REASON} characters")
    folder = store_folder(store)
    request = {"do": "signal", "signal": wanted.name, "reason": reason}
    with ask_one(folder, running_session(folder, selector), request) as (session, first):
        check(session, first)
        reply = _settled(session, first, wanted)
    if as_json:
        known = {name: value for name, value in reply.items() if name not in ("v", "ok")}
        out(json.dumps({"schema": SIGNAL_SCHEMA, **known}, indent=2))
    else:
        out(f"{said(reply)} (session {session.session_id})")
    if reply.get("outcome") == "failed":
        raise SessionError(f"{wanted.name} was not carried out: {_error(reply)}")


def _meant(words: list[str]) -> tuple[str, AgentSignal]:
    if len(words) > 2:
        raise UsageError(f"{len(words)} words are too many", f"sigwrap signal {_WORDS}")
    *session, word = words
    if word.isdecimal():
        raise UsageError(
            f"{word} is another signal here than for kill(1)", "write its name, as in SIGSTOP"
        )
    try:
        wanted = agent_signal(word)
    except ValueError as unknown:
        if session and _is_signal(session[0]):
            line = f"sigwrap signal {printable(word)} {printable(session[0])}"
            raise UsageError("the session comes before the signal", line) from unknown
        if not session:
            line = f"{unknown}; to send one: sigwrap signal {_WORDS}"
            raise UsageError(line) from unknown
        raise UsageError(str(unknown)) from unknown
    if session == [""]:
        raise UsageError("an empty word is no session", f"sigwrap signal {_WORDS}")
    return (session[0] if session else ""), wanted


def _is_signal(word: str) -> bool:
    try:
        agent_signal(word)
    except ValueError:
        return False
    return True


def _settled(session: ControlClient, reply: ControlReply, wanted: AgentSignal) -> ControlReply:
    """What it says when the execs that it waits for are over, and the tree stands still."""
    until_s = time.monotonic() + _WAITS_FOR_ACTIONS_S
    while _is_unsettled(reply, wanted) and time.monotonic() < until_s:
        time.sleep(_ASKS_EVERY_S)
        try:
            reply = session.ask({"do": "signal-outcome", "sequence": reply.get("sequence")})
        except SessionError:  # it has ended meanwhile, perhaps by this
            return reply
        check(session, reply)
    return reply


def _is_unsettled(reply: ControlReply, wanted: AgentSignal) -> bool:
    if reply.get("outcome") == "pending":
        return True
    is_stop = wanted is AgentSignal.SIGSTOP or reply.get("follows") == "SIGSTOP"
    is_stopped = reply.get("state") == "STOPPED" and not reply.get("ending")
    return is_stop and is_stopped and reply.get("frozen") is not True


def said(reply: ControlReply) -> str:
    """What came of it, in one line."""
    name = printable(text(reply.get("signal")))
    match reply.get("outcome"):
        case "no-op":
            return f"{name}: no-op: {_already(reply)}"
        case "pending":
            count = number(reply.get("in_flight"))
            return f"{name}: pending: it waits for {counted(count, 'exec')} to be over"
        case "delivered":
            return _effect(reply)
        case outcome:
            return f"{name}: {printable(str(outcome))}"


def _already(reply: ControlReply) -> str:
    if reply.get("state") not in ("STOPPED", "RUNNING"):
        return "it is ending already (SIGKILL ends it at once)"
    return "it is not stopped" if reply.get("signal") == "SIGCONT" else "it is stopped already"


def _effect(reply: ControlReply) -> str:
    name = printable(text(reply.get("signal")))
    effect = text(reply.get("follows")) or name
    processes = counted(number(reply.get("processes")), "process", "processes")
    held = number(reply.get("held"))
    grace_s = reply.get("grace_s")
    match effect:
        case "SIGSTOP" if reply.get("ending"):
            done = "nothing is frozen, since the run is ending"
        case "SIGSTOP" if reply.get("state") == "RUNNING":
            done = "it was stopped, and goes on again by now"
        case "SIGSTOP":
            wait = f"{counted(held, 'exec')} {'waits' if held == 1 else 'wait'}"
            soon = "" if reply.get("frozen") else " so far"
            done = f"stopped: {processes} frozen{soon}, {wait}"
        case "SIGCONT":
            done = f"goes on: {processes}"
        case "SIGINT":
            done = f"interrupted, as by Ctrl+C: it is killed after {grace_s} s at the latest"
        case "SIGTERM":
            done = f"terminating: SIGTERM was sent, SIGKILL follows after {grace_s} s"
        case "SIGKILL":
            done = "killed: the whole tree"
        case "SIGUSR1":
            done = "the diagnostic is in the log, and on the session's standard error"
        case "SIGUSR2":
            done = f"the checkpoint is {printable(text(reply.get('checkpoint')))}"
        case _:
            done = "it is in the log, and nothing follows"
    return f"{name}, then {effect}: {done}" if effect != name else f"{name}: {done}"


def _error(reply: ControlReply) -> str:
    return printable(text(reply.get("error")) or "an error of sigwrap's own")
