"""What happened to the session itself, a sentence each."""

from __future__ import annotations

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.events import Event, number, text, texts
from sigwrap.report.folds.incidents import Incident

_CHARACTERS = 300
_FILES_SHOWN = 3
_NAME_A_PROCESS = ("abi_refused", "call_refused", "control_refused", "mediation_failed")


def sentence(incident: Incident) -> str:
    said = printable(" ".join(_said(incident.first).split()))
    times = ""
    if incident.count > 1:
        by_several = incident.by_others and incident.first.type in _NAME_A_PROCESS
        times = f" ({incident.count} times{', by several processes' if by_several else ''})"
    return shortened(said, _CHARACTERS) + times


def others(more: dict[str, int]) -> str:
    """What was not kept, by kind; empty where there is nothing."""
    if not more:
        return ""
    kinds = ", ".join(f"{count} {_kind(name)}" for name, count in more.items())
    return f"and {sum(more.values())} more: {kinds}"


def _kind(name: str) -> str:
    type_name, _, source = name.partition(" ")
    return type_name.replace("_", " ") + (f" from {source}" if source else "")


def _said(event: Event) -> str:
    payload = event.payload

    def told(field: str) -> str:
        value = payload.get(field)
        return "?" if value in (None, "") else str(value)

    process = f"{told('comm')} ({event.pid})"
    why = f": {told('reason')}" if payload.get("reason") else ""
    match event.type:
        case "killswitch_activated":
            return f"the kill switch was turned on by {told('by')}{why}"
        case "killswitch_invented":
            return (
                f"the kill switch file was created by something other than sigwrap killswitch{why}"
            )
        case "killswitch_missed":
            return f"the remote kill switch {told('url')} gave no answer{why}"
        case "store_tampered":
            return f"the files of the log were tampered with ({told('what')}): {told('path')}"
        case "exec_verification_failed":
            return f"{told('path')} was killed: the kernel had loaded another program{why}"
        case "limit_exceeded":
            ended = payload.get("effect") == "terminated"
            return f"the limit {told('limit')} {'ended the run' if ended else 'was reached'}{why}"
        case "limit_near":
            return f"half of the limit {told('limit')} is used: {told('used')} of {told('maximum')}"
        case "mediation_failed":
            return f"internal error of sigwrap while it decided for {process}: {told('error')}"
        case "control_refused":
            who = f"{told('peer_cmd')} ({number(payload.get('peer_pid'))})"
            return f"{who} was refused at the control socket{why}"
        case "own_files_changed":
            files = texts(payload.get("files"))[:_FILES_SHOWN]
            more = number(payload.get("count")) - len(files)
            said = f"files that sigwrap runs from were changed: {shell_words(files)}"
            return f"{said} and {more} more" if more > 0 else said
        case "servers_killed":
            return f"killed {told('count')} file system servers that kept other processes waiting"
        case "abi_refused":
            return f"{process} used an ABI that sigwrap refuses"
        case "call_refused":
            return f"{process} was refused system call {told('syscall_number')}{why}"
        case "agent_signal":
            source = text(payload.get("source")) or "sigwrap"
            error = f" ({text(payload.get('error'))})" if payload.get("error") else ""
            return f"agent signal {told('signal')} from {source}{why}: {told('outcome')}{error}"
        case _:
            return event.type
