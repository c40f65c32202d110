"""The program under test: real processes, a store of its own, nobody left behind."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import sigwrap
from sigwrap.errors import SigwrapError
from sigwrap.events import Event
from sigwrap.kernel import procfs
from sigwrap.log.catalog import list_sessions, open_session
from sigwrap.report.check.decisions import ReproductionFold
from sigwrap.report.check.verify import Outcome, verify_session
from tests.support.command_server import LOCALE, CommandServer, can_run, is_command
from tests.support.consistent import contradictions
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE_S, Late, Reader, await_state, await_that, reader

NOBODY = 65534
EXECS = ("exec_allowed", "exec_audited")
REFUSED = 125
INTERRUPTED = 130

_BESIDE_PYTHON = Path(sys.executable).with_name("sigwrap")
UNDER_TEST = os.environ.get("SIGWRAP_UNDER_TEST") or str(_BESIDE_PYTHON)
IS_BINARY = Path(UNDER_TEST).read_bytes()[:2] != b"#!"
PYTHON = (os.path.realpath(sys.executable), "-I", "-S")
"""Every user may run it, and it starts in no time."""

_MARK = "SIGWRAP_TEST_MARK"


@functools.cache
def command_server() -> CommandServer:
    return CommandServer.start()


class Running(subprocess.Popen[bytes]):
    """Its streams are pipes, unless its test said otherwise."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def say(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()


@dataclass(slots=True)
class Sigwrap:
    """The program under test, as one user, with a store of its own."""

    folder: Path
    store: Path
    user: int | None = None
    policy: str = ""
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    env: dict[str, str] = field(default_factory=dict)
    _started: list[Running] = field(default_factory=list)
    _terminals: list[Terminal] = field(default_factory=list)

    def __post_init__(self) -> None:
        kept = ("PATH", "USER", "SIGWRAP_PURE_PYTHON")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env |= {"TERM": "xterm", **LOCALE}
        self.env["HOME"] = str(self.folder)
        self.env["TMPDIR"] = str(self.folder)
        self.env["SIGWRAP_STORE"] = str(self.store)
        self.env[_MARK] = self.mark

    def line(self, *words: str | bytes) -> list[str | bytes]:
        """Without the switch to the user: for a caller that has switched."""
        return [UNDER_TEST, *(["--policy", self.policy] if self.policy else []), *words]

    def as_user(self) -> list[str]:
        if self.user is None:
            return []
        return ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", "--"]

    def native(self, *words: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
        return self._finish(self._start([*self.as_user(), *words], **options), options)

    def run(self, *words: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """`words` are sigwrap's own, `--` included. What only reads runs in a fork of the command
        server, and what supervises is started, unless `forks` says which. The forks are of the
        package also where the binary is under test: tests/binary starts each of its commands."""
        forks = options.pop("forks", is_command(words, options))
        env = {**self.env, **options.get("env", {})}
        if forks and can_run(env):
            return self._fork(self.line(*words), env, options)
        return self._finish(self._start([*self.as_user(), *self.line(*words)], **options), options)

    def _fork(
        self, line: list[str | bytes], env: dict[str, str], options: dict[str, Any]
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return command_server().run(
                line,
                user=self.user,
                env=env,
                cwd=options.get("cwd", self.folder),
                stdin=options.get("input", b""),
                within_s=options.get("within_s", PATIENCE_S),
            )
        except TimeoutError:
            raise Late(f"{line!r} did not end") from None

    def start(self, *words: str | bytes, **options: Any) -> Running:
        return self._start([*self.as_user(), *self.line(*words)], **options)

    def start_line(self, line: Sequence[str | bytes], **options: Any) -> Running:
        return self._start(line, **options)

    def start_ready(self, *words: str, **options: Any) -> tuple[Running, Reader]:
        """Once COMMAND has said that it is ready and waits; and what it says."""
        process = self.start(*words, **options)
        said = reader(process.stdout)
        said.until(rb"ready")
        self.await_reading()
        return process, said

    def on_terminal(self, *words: str | bytes, **options: Any) -> Terminal:
        return self.terminal_for([*self.as_user(), *self.line(*words)], **options)

    def ready_on_terminal(self, *words: str) -> Terminal:
        """Once COMMAND has said that it is ready and waits."""
        terminal = self.on_terminal(*words)
        terminal.output.until(rb"ready")
        self.await_reading()
        return terminal

    def bash_on_terminal(self) -> Terminal:
        """An interactive one, not under sigwrap, at its first prompt."""
        line = [*self.as_user(), "bash", "--norc", "-i"]
        terminal = self.terminal_for(line, env={"PS1": "PROMPT> "})
        terminal.output.until(rb"PROMPT> ")
        return terminal

    def terminal_for(self, line: Sequence[str | bytes], **options: Any) -> Terminal:
        terminal = Terminal(line, {**self.env, **options.pop("env", {})}, self.folder, **options)
        self._terminals.append(terminal)
        return terminal

    def _start(self, line: Sequence[str | bytes], **options: Any) -> Running:
        options.pop("input", None)
        options.pop("within_s", None)
        options.setdefault("stdin", subprocess.PIPE)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("cwd", self.folder)
        options.setdefault("start_new_session", True)
        environment = {**self.env, **options.pop("env", {})}
        process = Running(line, env=environment, **options)
        self._started.append(process)
        return process

    def _finish(
        self, process: Running, options: dict[str, Any]
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            within_s = options.get("within_s", PATIENCE_S)
            out, err = process.communicate(options.get("input", b""), within_s)
        except subprocess.TimeoutExpired as late:
            raise Late(f"{process.args!r} did not end; stderr: {late.stderr!r}") from None
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    # Its log

    def events(self, *types: str) -> list[Event]:
        found = open_session(str(self.store), "").events()
        return [event for event in found if not types or event.type in types]

    def has_sessions(self) -> bool:
        return bool(list_sessions(str(self.store)))

    def sealed_events(self, *types: str) -> list[Event]:
        """Of a session that ended cleanly, whose chain holds."""
        self.verify(ended=True)
        return self.events(*types)

    def verify(self, *, ended: bool) -> None:
        found = verify_session(open_session(str(self.store), ""), None)
        assert (found.outcome, found.problem, found.ended) == (Outcome.INTACT, "", ended)

    def verify_decisions(self) -> None:
        """Of each session: the recorded policy makes the same again."""
        if not (self.store / "sessions").is_dir():
            return
        for file in list_sessions(str(self.store)):
            decisions = ReproductionFold(sigwrap.__version__)
            session = open_session(str(self.store), file.id)
            found = verify_session(session, None, and_also=decisions.add)
            if found.outcome is Outcome.INTACT:
                made = decisions.result()
                assert (made.row, made.problem, file.id) == (0, "", file.id)
                first = session.first()
                if first is not None and "judgement" in first.payload:  # else a test wrote it
                    assert not contradictions(session.events())

    def await_event(self, *types: str) -> None:
        def is_there() -> bool:
            try:
                return bool(self.events(*types))
            except SigwrapError:  # the log is just being made
                return False

        await_that(is_there)

    def interrupts(self) -> list[str]:
        events = self.sealed_events()
        kinds = [event.type for event in events if event.type.startswith("interrupt_")]
        return [kind.removeprefix("interrupt_") for kind in kinds]

    # Its processes

    def command_pid(self) -> int:
        pid: int = self.events("session_started")[0].payload["command_pid"]
        return pid

    def await_reading(self) -> None:
        """A shell or Python looks for signals, and then it reads: one in between waits for a
        line."""
        await_state(self.command_pid(), "S")

    def alive(self) -> list[int]:
        """Every process that was started in this test, by its environment."""
        return [pid for pid in procfs.all_pids() if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        if pid == os.getpid():
            return False
        try:
            return f"{_MARK}={self.mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False

    def clean_up(self) -> None:
        for terminal in self._terminals:
            terminal.close()
        for process in self._started:
            if process.poll() is None:
                process.kill()
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.wait(PATIENCE_S)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        self.verify_decisions()
