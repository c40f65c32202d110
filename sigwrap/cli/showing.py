"""How commands show what they read: color, width, pager, progress.

The pager is $SIGWRAP_PAGER, $PAGER or `less -FRX`. It gets lines as they come, so it shows the
start of a log of a million events at once. The text is escaped as for the terminal itself, because
`less -R` obeys the colors in it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from sigwrap.cli.output import note, out, out_bytes, out_lines
from sigwrap.kernel import procfs
from sigwrap.report.forms.layout import Style
from sigwrap.start import onefile
from sigwrap.text import printable

_STARTS_AFTER_S = 1.0
_BETWEEN_S = 0.2
_ERASE = b"\r\x1b[K"


def style(to_file: bool = False) -> Style:
    return Style.suited_to(not to_file and os.isatty(1), os.environ)


def columns(to_file: bool = False) -> int:
    """Return the terminal's width; 0 without a terminal, where lines may have any length."""
    return 0 if to_file or not os.isatty(1) else shutil.get_terminal_size().columns


def show_lines(lines: Iterable[str], *, paged: bool = False) -> None:
    with pager(wanted=paged) as show:
        if show is out:
            out_lines(lines)
        else:
            for line in lines:
                show(line)


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
    # The user's own $LESS stays, but colors must not appear as escapes.
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


class Progress:
    """Prints nothing in the first second, or if standard error is not a terminal."""

    def __init__(self) -> None:
        self._wanted = os.isatty(2) and os.environ.get("TERM") != "dumb"
        self._next_s = time.monotonic() + _STARTS_AFTER_S
        self._shown = False

    def say(self, text: str) -> None:
        now_s = time.monotonic()
        if not self._wanted or now_s < self._next_s:
            return
        self._next_s = now_s + _BETWEEN_S
        columns = os.get_terminal_size(2).columns or 80
        line = f"sigwrap: {printable(text)}"[: columns - 1]
        self._shown = True
        self._write(_ERASE + line.encode())

    def done(self) -> None:
        if self._shown:
            self._shown = False
            self._write(_ERASE)

    def _write(self, data: bytes) -> None:
        try:
            out_bytes(data, 2)
        except OSError:
            self._wanted = False  # the terminal is gone
