"""A run, from its settings to its exit status."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from sigwrap.cli.output import note_in_time
from sigwrap.errors import InternalError, SigwrapError
from sigwrap.events import CONNECTION_TYPES, DENIED_TYPES, EXEC_TYPES, SIGNAL_TYPES
from sigwrap.front.process import run_before_supervisor
from sigwrap.linux import limits, pidfd, proc_files
from sigwrap.linux.descriptors import release_all, require_enough, reserve_standard_streams
from sigwrap.protocols.front import Channel, DiedOf, HeldUp
from sigwrap.run.session import Ended, run_session
from sigwrap.run.settings import BELL, Report, RunSettings, is_unattended
from sigwrap.start import onefile
from sigwrap.start.command import Inherited
from sigwrap.status import REFUSED


def start(settings: RunSettings, variables: Mapping[bytes, bytes] | None = None) -> int:
    """`variables`: what COMMAND is given beside its caller's."""
    reserve_standard_streams()
    proc_files.hold()
    proc_files.require()
    inherited = Inherited.capture()
    if variables:
        inherited = inherited._replace(environment={**inherited.environment, **variables})
    if settings.join_name and settings.ready_fd < 0:
        from sigwrap.cli.joining import run_in_joined_session

        return run_in_joined_session(settings, inherited)
    limits.lift(inherited.limits)
    require_enough()
    pidfd.require()
    wants_traceback = bool(os.environ.get("SIGWRAP_DEBUG"))
    if wants_traceback:
        import traceback  # now, or not at all
    waited_for_pid = onefile.bootloader_pid() or os.getpid()

    def supervise(front: Channel, front_pid: int) -> int:
        try:
            return _supervise(settings, inherited, front, front_pid, waited_for_pid)
        except SigwrapError as failure:
            note_in_time(*failure.lines)
            return failure.status
        except Exception as bug:
            if isinstance(bug, OSError) and bug.errno in (errno.EMFILE, errno.ENFILE):
                note_in_time(
                    f"{os.strerror(bug.errno)} (raise the limit, ulimit -n, and run it again)"
                )
                return REFUSED
            if isinstance(bug, ImportError | MemoryError | SystemError):
                note_in_time(f"it can't be loaded: {str(bug) or 'no memory'} (see ulimit -v, -d)")
                return REFUSED
            note_in_time(*InternalError.of(bug).lines)
            if wants_traceback:
                note_in_time(*map(str.rstrip, traceback.format_exception(bug)))
            return REFUSED

    return run_before_supervisor(
        supervise,
        inherited,
        note_in_time,
        grace_s=settings.grace_s,
        interrupts_end=settings.interrupt,
        ends_with_caller=settings.ends_with_caller,
        notify="" if settings.notify == BELL else settings.notify,
    )


def _supervise(
    settings: RunSettings,
    inherited: Inherited,
    front: Channel,
    front_pid: int,
    waited_for_pid: int,
) -> int:
    ended = run_session(
        settings,
        inherited,
        front,
        front_pid=front_pid,
        waited_for_pid=waited_for_pid,
        tell=note_in_time,
    )
    if _wants_report(settings, inherited):
        note_in_time(_one_line(ended))
    if settings.die_by_signal and ended.signal and onefile.can_die_of(ended.signal):
        front.send(DiedOf(number=ended.signal))
    if ended.is_held_up:
        front.send(HeldUp(status=ended.status))
        release_all()
    return ended.status


def _wants_report(settings: RunSettings, inherited: Inherited) -> bool:
    match settings.report:
        case Report.ALWAYS:
            return True
        case Report.NEVER:
            return False
        case Report.AUTO:
            return os.isatty(2) or is_unattended(inherited.environment)


def _one_line(ended: Ended) -> str:
    counts = ended.counts
    execs = sum(counts.get(name, 0) for name in EXEC_TYPES - DENIED_TYPES)
    signals = sum(counts.get(name, 0) for name in SIGNAL_TYPES - DENIED_TYPES)
    connections = sum(counts.get(name, 0) for name in CONNECTION_TYPES - DENIED_TYPES)
    talked = f"{_counted(connections, 'connection')}, " if connections else ""
    denied = sum(counts.get(name, 0) for name in DENIED_TYPES) - ended.denied_again
    unrecorded = _counted(ended.unrecorded, "event")
    handed = "; work was handed outside" if counts.get("work_handed_outside") else ""
    lost = f"; {unrecorded} could not be recorded" if ended.unrecorded else ""
    return (
        f"session {ended.session_id}: {ended.reason}, status {ended.status}, "
        f"after {ended.duration_s:.1f} s; {_counted(execs, 'exec')}, "
        f"{_counted(signals, 'signal')}, {talked}{denied} denied{handed}{lost}; "
        f"head {ended.head}"
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
