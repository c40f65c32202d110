"""The report of a session, made by another process of sigwrap, within limits of time and size. One
at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress

from sigwrap.bare import re
from sigwrap.escape import printable, shortened
from sigwrap.watch.page.answers import Answer, plain

_WITHIN_S = 60.0
_MOST_BYTES = 32 << 20
_HEAD_BYTES = 4_096
_POLICY = re.compile(rb'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_QUOTED = "&#39;"
# In an origin of its own, so that its script can do nothing to the page.
_APART = "sandbox allow-scripts; frame-ancestors 'none'"


class Reports:
    def __init__(self, line: Sequence[str]) -> None:
        """`line`: a command that writes a report to its standard output, without the session."""
        self._line = line
        self._busy = threading.Lock()

    def answer(self, session_id: str) -> Answer:
        if not self._busy.acquire(blocking=False):
            return plain(503, "another report is being generated: reload in a moment")
        try:
            return _with_its_policy(_output_of([*self._line, session_id]))
        except (_NoReport, OSError) as error:
            return plain(502, f"cannot make the report of {session_id}: {printable(str(error))}")
        finally:
            self._busy.release()


class _NoReport(Exception):
    """The command failed, or exceeded a limit."""


def _with_its_policy(report: bytes) -> Answer:
    found = _POLICY.search(report[:_HEAD_BYTES])
    if found is None:
        raise _NoReport("sigwrap report did not print a report")
    policy = found.group(1).decode("ascii", "replace").replace(_QUOTED, "'")
    return Answer(200, "text/html; charset=utf-8", report, policy=f"{policy}; {_APART}")


def _output_of(line: Sequence[str]) -> bytes:
    with open(os.memfd_create("errors"), "r+b") as errors:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )

        def kill() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(_WITHIN_S, kill)
        timer.start()
        with process:
            assert process.stdout is not None
            report = process.stdout.read(_MOST_BYTES + 1)
            if len(report) > _MOST_BYTES:
                kill()
        timer.cancel()
        errors.seek(0)
        said = errors.read(_HEAD_BYTES).decode("utf-8", "replace").strip()
    if len(report) > _MOST_BYTES:
        raise _NoReport(f"it is larger than {_MOST_BYTES >> 20} MB")
    if process.returncode == -signal.SIGKILL:
        raise _NoReport(f"it takes longer than {_WITHIN_S:.0f} s")
    if process.returncode != 0:
        raise _NoReport(shortened(said, 300) or "it failed")
    return report
