"""One session under a mixed load, those who answer its questions, and short sessions beside it."""

from __future__ import annotations

import re
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sigwrap.log.catalog import open_session
from tests.support.harness import PYTHON, UNDER_TEST, Running, Sigwrap
from tests.support.processes import Roles
from tests.support.waiting import PATIENCE_S, Late, reader

PROGRAM = Path(__file__).parent / "programs" / "mixed_load.py"
NAME = "endurance"

_SHORT_ONES_KEPT = 20
_ROUNDS_TAKE_AT_MOST_S = 600.0

_POLICY = """\
version: 1
name: endurance
defaults: {{command: allow, signal: allow, network: allow}}
command_rules:
  - {{name: no, commands: [denied], decision: deny, message: never}}
  - {{name: ask, commands: [asked], decision: approve}}
  - {{name: record, commands: [recorded], decision: redirect,
     redirect_to: {{command: {work}/in-its-place, append_args: true, via: stub, record: true}}}}
signal_rules:
  - {{name: inside, signals: ["@all"], target: session, decision: allow}}
  - {{name: outside, signals: ["@all"], decision: deny}}
network_rules:
  - {{name: not-there, destinations: [127.0.0.2], decision: deny}}
  - {{name: kept, destinations: ["unix:{work}/kept-*"], decision: deny}}
  - {{name: others, destinations: ["*", "unix:*"], decision: audit}}
file_rules:
  - {{name: secret, paths: [{folder}/secret], operations: [read], decision: deny}}
  - {{name: audited, paths: [{work}/audited],
     operations: [write, create, delete], decision: audit}}
  - {{name: free, paths: [/], operations: [write, create, delete], decision: allow}}
"""


class Failed(Exception):
    """The load itself came to an end; with the last that was said."""


class Load:
    def __init__(self, subject: Sigwrap, process: Running) -> None:
        self._subject = subject
        self._process = process
        self._out = reader(process.stdout)
        self.said = deque[bytes](maxlen=20)
        self._answers = threading.Thread(target=self._answer)
        self._answers.start()
        self._await(rb"ready\n")
        self.roles = Roles.of(process.pid)
        self.journal = Path(open_session(str(subject.store), NAME).path).with_suffix(".journal")

    def rounds(self, count: int, *, asks: bool) -> float:
        """Done one after the other; `asks`: with a question and a recorded command at the end. How
        long a plain exec took, in microseconds."""
        self._process.say(b"%d %d\n" % (count, asks))
        return float(self._await(rb"[^\n]*\n"))

    def _await(self, line: bytes) -> bytes:
        try:
            return self._out.until(line, _ROUNDS_TAKE_AT_MOST_S)
        except Late:
            self._answers.join(PATIENCE_S)
            raise Failed(b"".join(self.said).decode(errors="replace")) from None

    def _answer(self) -> None:
        """Whatever else is said is read as well: a full pipe would stop the load."""
        for line in self._process.stderr:
            self.said.append(line)
            question = re.search(rb"sigwrap approve ([0-9a-f]+) --store ", line)
            if question:
                done = self._subject.native(UNDER_TEST, "approve", question[1].decode())
                self.said.append(done.stdout + done.stderr)

    def end(self) -> int:
        self._process.stdin.close()
        status = self._process.wait(_ROUNDS_TAKE_AT_MOST_S)
        self._answers.join()
        return status


@contextmanager
def load(subject: Sigwrap, line: Sequence[str]) -> Iterator[Load]:
    """`line`: the sigwrap that is meant."""
    policy = _prepare(subject)
    with subprocess.Popen(["sleep", "infinity"]) as outside:
        try:
            words = [
                *("--name", NAME, "-p", str(policy), "--no-report", "--log-size", "16G"),
                *("--approvals", "control", "--approval-timeout", "30", "--"),
            ]
            command = [*PYTHON, str(PROGRAM), str(subject.folder / "work"), str(outside.pid)]
            process = subject.start_line([*line, *words, *command])
            try:
                yield Load(subject, process)
            finally:
                process.kill()
        finally:
            outside.kill()


def _prepare(subject: Sigwrap) -> Path:
    work, policy = subject.folder / "work", subject.folder / "endurance.yaml"
    (work / "audited").mkdir(parents=True)
    (subject.folder / "secret").write_text("secret\n")
    for name, status in (("denied", 1), ("asked", 0), ("recorded", 1), ("in-its-place", 5)):
        program = work / name
        program.write_text(f"#!/bin/sh\necho said\nexit {status}\n")
        program.chmod(0o755)
    policy.write_text(_POLICY.format(folder=subject.folder, work=work))
    return policy


class ShortSessions:
    """One after the other, in the same store, which keeps the last of them."""

    def __init__(self, subject: Sigwrap) -> None:
        self._subject = subject
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0
        self.failures: list[bytes] = []

    def __enter__(self) -> ShortSessions:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(0.5):
            self._say("--no-report", "-p", "agent-observe", "--", "/bin/sh", "-c", "/bin/true; :")
            self.count += 1
            if self.count % _SHORT_ONES_KEPT == 0:
                self._say("sessions", "prune", "--keep", str(_SHORT_ONES_KEPT))

    def _say(self, *words: str) -> None:
        done = self._subject.native(UNDER_TEST, *words)
        if done.returncode:
            self.failures.append(done.stderr)
