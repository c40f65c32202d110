"""Sessions made for signals: a policy of one test, receivers that say what has reached them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.harness import PYTHON, Sigwrap
from tests.support.waiting import PATIENCE_S, Reader

INSIDE = (Path(__file__).parents[1] / "signals" / "programs" / "inside.py").read_text()
"""What programs in a session share."""

BOUND_BY = "signal_sent signal_blocked signal_redirected signal_absorbed signal_approved".split()


def python(program: str | Path, *words: object) -> list[str]:
    """A program beside inside.py, or a few words after all that inside.py has."""
    if isinstance(program, Path):
        # Not isolated: it imports what lies beside it.
        return [PYTHON[0], "-E", "-s", "-S", "-B", str(program), *map(str, words)]
    return [*PYTHON, "-c", f"{INSIDE}\n{program}", *map(str, words)]


_DENIALS = rb"sigwrap: (denied: |\d+ actions? denied \(sigwrap report)"


def not_denials(stderr: bytes) -> list[bytes]:
    """Its other lines."""
    lines = stderr.splitlines()
    return [line for line in lines if not re.match(_DENIALS, line)]


def policy(*rules: str, signal: str = "deny") -> str:
    """`rules` without their dashes, each on one line."""
    head = (
        f"version: 1\nname: of-a-test\ndefaults: {{command: audit, signal: {signal}}}\n"
        "session: {tracing: allow}\n"
        "command_rules:\n  - {name: every, commands: ['*'], decision: audit}\n"
    )
    lines = "".join(f"  - {{{rule}}}\n" for rule in rules)
    return head + (f"signal_rules:\n{lines}" if lines else "")


@dataclass(slots=True)
class Lab:
    subject: Sigwrap

    def under(self, *rules: str, signal: str = "deny") -> Lab:
        path = self.subject.folder / "policy.yaml"
        path.write_text(policy(*rules, signal=signal))
        self.subject.policy = str(path)
        return self

    def run(self, program: str | Path, *words: object) -> subprocess.CompletedProcess[bytes]:
        """In a session that must end well, and say nothing but what was denied."""
        done = self.subject.run("--", *python(program, *words))
        assert (done.returncode, *not_denials(done.stderr)) == (0,), done.stderr.decode()
        return done

    def tells(self, program: str | Path, *words: object) -> Any:
        """What it says, as JSON."""
        return json.loads(self.run(program, *words).stdout)

    def payloads(self, *types: str) -> list[dict[str, Any]]:
        """Of a session that ended and whose chain holds."""
        found = self.subject.sealed_events(*(types or BOUND_BY))
        return [{**event.payload, "type": event.type} for event in found]

    @property
    def boxes(self) -> Path:
        """Where receivers are asked what has reached them; every user's."""
        folder = self.subject.folder / "boxes"
        if not folder.exists():
            folder.mkdir()
            folder.chmod(0o777)
            self.subject.folder.chmod(0o755)
        return folder

    def outsider(self, name: str = "outside", *, user: int | None = -1) -> Outsider:
        """A process outside of every session; as the session's user unless said otherwise."""
        as_user = self.subject.as_user()
        if user != -1:
            as_user = [] if user is None else ["setpriv", f"--reuid={user}", "--clear-groups", "--"]
        line = [*as_user, *python("import sys; tell(os.getpid()); receive(*sys.argv[1:])")]
        process = self.subject.start_line([*line, str(self.boxes), name])
        said = Reader(process.stdout.fileno()).line()
        return Outsider(process, name, self.boxes, int(said))


@dataclass(slots=True)
class Outsider:
    process: subprocess.Popen[bytes]
    name: str
    boxes: Path
    pid: int

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def arrived(self) -> list[dict[str, int]]:
        """The signals that have reached it since it was asked last."""
        asking = os.open(self.boxes / f"{self.name}.in", os.O_RDWR)
        hearing = os.open(self.boxes / f"{self.name}.out", os.O_RDWR)
        try:
            os.write(asking, b"d")
            found: list[dict[str, int]] = json.loads(Reader(hearing).line(PATIENCE_S))[1]
            return found
        finally:
            os.close(asking)
            os.close(hearing)
