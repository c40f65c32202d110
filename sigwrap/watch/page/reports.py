"""The report of a session, made by another process of this very program: it may take its time and
memory, of which it has a share. One at a time."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

from sigwrap.bare import re
from sigwrap.escape import printable, shortened
from sigwrap.watch.page.answers import Answer, plain
from sigwrap.watch.page.helpers import Helpers

_WITHIN_S = 60.0
_MOST_BYTES = 32 << 20
_HEAD_BYTES = 4_096
_POLICY = re.compile(rb'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_QUOTED = "&#39;"
# In an origin of its own: its script could do nothing to this page.
_APART = "sandbox allow-scripts; frame-ancestors 'none'"


class Reports:
    def __init__(self, helpers: Helpers, line: Sequence[str]) -> None:
        """`line`: a command that writes one, but for the session's id."""
        self._helpers = helpers
        self._line = line
        self._is_busy = False

    def make(self, session_id: str, then: Callable[[Answer], None]) -> None:
        if self._is_busy:
            then(plain(503, "another report is being generated: reload in a moment"))
            return
        self._is_busy = True

        def made(found: bytes | Exception) -> None:
            self._is_busy = False
            if isinstance(found, bytes):
                then(answer(found))
            else:
                then(plain(502, f"cannot make the report of {session_id}: {printable(str(found))}"))

        self._helpers.run(lambda: output_of([*self._line, session_id]), made)


def answer(report: bytes) -> Answer:
    """With the policy that it has itself, and apart from this page."""
    found = _POLICY.search(report[:_HEAD_BYTES])
    if found is None:
        return plain(502, "sigwrap report did not print a report")
    policy = found.group(1).decode("ascii", "replace").replace(_QUOTED, "'")
    return Answer(200, "text/html; charset=utf-8", report, policy=f"{policy}; {_APART}")


class NoReport(Exception):
    """Show it."""


def output_of(line: Sequence[str]) -> bytes:
    """NoReport where it says something else, too much, or nothing in time."""
    with subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            found, said = _read(process)
        except NoReport:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode != 0:
        raise NoReport(shortened(said.decode("utf-8", "replace").strip(), 300) or "it failed")
    return found


def _read(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    assert process.stdout is not None and process.stderr is not None
    found = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    poll = select.poll()
    for fd in found:
        poll.register(fd, select.POLLIN)
    left, until_s = len(found), time.monotonic() + _WITHIN_S
    while left:
        happened = poll.poll(max(0.0, until_s - time.monotonic()) * 1000)
        if not happened:
            raise NoReport(f"it takes longer than {_WITHIN_S:.0f} s")
        for fd, _ in happened:
            data = os.read(fd, 1 << 16)
            found[fd] += data
            if not data:
                poll.unregister(fd)
                left -= 1
            if len(found[fd]) > _MOST_BYTES:
                raise NoReport(f"it is larger than {_MOST_BYTES >> 20} MB")
    report, said = found.values()
    return bytes(report), bytes(said)
