"""The end of a session, as the user and the log are told."""

from __future__ import annotations

import os

from sigwrap.errors import StoreError
from sigwrap.escape import first_of
from sigwrap.mediate.run_end import RunEnd
from sigwrap.run.lacking import NOT_TRACED, Tell, is_of_the_machine
from sigwrap.run.plan import Plan
from sigwrap.run.recorder import Recorder
from sigwrap.start import own_files

_CHANGES_SHOWN = 20


def note_changes(recorder: Recorder, tell: Tell) -> None:
    try:
        changed = own_files.changed_own_files()
    except Exception as bug:  # count them as changed, and let the log get its end
        tell(f"internal error: can't check sigwrap's own files: {type(bug).__name__}: {bug}")
        changed = [own_files.PACKAGE]
    if not changed:
        return
    recorder.record(
        "own_files_changed",
        os.getpid(),
        {"files": changed[:_CHANGES_SHOWN], "count": len(changed)},
    )
    tell(
        f"a part of sigwrap changed while the command ran ({first_of(changed)}): reinstall sigwrap "
        "if you did not change it"
    )


def seal(recorder: Recorder, ended: RunEnd, duration_s: float, tell: Tell) -> bool:
    """End the log; return False if it has no end, or is not where it belongs."""
    recorder.look()
    has_end = recorder.record(
        "session_ended",
        os.getpid(),
        {
            "exit_status": ended.exit_status,
            "reason": ended.reason,
            "duration_ns": int(duration_s * 1e9),
            "counts": dict(recorder.counts),
            "denied": recorder.actions.denied,
            "head": recorder.log.head,
            "unrecorded": recorder.unrecorded,
            "repeated": recorder.repeated,
        },
    )
    try:
        recorder.log.close()
    except StoreError as failure:
        tell(str(failure))
        return False
    return has_end


def tell_why(
    ended: RunEnd, plan: Plan, program: bytes, *, told_of_denial: bool, tell: Tell
) -> None:
    """Say why the command ended, unless it ended by itself."""
    if ended.switched_off is not None:
        why = f": {ended.switched_off.reason}" if ended.switched_off.reason else ""
        if plan.remote_switch is not None and plan.remote_switch.has_killed:
            tell(f"killed by the remote kill switch {ended.switched_off.by}{why}")
        else:
            tell(f"killed by the kill switch{why} (sigwrap killswitch status)")
    elif ended.reached_limit is not None:
        tell(f"a limit ended the command: {ended.reason}")
    elif ended.not_executed is not None and not told_of_denial:
        tell(f"{os.fsdecode(program)}: {ended.not_executed.why}")
    elif ended.not_executed is not None and is_of_the_machine(ended.not_executed.why):
        tell(NOT_TRACED)
