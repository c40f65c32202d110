"""`sigwrap [OPTIONS] -- COMMAND`: the run path.

A well-formed line is read here, without typer, whose import would be a third of the start-up time.
Whatever isn't plainly well-formed is typer's: it knows how to explain. Both end in `start`.
"""

from __future__ import annotations

import errno
import math
import os
from typing import TYPE_CHECKING

from sigwrap.cli.output import note
from sigwrap.errors import InternalError, SigwrapError, UsageError
from sigwrap.events import EXEC_TYPES, SIGNAL_TYPES
from sigwrap.front.process import run_before_supervisor
from sigwrap.linux.descriptors import reserve_standard_streams
from sigwrap.protocols.front import Channel
from sigwrap.run.settings import Approvals, Nested, Report, RunSettings
from sigwrap.start import onefile
from sigwrap.start.command import Inherited
from sigwrap.status import REFUSED

if TYPE_CHECKING:
    from sigwrap.run.session import Ended

_REPORT_IT = "please report it; SIGWRAP_DEBUG=1 shows where it happened"

_VALUES = {
    "-p": "policy",
    "--policy": "policy",
    "--root": "root",
    "--name": "name",
    "--store": "store",
    "--grace": "grace_s",
    "--approvals": "approvals",
    "--approval-timeout": "approval_timeout_s",
    "--nested": "nested",
}
_FLAGS: dict[str, dict[str, object]] = {
    "--report": {"report": Report.ALWAYS},
    "--no-report": {"report": Report.NEVER},
    "--best-effort": {"best_effort": True},
    "--durable": {"durable": True},
}


def read_plain_line(words: list[str]) -> RunSettings | None:
    """None where it takes typer to say what is meant, or what is wrong."""
    if "--" not in words:
        return None
    end = words.index("--")
    options, command = words[:end], words[end + 1 :]
    if options[:1] == ["run"]:
        options = options[1:]
    fields: dict[str, object] = {}
    while options:
        word = options.pop(0)
        if word in _FLAGS:
            fields.update(_FLAGS[word])
            continue
        option, equals, value = word.partition("=")
        if option not in _VALUES:
            return None
        if not (equals or options):
            raise UsageError(f"{option} needs a value before --", "see sigwrap run --help")
        fields[_VALUES[option]] = value if equals else options.pop(0)
    try:
        for field in ("grace_s", "approval_timeout_s"):
            if field in fields:
                fields[field] = seconds = float(str(fields[field]))
                if not 0 <= seconds < math.inf:
                    return None
        if "nested" in fields:
            fields["nested"] = Nested(fields["nested"])
        if "approvals" in fields:
            fields["approvals"] = Approvals(fields["approvals"])
    except ValueError:
        return None
    return RunSettings(command=tuple(command), **fields) if command else None  # type: ignore[arg-type]


def start(settings: RunSettings) -> int:
    reserve_standard_streams()
    inherited = Inherited.capture()
    waited_for_pid = onefile.bootloader_pid() or os.getpid()

    def supervise(front: Channel, front_pid: int) -> int:
        try:
            return _supervise(settings, inherited, front, front_pid, waited_for_pid)
        except SigwrapError as failure:
            note(str(failure))
            return failure.status
        except Exception as bug:
            if isinstance(bug, OSError) and bug.errno in (errno.EMFILE, errno.ENFILE):
                note(f"{os.strerror(bug.errno)} (raise the limit, ulimit -n, and run it again)")
                return REFUSED
            note(str(InternalError(f"internal error: {type(bug).__name__}: {bug}", _REPORT_IT)))
            if os.environ.get("SIGWRAP_DEBUG"):
                import traceback

                note(traceback.format_exc())
            return REFUSED

    return run_before_supervisor(supervise, inherited, settings.grace_s, note)


def _supervise(
    settings: RunSettings,
    inherited: Inherited,
    front: Channel,
    front_pid: int,
    waited_for_pid: int,
) -> int:
    from sigwrap.run.session import run_session

    ended = run_session(
        settings,
        inherited,
        front,
        front_pid=front_pid,
        waited_for_pid=waited_for_pid,
        tell=note,
    )
    if _wants_report(settings, inherited):
        note(_one_line(ended))
    return ended.status


def _wants_report(settings: RunSettings, inherited: Inherited) -> bool:
    match settings.report:
        case Report.ALWAYS:
            return True
        case Report.NEVER:
            return False
        case Report.AUTO:
            return os.isatty(2) or bool(inherited.environment.get(b"CI"))


def _one_line(ended: Ended) -> str:
    counts = ended.counts
    execs = sum(counts.get(name, 0) for name in EXEC_TYPES)
    signals = sum(counts.get(name, 0) for name in SIGNAL_TYPES)
    denied = counts.get("exec_denied", 0) + counts.get("signal_blocked", 0)
    lost = f"; {ended.unrecorded} events could not be recorded" if ended.unrecorded else ""
    return (
        f"session {ended.session_id}: {ended.reason}, status {ended.status}, "
        f"after {ended.duration_s:.1f} s; {execs} execs, {signals} signals, {denied} denied{lost}; "
        f"head {ended.head}"
    )


def main(words: list[str]) -> int:
    settings = read_plain_line(words)
    if settings is not None:
        return start(settings)
    from sigwrap.cli.app import run_app

    return run_app(words)
