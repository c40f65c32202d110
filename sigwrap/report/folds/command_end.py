"""How the command ended, once the session has: sigwrap's exit status may say more than the
command's own."""

from __future__ import annotations

from sigwrap.escape import printable
from sigwrap.report.folds.cause import ENDED_BY_ITSELF, Cause, Why
from sigwrap.report.folds.measures import Measures
from sigwrap.status import COMMAND_ENDED, COMMAND_NOT_RUN

_NOT_SEEN = (Cause.OUTSIDE, Cause.UNKNOWN)


def at_the_end(pid: int, why: Why | None, measures: Measures, is_unexecuted: bool) -> Why:
    """`why` is of COMMAND as of any process; None where nothing was seen of it."""
    end = measures.session_end or {}
    status = end.get("exit_status")
    text = _reason(str(end.get("reason") or "ended"), why, measures)
    if why is not None and why.seq:
        text = _with_death(text, why, status, measures, is_unexecuted)
    return Why(
        pid=pid,
        command=why.command if why is not None else "",
        seq=why.seq if why is not None else 0,
        status=status if isinstance(status, int) else None,
        signal_name=why.signal_name if why is not None else "",
        cause=why.cause if why is not None else Cause.SIGWRAP,
        text=text,
        sender=why.sender if why is not None else None,
    )


def _reason(recorded: str, why: Why | None, measures: Measures) -> str:
    """Of the session's end; with who interrupted it, unless COMMAND's own death says that."""
    is_said = why is not None and (
        why.cause is Cause.TERMINAL
        or (why.cause is Cause.SIGWRAP and (why.pid, why.signal_name) in measures.forwarded)
    )
    if not measures.interrupted_by or is_said:
        return printable(recorded)
    if recorded == "interrupted":
        return measures.interrupted
    is_killed = recorded in (f"killed: {measures.taken.why}", f"killed by {measures.taken.why}")
    return f"{measures.interrupted}; {printable(recorded)}" if is_killed else printable(recorded)


def _with_death(
    reason: str, why: Why, status: object, measures: Measures, is_unexecuted: bool
) -> str:
    """`reason` of the session's end, and what COMMAND's own end has to add."""
    if reason.startswith(COMMAND_NOT_RUN) or is_unexecuted:
        return reason if why.status == status else f"{reason}; the command was not executed"
    interrupted_by = measures.interrupted_by
    is_own = why.cause in (Cause.ITSELF, Cause.DENIED) or (
        bool(interrupted_by) and why.sender is not None and why.sender.pid == why.pid
    )
    said_already = why.status == status and not is_own
    if interrupted_by and why.signal_name and why.sender and why.sender.pid == why.pid:
        return reason  # it raised the signal again, to end by it
    if why.cause in _NOT_SEEN and why.signal_name == interrupted_by.get("signal_name"):
        return reason  # it went to the whole group
    if why.cause in _NOT_SEEN and reason.startswith("killed"):
        # The kernel sends SIGHUP to a stopped group that nobody is left to continue.
        return f"{reason}; the command died of {why.signal_name}"
    if (
        said_already
        or reason == COMMAND_ENDED
        or why.text in (reason, measures.interrupted)
        or (why.text.startswith(f"{reason}; "))
    ):
        return why.text
    if measures.ends_for(reason.removeprefix("ended by ")) and why.cause is Cause.SIGWRAP:
        how = " after the grace period" if why.signal_name == "SIGKILL" else ""
        return f"{reason}; the command died of {why.signal_name} from sigwrap{how}"
    if why.cause is Cause.KERNEL and reason == measures.out_of_memory:
        return why.text
    killed_for = why.text.removeprefix("SIGKILL from sigwrap: ")
    if reason.endswith((f"killed: {killed_for}", f"killed by {killed_for}")):
        return reason
    if why.text == ENDED_BY_ITSELF and why.status not in (None, 0, status):
        return f"{reason}; {why.text}, with exit status {why.status}"
    return f"{reason}; {why.text}"
