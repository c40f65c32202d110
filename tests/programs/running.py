"""One run of a program, native or wrapped, and what came of it."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import IO

from tests.programs.place import Place
from tests.programs.program import Act, Do, Program, See, Send, Shot, Type
from tests.programs.screen import COLUMNS, ROWS, Screen
from tests.support.backstop import Backstop, NoBackstop
from tests.support.harness import PYTHON, Running, Sigwrap
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE_S, Late, await_that

Part = tuple[str, ...]
Outcome = dict[str, Part]
"""By what it is about: status, stdout, stderr, files, …; each is lines."""

INTERRUPTED = 130


@dataclass(slots=True)
class Run:
    program: Program
    place: Place
    wrapper: list[str]
    """Before COMMAND; empty natively."""
    expected: Outcome | None = None
    env: dict[str, str] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=dict)
    log: str = ""
    """What of sigwrap's log may explain a difference."""
    _subject: Sigwrap = field(init=False)
    _job: Running | Terminal = field(init=False)
    _screen: Screen | None = None

    def go(self) -> Outcome:
        self._subject = self.place.subject()
        self._subject.env.update(self.env)
        backstop = _backstop(self.program.processes)
        try:
            self._before()
            folder = self.place.folder
            with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
                self._start(backstop, out, err)
            try:
                self._follow()
            except Late as late:
                self.outcome["late"] = (str(late)[:500],)
            self._read_streams()
            self._after()
        finally:
            if self.wrapper:
                self.log = self._denials()
                left = [pid for pid in self._subject.alive() if pid != os.getpid()]
                if left and "late" not in self.outcome:
                    self.outcome["left behind"] = tuple(map(str, left))
            self._subject.clean_up()
            if backstop is not None:
                backstop.remove()
        self._look_at_files()
        return self.outcome

    # Before, during and after

    def _before(self) -> None:
        if self.program.before:
            done = self._subject.native("sh", "-euc", self.program.before, within_s=300)
            if done.returncode != 0:
                raise AssertionError(f"before {self.program.name}: {done.stderr.decode()}")

    def _start(self, backstop: Backstop | None, out: IO[bytes], err: IO[bytes]) -> None:
        words: list[str | bytes] = [*(backstop.words if backstop else [])]
        line = [*words, *self._subject.as_user(), *self.wrapper, *self._command()]
        if self.program.terminal:
            terminal = self._subject.terminal_for(line, size=(ROWS, COLUMNS))
            self._job, self._screen = terminal, Screen(terminal)
        else:
            self._job = self._subject.start_line(
                line, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    def _command(self) -> list[str]:
        if self.program.steps:
            return [*PYTHON, str(self.place.agent), *self.program.steps]
        return [Template(word).safe_substitute(self._subject.env) for word in self.program.line]

    def _follow(self) -> None:
        deadline = time.monotonic() + self.program.within_s
        for number, act in enumerate(self.program.acts, 1):
            self._carry_out(act, number)
        left_s = max(1.0, deadline - time.monotonic())
        if isinstance(self._job, Terminal):
            assert self._screen is not None
            self._screen.await_end(left_s)
            status = self._job.await_status(left_s)
        else:
            try:
                status = self._job.wait(left_s)
            except subprocess.TimeoutExpired:
                raise Late(f"did not end within {self.program.within_s:g} s") from None
        if self.wrapper and self.program.interrupted and status == INTERRUPTED:
            assert self.expected is not None
            self.outcome["status"] = self.expected["status"]
        else:
            self.outcome["status"] = (str(status),)

    def _carry_out(self, act: Act, number: int) -> None:
        match act:
            case See(pattern):
                if self._screen:
                    self._screen.await_text(pattern)
                else:
                    await_that(lambda: re.search(pattern, self._said(), re.MULTILINE) is not None)
            case Type(text):
                assert isinstance(self._job, Terminal)
                self._job.type(text)
            case Shot():
                assert self._screen is not None
                part = f"screen {number}"
                expected = self.expected.get(part) if self.expected else None
                self._note(part, "\n".join(self._screen.settled(expected)))
            case Send(name):
                os.kill(self._job.pid, signal.Signals[f"SIG{name}"])
            case Do(text):
                done = self._subject.native("sh", "-c", text, stderr=subprocess.STDOUT)
                self._note(f"outside {number}", done.stdout.decode(errors="replace"))

    def _said(self) -> str:
        return "".join(
            (self.place.folder / name).read_text(errors="replace") for name in ("out", "err")
        )

    def _read_streams(self) -> None:
        if not self.program.terminal:
            for part, name in (("stdout", "out"), ("stderr", "err")):
                said = (self.place.folder / name).read_text(errors="replace")
                self._note(part, self.program.kept(said))

    def _after(self) -> None:
        if self.program.after:
            done = self._subject.native(
                "sh", "-c", self.program.after, stderr=subprocess.STDOUT, within_s=PATIENCE_S * 2
            )
            self._note("afterwards", done.stdout.decode(errors="replace"))

    # What it has left

    def _look_at_files(self) -> None:
        names, contents = [], []
        ignored = re.compile(self.program.ignore_files) if self.program.ignore_files else None
        for path in sorted(_below(self.place.work)):
            name = str(path.relative_to(self.place.work))
            if ignored and ignored.search(name):
                continue
            found = path.lstat()
            names.append(f"{name} {stat.filemode(found.st_mode)}")
            if path.is_symlink():
                contents.append(f"{name} -> {path.readlink()}")
            elif path.is_file():
                data = path.read_bytes()
                contents.append(f"{name} {hashlib.blake2b(data, digest_size=8).hexdigest()}")
        self.outcome["files"] = tuple(names)
        self.outcome["contents of files"] = tuple(contents)

    def _note(self, part: str, said: str) -> None:
        self.outcome[part] = tuple(self.program.normalized(said).splitlines())

    def _denials(self) -> str:
        if not self._subject.has_sessions():
            return ""
        denied = [event for event in self._subject.events() if "denied" in event.type]
        return "\n".join(f"{event.type} {event.payload}" for event in denied[:20])


def _backstop(processes: int) -> Backstop | None:
    try:
        return Backstop.make(processes)
    except NoBackstop:
        return None


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
