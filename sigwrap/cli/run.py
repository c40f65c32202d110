"""A run, from its settings to its exit status."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping

from sigwrap.bare import TYPE_CHECKING
from sigwrap.cli.note_in_time import note_in_time
from sigwrap.errors import (
    COMMAND_ENDED,
    COMMAND_NOT_RUN,
    LIMIT_REACHED,
    REFUSED,
    InternalError,
    SigwrapError,
    UsageError,
)
from sigwrap.events import counted
from sigwrap.kernel import limits, procfs, signals
from sigwrap.kernel.descriptors import close_all_but, require_enough, reserve_standard_streams
from sigwrap.policy import is_url
from sigwrap.session.settings import Report, RunSettings, is_unattended
from sigwrap.start import onefile
from sigwrap.start.child import fork_child
from sigwrap.start.command import Inherited
from sigwrap.text import id_end

if TYPE_CHECKING:
    from sigwrap.front.messages import Channel
    from sigwrap.session.run import Ended

# Reasons that an earlier line has already given.
_SAID_BEFORE = (
    *(COMMAND_ENDED, COMMAND_NOT_RUN),
    *("ended by agent signal", "killed: agent signal", "killed by the kill switch"),
)


def start(settings: RunSettings, variables: Mapping[bytes, bytes] | None = None) -> int:
    """Run the command, with `variables` added to its environment."""
    _check_options(settings)
    reserve_standard_streams()
    procfs.hold()
    procfs.require()
    inherited = Inherited.capture()
    if variables:
        inherited = inherited._replace(environment={**inherited.environment, **variables})
    if settings.join_name and settings.door_fd < 0:
        from sigwrap.cli.joining import run_in_joined_session

        return run_in_joined_session(settings, inherited)
    from sigwrap.front.process import FrontProcess  # a command that joins has none

    limits.lift(inherited.limits)
    require_enough()
    signals.require_pidfds()
    wants_traceback = bool(os.environ.get("SIGWRAP_DEBUG"))
    if wants_traceback:
        import traceback  # later, nothing may be imported
    waited_for_pid = onefile.bootloader_pid() or os.getpid()

    def supervise(front: Channel, front_pid: int) -> int:
        try:
            return _supervise(settings, inherited, front, front_pid, waited_for_pid)
        except SigwrapError as failure:
            note_in_time(*failure.lines)
            return failure.status
        except Exception as bug:
            if isinstance(bug, OSError) and bug.errno in (errno.EMFILE, errno.ENFILE):
                note_in_time(f"{os.strerror(bug.errno)} (raise ulimit -n and run it again)")
                return REFUSED
            if isinstance(bug, ImportError | MemoryError | SystemError):
                note_in_time(f"can't load: {str(bug) or 'no memory'} (see ulimit -v, -d)")
                return REFUSED
            note_in_time(*InternalError.of(bug).lines)
            if wants_traceback:
                note_in_time(*map(str.rstrip, traceback.format_exception(bug)))
            return REFUSED

    shipper = None
    if settings.ship:
        from sigwrap.cli.shipper import start_shipper
        from sigwrap.log.folder import new_session_id

        settings = settings._replace(session_id=new_session_id())
        shipper = start_shipper(settings, inherited.environment)
    return FrontProcess(settings, inherited, supervise, note_in_time, shipper).run()


def _check_options(settings: RunSettings) -> None:
    """Raises UsageError for options that do not belong together."""
    if settings.ship and settings.join_name:
        how = f"once that session has ended: sigwrap ship {settings.join_name} --to URL"
        raise UsageError("--ship can't be combined with --join-name", how)
    for name in () if settings.ship else ("ship_required", "ship_credential_fd", "ship_timeout_s"):
        if getattr(settings, name) != RunSettings._field_defaults[name]:
            option = "--" + name.removesuffix("_s").replace("_", "-")
            raise UsageError(f"{option}, but nothing is shipped", "name the place: --ship URL")
    if not is_url(settings.policy):
        if settings.policy_key or settings.policy_fallback:
            option = "--policy-key" if settings.policy_key else "--policy-fallback"
            raise UsageError(f"{option} is for a policy by URL", "name it: --policy URL")
    elif not settings.policy_key:
        how = "--policy-key FILE, with the output of: openssl pkey -in KEY -pubout"
        raise UsageError("--policy URL needs the public key of its signer", how)
    elif settings.join_name:  # the session would keep it after it expires
        why = "--join-name can't be combined with a policy by URL"
        raise UsageError(why, "leave out --join-name, or download the policy")


def _supervise(
    settings: RunSettings,
    inherited: Inherited,
    front: Channel,
    front_pid: int,
    waited_for_pid: int,
) -> int:
    # Early, when it shares little memory. A fork server waits for the policy and its modules.
    child = None if settings.join_name else fork_child(settings.command, inherited)
    # Only the supervisor needs it: the front process has forked by now.
    from sigwrap.session.run import run_session

    ended = run_session(
        settings,
        inherited,
        front,
        front_pid=front_pid,
        waited_for_pid=waited_for_pid,
        tell=note_in_time,
        child=child,
    )
    if settings.ship:
        front.send("log_sealed", ended.recorder.log.head)
    if _wants_report(settings, inherited):
        verbose = settings.verbose or is_unattended(inherited.environment)
        for line in _end_lines(ended, verbose=verbose):
            note_in_time(line)
    elif settings.report is Report.AUTO and (refused := _refused(ended)):
        note_in_time(_with_report(refused, ended))
    if settings.die_by_signal and ended.result.signal and onefile.can_die_of(ended.result.signal):
        front.send("died_of", ended.result.signal)
    if ended.is_held_up:
        front.send("held_up", ended.result.exit_status)
        close_all_but(())  # readers of our pipes need not wait for our last thread
    return ended.result.exit_status


def _wants_report(settings: RunSettings, inherited: Inherited) -> bool:
    match settings.report:
        case Report.ALWAYS:
            return True
        case Report.NEVER:
            return False
        case Report.AUTO:
            return settings.verbose or os.isatty(2) or is_unattended(inherited.environment)


def _end_lines(ended: Ended, *, verbose: bool) -> Iterator[str]:
    recorder = ended.recorder
    counts = recorder.actions
    is_said = ended.result.exit_status == LIMIT_REACHED or ended.result.reason.startswith(
        _SAID_BEFORE
    )
    took = f"{ended.duration_s:.0f}" if ended.duration_s >= 10 else f"{ended.duration_s:.1f}"
    parts = [f"exit {ended.result.exit_status} after {took} s"]
    if not is_said:
        parts.append(ended.result.reason)
    parts += _refused(ended)
    if counts.approved:
        parts.append(f"{counts.approved} approved")
    if recorder.counts["work_handed_outside"]:
        parts.append("handed work outside the session")
    if recorder.unrecorded:
        parts.append(f"{counted(recorder.unrecorded, 'event')} could not be recorded")
    yield _with_report(parts, ended)
    if verbose:
        seen = ", ".join(counts.lines()) or "no commands"
        yield f"session {ended.session_id}: {seen}; log head {recorder.log.head}"


def _refused(ended: Ended) -> list[str]:
    counts = ended.recorder.actions
    denied, files = counts.denied, counts.refused_files
    said = [f"{counted(denied, 'action')} denied"] if denied else []
    return [*said, f"{counted(files, 'file')} probably refused"] if files else said


def _with_report(parts: list[str], ended: Ended) -> str:
    return f"{', '.join(parts)} (sigwrap report {id_end(ended.session_id)})"
