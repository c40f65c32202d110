"""Make docs/demo.svg, the moving picture in the README: python3 demo/picture.py [OUTPUT]

The script types a short session into a shell on a pseudo terminal, records what the terminal gets,
and writes that as an animated SVG. Three things differ from the recording: long gaps are shortened,
the last screen stays for some seconds, and the user and the machine in the report have other names.
The report's pager is `head`, so the report ends after its first lines. The `node` that runs outside
the session is a copy of the shell under that name, and `long-test` only counts.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from contextlib import ExitStack
from html import escape
from itertools import groupby, pairwise
from pathlib import Path

DEMO = Path(__file__).resolve().parent
BASE = Path("/tmp/shop")  # Short, and the same on every machine.
COLUMNS, ROWS, REPORT_LINES = 100, 26, 22
LONGEST_GAP_S, LAST_SCREEN_S, PATIENCE_S = 2.5, 8.0, 60
CELL, LINE, MARGIN = 8.4, 20, 16
WIDTH, HEIGHT = round(CELL * COLUMNS), LINE * ROWS
PROMPT = r"(\A|\n)\$ \Z"
TITLE = "sigwrap runs a scripted agent in a terminal, denies two of its commands and reports on it"
STYLE = """
svg{--b:#f6f8fa;--f:#1f2328;--e:#d0d7de;--1:#cf222e;--2:#1a7f37;--3:#9a6700;--4:#0969da;--5:#8250df;
--6:#0a7480;--d:#59636e}
@media(prefers-color-scheme:dark){svg{--b:#0d1117;--f:#e6edf3;--e:#3d444d;--1:#ff7b72;--2:#3fb950;
--3:#d29922;--4:#58a6ff;--5:#bc8cff;--6:#39c5cf;--d:#9198a1}}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
fill:var(--f);white-space:pre}
.window{fill:var(--b);stroke:var(--e)}.cursor{fill:var(--f);opacity:.5}.bold{font-weight:bold}
.dim{fill:var(--d)}
""" + "".join(f".c{number}{{fill:var(--{number})}}" for number in range(1, 7))


# A report's line about who ran the command, which may be wrapped.
_BY = re.compile(r"\bby\s+(?:\S+\s+\(uid\s+\d+\)|uid\s+\d+)\s+on\s+[^\s,]+")


class Screen:
    """A terminal that only appends: written text stays as it is."""

    def __init__(self) -> None:
        self.lines = [""]
        self.style: set[str] = set()
        self.chunks: list[tuple[float, int, int, str, str]] = []  # time, row, column, style, text
        self.cursor: list[tuple[float, int, int]] = []  # time, row, column

    def write(self, data: str, time_s: float) -> None:
        # Ignored: carriage returns before line feeds, bracketed paste, cursor and keypad modes.
        ignored = r"\r(?=\n)|\x1b\[\?(?:1|25|2004)[hl]|\x1b[=>]"
        for part in filter(None, re.split(rf"(\x1b\[[\d;]*m|\n)|{ignored}", data)):
            if part == "\n":
                self.lines.append("")
            elif part.startswith("\x1b[") and part.endswith("m"):
                self._set_style(part[2:-1])
            else:
                self._put(part, time_s)
        self.cursor.append((time_s, len(self.lines) - 1, len(self.lines[-1])))

    def _set_style(self, numbers: str) -> None:
        for number in numbers.split(";"):
            if number in ("", "0"):
                self.style = set()
            elif number in ("1", "2"):
                self.style.add("bold" if number == "1" else "dim")
            elif re.fullmatch("[39][1-6]|39", number):
                self.style = {f"c{number[1]}", *(self.style & {"bold", "dim"})}
            else:
                raise SystemExit(f"picture.py: unknown style {numbers!r}")

    def _put(self, text: str, time_s: float) -> None:
        if not re.fullmatch("[ -~…→·]*", text):
            raise SystemExit(f"picture.py: cannot draw {text!r}")
        while text:
            if len(self.lines[-1]) == COLUMNS:
                self.lines.append("")
            column = len(self.lines[-1])
            part, text = text[: COLUMNS - column], text[COLUMNS - column :]
            style = " ".join(sorted(self.style))
            self.chunks.append((time_s, len(self.lines) - 1, column, style, part))
            self.lines[-1] += part


class Terminal:
    """A shell on a pseudo terminal, and a record of all that it writes."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self.screen = Screen()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(directory)
                os.execve("/bin/sh", ["sh", "-i"], environment)
            finally:
                os._exit(127)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))

    def type(self, line: str, pause_s: float) -> None:
        self.listen(pause_s)
        for end in range(1, len(line) + 1):
            os.write(self.fd, line[end - 1 : end].encode())
            self.listen(pause_s / 20)
            self.await_text(re.escape(line[:end]) + r"\Z")
        os.write(self.fd, b"\n")

    def listen(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while select.select([self.fd], [], [], max(0, end_s - time.monotonic()))[0]:
            time_s, data = time.monotonic(), b""
            while select.select([self.fd], [], [], 0.02)[0]:
                data += os.read(self.fd, 65536)
            text = _BY.sub("by ann on laptop", data.decode())
            self.screen.write(text, time_s)

    def await_text(self, pattern: str) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while not re.search(pattern, text := "\n".join(self.screen.lines)):
            if time.monotonic() > end_s:
                raise SystemExit(f"picture.py: no {pattern} appears in:\n{text}")
            self.listen(0.05)


def make_base() -> None:
    """Make the directory of the session. Only one picture is made at a time."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return BASE.mkdir(mode=0o700)
        except FileExistsError:
            if time.monotonic() > end_s:
                raise SystemExit(f"picture.py: {BASE} exists: remove it") from None
            time.sleep(0.1)


def play(sigwrap: Path, pause_s: float) -> Screen:
    project, home = BASE / "web", BASE / "home"
    path = f"{sigwrap.parent}:/usr/local/bin:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8"}
    environment |= {"TERM": "xterm-256color", "PS1": "\x1b[1;32m$\x1b[0m "}
    environment |= {"SIGWRAP_PAGER": f"head -n {REPORT_LINES}", "PAUSE_S": str(pause_s)}
    home.mkdir()
    for words in (f"init -q --bare {BASE}/origin.git", f"clone -q {BASE}/origin.git {project}"):
        quiet = subprocess.DEVNULL  # git says that the repository is empty.
        subprocess.run(["git", *words.split()], env=environment, check=True, stderr=quiet)
    for name in ("scripted-agent", "long-test"):
        shutil.copy(DEMO / f"{name}.sh", project / name.removeprefix("scripted-"))
    # The development server is a shell that reads a line: it ends with this script at the latest.
    (project / "shop-server.js").write_text("read line\n", encoding="utf-8")
    node = shutil.copy("/bin/sh", home / "node")
    with ExitStack() as stack:
        line = ["node", "shop-server.js"]
        server = subprocess.Popen(line, executable=node, cwd=project, stdin=subprocess.PIPE)
        stack.callback(server.communicate)
        stack.callback(server.terminate)
        terminal = Terminal(project, environment)
        stack.callback(os.waitpid, terminal.pid, 0)
        stack.callback(os.close, terminal.fd)  # The shell gets SIGHUP.
        terminal.await_text(PROMPT)
        terminal.type("sigwrap -- ./agent", pause_s)
        terminal.await_text("test 4 of")
        os.write(terminal.fd, b"\x03")
        terminal.await_text(PROMPT)
        terminal.type("sigwrap report", pause_s)
        terminal.await_text(PROMPT)
        if server.poll() is not None:
            raise SystemExit("picture.py: the server outside the session has ended")
    return terminal.screen


def steps(name: str, values: list[tuple[float, str]]) -> str:
    """Return an animation that jumps to each value at its time, in percent."""
    return f"@keyframes {name}{{" + "".join(f"{at:.2f}%{{{to}}}" for at, to in values) + "}\n"


def drawn(screen: Screen) -> str:
    shown_s = {screen.cursor[0][0]: 0.0}
    for (before, *_), (after, *_) in pairwise(screen.cursor):
        shown_s[after] = shown_s[before] + min(after - before, LONGEST_GAP_S)
    total_s = shown_s[screen.cursor[-1][0]] + LAST_SCREEN_S
    scrolls, moves = [], []
    for time_s, row, column in screen.cursor:
        at = 100 * shown_s[time_s] / total_s
        x, y = CELL * min(column, COLUMNS - 1), LINE * row
        scrolls.append((at, f"transform:translateY({-LINE * max(0, row - ROWS + 1)}px)"))
        moves.append((at, f"transform:translate({x:.1f}px,{y}px)"))
    style = STYLE + f".a{{animation:{total_s:.2f}s step-end infinite}}\n"
    style += steps("scroll", scrolls) + steps("cursor", moves)
    body = ""
    for number, (time_s, chunks) in enumerate(groupby(screen.chunks, lambda chunk: chunk[0])):
        at = 100 * shown_s[time_s] / total_s
        style += steps(f"t{number}", [(0, "visibility:hidden"), (at, "visibility:visible")])
        body += f'<g class="a" style="animation-name:t{number}">'
        for _, row, column, names, text in chunks:
            x, kept = CELL * (column + len(text) - len(text.lstrip())), text.strip()
            place = f'x="{x:.1f}" y="{LINE * row + 15}" textLength="{CELL * len(kept):.1f}"'
            if kept:
                body += f'<text class="{names}" {place}>{escape(kept, quote=False)}</text>'
        body += "</g>\n"
    style += "@media(prefers-reduced-motion:reduce){.a{animation:none}}\n"
    all_width, all_height = WIDTH + 2 * MARGIN, HEIGHT + 2 * MARGIN
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{all_width}" height="{all_height}" \
viewBox="0 0 {all_width} {all_height}" role="img" aria-label="{TITLE}" xml:space="preserve">\
<title>{TITLE}</title><style>{style}</style>
<rect class="window" x=".5" y=".5" width="{all_width - 1}" height="{all_height - 1}" rx="8"/>
<svg x="{MARGIN}" y="{MARGIN}" width="{WIDTH}" height="{HEIGHT}">
<g class="a" style="animation-name:scroll;{scrolls[-1][1]}">
{body}<rect class="a cursor" style="animation-name:cursor;{moves[-1][1]}" width="{CELL}" \
height="{LINE}"/></g></svg></svg>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Record a session and draw it as an animated SVG")
    parser.add_argument("output", nargs="?", type=Path, default=DEMO.parent / "docs" / "demo.svg")
    parser.add_argument("--sigwrap", default="sigwrap", help="Program to run [default: on PATH]")
    parser.add_argument("--pause", type=float, default=1.4, help="Seconds to read [default: 1.4]")
    options = parser.parse_args()
    if missing := [name for name in (options.sigwrap, "git", "pkill") if not shutil.which(name)]:
        raise SystemExit(f"picture.py: not found: {missing[0]}")
    program = Path(str(shutil.which(options.sigwrap))).absolute()
    make_base()
    try:
        screen = play(program, options.pause)
    finally:
        shutil.rmtree(BASE)
    for path in (DEMO.parent, program.parent):
        if any(str(path) in line for line in screen.lines):
            raise SystemExit(f"picture.py: {path} would show:\n" + "\n".join(screen.lines))
    options.output.write_text(drawn(screen), encoding="utf-8")
    sys.stdout.write(f"{options.output}\n")


if __name__ == "__main__":
    main()
