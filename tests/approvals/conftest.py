from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sigwrap.events import Event
from sigwrap.log.catalog import open_session
from tests.support.harness import UNDER_TEST, Sigwrap
from tests.support.terminal import Terminal
from tests.support.waiting import Reader

SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))


def _question(what: str, **fields: Any) -> dict[str, Any]:
    return {
        "kind": "exec",
        "pid": 4312,
        "process": "bash",
        "depth": 2,
        "what": what,
        "rule": "ask-push",
        "message": "pushes are looked at",
        "key": [what],
        **fields,
    }


class Asking:
    """A supervisor that asks on demand, and its approver."""

    def __init__(
        self,
        subject: Sigwrap,
        session_id: str,
        mode: str,
        timeout_s: float,
        more: tuple[str, ...],
    ) -> None:
        self.subject = subject
        self.session_id = session_id
        self.store = subject.store
        self._pipes = subject.folder / f"pipes-{session_id}"
        self._pipes.mkdir()
        os.mkfifo(self._pipes / "orders")
        os.mkfifo(self._pipes / "answers")
        self._orders = os.open(self._pipes / "orders", os.O_RDWR)
        self._answers_fd = os.open(self._pipes / "answers", os.O_RDWR)
        self._answers = Reader(self._answers_fd)
        self._words = [
            sys.executable,
            SUPERVISOR,
            f"--store={subject.store}",
            f"--session={session_id}",
            f"--timeout={timeout_s}",
            f"--pipes={self._pipes}",
            *more,
        ]
        self._mode = mode
        self.pid = 0
        self.terminal: Terminal | None = None

    def line(self, mode: str) -> list[str]:
        """`mode`: where the test said none."""
        return [*self._words, f"--mode={self._mode or mode}", "--"]

    def start(self, *command: str, by: Sequence[str] = ()) -> Asking:
        self.subject.start_line([*by, *self.line("control"), *command], stdin=subprocess.DEVNULL)
        self.pid = self.next()["ready"]
        return self

    def start_and_ask(self) -> tuple[Asking, str]:
        return self.start(), self.ask()

    def start_on_terminal(self, *command: str) -> Asking:
        self.terminal = self.subject.terminal_for([*self.line("auto"), *command])
        self.pid = self.next()["ready"]
        return self

    def order(self, *orders: dict[str, Any]) -> None:
        """It takes them all before it looks at anything else."""
        os.write(self._orders, b"".join(json.dumps(each).encode() + b"\n" for each in orders))

    def ask(self, what: str = "git push --force", **fields: Any) -> str:
        self.order({"ask": _question(what, **fields)})
        return str(self.next()["asked"])

    def ask_at_once(self, *whats: str) -> list[str]:
        self.order(*({"ask": _question(what)} for what in whats))
        return [str(self.next()["asked"]) for _ in whats]

    def ask_on_terminal(self) -> str:
        """Once the question has been read there."""
        approval_id = self.ask()
        assert self.terminal is not None
        self.terminal.read_question()
        return approval_id

    def next(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._answers.line())
        return answer

    def answer(self) -> tuple[str, bool, str]:
        said = self.next()
        return said["answer"], said["granted"], said["reason"]

    def ping(self) -> dict[str, Any]:
        self.order({"ping": 1})
        return self.next()

    def quit(self) -> None:
        self.order({"quit": True})

    def events(self, *types: str) -> list[Event]:
        found = open_session(str(self.store), self.session_id).events()
        return [event for event in found if not types or event.type in types]

    def sigwrap(self, *words: str, by: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """From outside of every session."""
        words = (*words, "--store", str(self.store))
        subject = self.subject
        done = subject.native(*by, UNDER_TEST, *words) if by else subject.run(*words)
        out, err = done.stdout.decode(), done.stderr.decode()
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def close(self) -> None:
        os.close(self._orders)
        os.close(self._answers_fd)


@pytest.fixture
def asking(sigwrap: Sigwrap) -> Iterator[Callable[..., Asking]]:
    made: list[Asking] = []
    numbers = itertools.count(1)

    def make(
        mode: str = "",  # where there is no terminal: control
        timeout_s: float = 60.0,
        more: tuple[str, ...] = (),
    ) -> Asking:
        name = f"s{next(numbers)}"
        made.append(Asking(sigwrap, name, mode, timeout_s, more))
        return made[-1]

    yield make
    for each in made:
        each.close()
