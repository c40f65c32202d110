"""sigwrap pause, resume, stop, signal: send an agent signal to a running session."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Annotated

import typer

from sigwrap.agent import AgentSignal
from sigwrap.agent.signals import known_signal
from sigwrap.approve.control_client import ask_one
from sigwrap.approve.control_socket import ControlReply
from sigwrap.cli.control import check, running_session
from sigwrap.cli.group import App
from sigwrap.cli.options import Format, FormatOption, StoreOption, store_folder
from sigwrap.cli.output import out
from sigwrap.errors import SessionError, UsageError
from sigwrap.events import counted, number, text
from sigwrap.text import did_you_mean, id_end, printable, shell_words

SIGNAL_SCHEMA = "sigwrap.signal/1"
_SETTLES_WITHIN_S = 3.0  # longer than a session waits for its execs
_ASKS_EVERY_S = 0.02
_LONGEST_REASON = 500
_NAMES = ", ".join(each.name for each in AgentSignal)

_SESSION = "id, its unique start or end, or a session name [default: the latest running session]"

RunningArgument = Annotated[
    str | None, typer.Argument(metavar="[SESSION]", help=f"Session {_SESSION}")
]
ReasonOption = Annotated[str, typer.Option(metavar="R", help="Reason to log in the session")]

app = App()


def _shortcut(signal: AgentSignal, meaning: str) -> Callable[..., None]:
    def command(
        session: RunningArgument = None,
        reason: ReasonOption = "",
        store: StoreOption = None,
        form: FormatOption = Format.TEXT,
    ) -> None:
        _send(signal, session, reason, store, form)

    command.__doc__ = meaning
    return command


for _name, _signal, _meaning in (
    ("pause", AgentSignal.SIGSTOP, "Freeze the processes of a session, until sigwrap resume."),
    ("resume", AgentSignal.SIGCONT, "Continue a paused session."),
    ("stop", AgentSignal.SIGINT, "End a session cleanly."),
):
    app.command(_name)(_shortcut(_signal, _meaning))


@app.command()
def signal(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[SESSION] SIGNAL", help=f"SESSION: {_SESSION}. SIGNAL: one of {_NAMES}"
        ),
    ],
    reason: ReasonOption = "",
    store: StoreOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Send an agent signal to a whole session.

    SIGUSR1 prints a diagnostic, SIGUSR2 saves a copy of the log.
    """
    *session, word = words
    if len(session) > 1:
        raise UsageError(f"unexpected argument: {word}", "sigwrap signal [SESSION] SIGNAL")
    if word.isdecimal():
        raise UsageError(
            f"{word}: agent signals have other numbers than kill(1)", "use a name, such as SIGSTOP"
        )
    wanted = known_signal(word)
    if wanted is None:
        # The session comes first; a line with both the other way round is about the signal.
        tried = next((each for each in words if each.upper().startswith("SIG")), word)
        meant = did_you_mean(tried, AgentSignal.__members__)
        hint = f"{meant}see sigwrap signal --help"
        if known_signal(tried) is not None:
            line = f"sigwrap signal {shell_words([word, tried])}"
            raise UsageError("the session comes before the signal", line)
        raise UsageError(f'"{printable(tried)}" is not an agent signal', hint)
    _send(wanted, session[0] if session else None, reason, store, form)


def _send(
    wanted: AgentSignal, selector: str | None, reason: str, store: str | None, form: Format
) -> None:
    if len(reason) > _LONGEST_REASON:
        raise UsageError(f"--reason: more than {_LONGEST_REASON} characters")
    if selector == "":  # perhaps an unset variable, which must not mean the latest session
        raise UsageError("the session can't be empty", "name one, or none for the latest")
    folder = store_folder(store)
    request = {"do": "signal", "signal": wanted.name, "reason": reason}
    session_id = running_session(folder, selector or "")
    first = ask_one(folder, session_id, request)
    check(session_id, first)
    reply = _settled(folder, session_id, first, wanted)
    if form is Format.JSON:
        known = {name: value for name, value in reply.items() if name not in ("v", "ok")}
        out(json.dumps({"schema": SIGNAL_SCHEMA, **known}, indent=2))
    else:
        out(f"session {id_end(session_id)}: {_what_happened(reply)}")
    if reply.get("outcome") == "failed":
        error = printable(text(reply.get("error")) or "internal error of sigwrap")
        raise SessionError(f"{wanted.name} failed: {error}")


def _settled(store: str, session_id: str, reply: ControlReply, wanted: AgentSignal) -> ControlReply:
    """Wait until the current execs have ended and the process tree is frozen."""
    until_s = time.monotonic() + _SETTLES_WITHIN_S
    while _is_unsettled(reply, wanted) and time.monotonic() < until_s:
        time.sleep(_ASKS_EVERY_S)
        try:
            request = {"do": "signal-outcome", "sequence": reply.get("sequence")}
            reply = ask_one(store, session_id, request)
        except SessionError:  # the session has ended meanwhile
            return reply
        check(session_id, reply)
    return reply


def _is_unsettled(reply: ControlReply, wanted: AgentSignal) -> bool:
    if reply.get("outcome") == "pending":
        return True
    is_stop = wanted is AgentSignal.SIGSTOP or reply.get("follows") == "SIGSTOP"
    is_stopped = reply.get("state") == "STOPPED" and not reply.get("ending")
    return is_stop and is_stopped and reply.get("frozen") is not True


def _what_happened(reply: ControlReply) -> str:
    name = printable(text(reply.get("signal")))
    match reply.get("outcome"):
        case "no-op" if reply.get("state") not in ("STOPPED", "RUNNING"):
            return "already ending (to end it at once: sigwrap signal SIGKILL)"
        case "no-op":
            return "not paused" if name == "SIGCONT" else "already paused"
        case "pending":
            execs = counted(number(reply.get("in_flight")), "exec")
            return f"{name} sent, waiting for {execs} to finish"
        case "delivered":
            follows = printable(text(reply.get("follows")))
            sent = f"{name} sent, and by the policy {follows}: " if follows else ""
            return sent + _effect(reply, follows or name)
        case outcome:
            return f"{name} {printable(str(outcome))}"


def _effect(reply: ControlReply, signal: str) -> str:
    processes = counted(number(reply.get("processes")), "process", "processes")
    grace = f"{reply.get('grace_s')} s"
    match signal:
        case "SIGSTOP" if reply.get("ending"):
            return "not paused, because the run is ending"
        case "SIGSTOP" if reply.get("state") == "RUNNING":
            return "paused, and resumed since"
        case "SIGSTOP":
            soon = "" if reply.get("frozen") else " so far"
            held = number(reply.get("held"))
            waiting = f", {counted(held, 'exec')} waiting" if held else ""
            return f"paused, {processes} frozen{soon}{waiting}"
        case "SIGCONT":
            return f"resumed, {processes}"
        case "SIGINT":
            return f"SIGINT sent to its command; force kill after at most {grace}"
        case "SIGTERM":
            return f"SIGTERM sent to the process tree, SIGKILL follows after {grace}"
        case "SIGKILL":
            return "killed the whole process tree"
        case "SIGUSR1":
            return "the diagnostic is in the log, and on the session's standard error"
        case "SIGUSR2":
            return f"the log is copied to {printable(text(reply.get('checkpoint')))}"
        case _:
            return f"{signal} logged, with no other effect"
