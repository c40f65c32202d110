"""Output for a terminal through a pager: $SIGWRAP_PAGER, $PAGER or `less -FRX`.

A pager gets lines as they come, so it shows the start of a log of a million events at once. The
text is escaped as for the terminal itself, because `less -R` obeys the colours in it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sigwrap.cli.output import note, out, out_bytes
from sigwrap.linux import procfs
from sigwrap.start import onefile


@contextmanager
def pager(*, wanted: bool = True) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a text of one or several lines.

    A reader who leaves before the end, as in `sigwrap replay | head`, is no failure.
    """
    line = _line() if wanted and os.isatty(1) and os.environ.get("TERM") != "dumb" else ""
    process = _started(line) if line else None
    if process is None or process.stdin is None:
        try:
            yield out
        except BrokenPipeError:
            pass
        return
    fd = process.stdin.fileno()
    interrupts = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is a key of the pager
    try:
        yield lambda text: out_bytes(f"{text}\n".encode("utf-8", "backslashreplace"), fd)
    except BrokenPipeError:
        pass
    finally:
        process.stdin.close()
        process.wait()
        signal.signal(signal.SIGINT, interrupts)


def _line() -> str:
    """Return the pager's command line for a shell; empty if there is none."""
    for name in ("SIGWRAP_PAGER", "PAGER"):
        line = os.environ.get(name)
        if line is None:
            continue
        if line.strip() in ("cat", ""):
            return ""
        try:
            program = shlex.split(line)[0]
        except ValueError:
            program = ""
        if shutil.which(program):
            return line
        if name == "SIGWRAP_PAGER":
            note(f"${name}: no such program: {line!r}; printing without a pager")
            return ""
    return "less" if shutil.which("less") else ""


def _started(line: str) -> subprocess.Popen[bytes] | None:
    environment = onefile.original_environment(procfs.environment())
    # The user's own $LESS stays, but colours must not appear as escapes.
    less = b"-R " + environment[b"LESS"] if b"LESS" in environment else b"FRX"
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", line],
            stdin=subprocess.PIPE,
            env={b"LV": b"-c", **environment, b"LESS": less},
            bufsize=0,
        )
    except OSError as error:
        note(f"can't start the pager: {error.strerror}")
        return None
