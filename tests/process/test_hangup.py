"""The window is closed, or the connection lost."""

from __future__ import annotations

import fcntl
import os
import signal
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.harness import INTERRUPTED, PYTHON, Running, Sigwrap
from tests.support.policies import policy
from tests.support.processes import tree
from tests.support.waiting import PATIENCE_S, Reader, Watch, reader

# Python calls its handlers by number, but begins anew with those that come late.
BOTH = rb"(got 1\ngot 18|got 18\ngot 1)\n"


class Window:
    """A terminal whose session's leader is what is started in it."""

    def __init__(self, subject: Sigwrap, line: list[str | bytes], ignoring: int = 0) -> None:
        self.master, slave = os.openpty()

        def prepare() -> None:
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            if ignoring:
                signal.signal(ignoring, signal.SIG_IGN)

        line = [*subject.as_user(), *line]
        env = {"PS1": "PROMPT> "}
        self.leader: Running = subject.start_line(
            line, stdin=slave, stderr=slave, preexec_fn=prepare, env=env
        )
        os.close(slave)
        self.output: Reader = reader(self.leader.stdout)

    def close(self) -> None:
        master, self.master = self.master, -1
        if master >= 0:
            os.close(master)


Open = Callable[..., Window]


@pytest.fixture
def window(as_user: Sigwrap) -> Iterator[Open]:
    opened: list[Window] = []

    def open_(*words: str | bytes, ignoring: int = 0) -> Window:
        opened.append(Window(as_user, list(words), ignoring))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


@pytest.fixture
def hearing(as_user: Sigwrap, programs: Path) -> list[str | bytes]:
    program = str(programs / "hears_hangup.py")
    return as_user.line("--no-report", "--grace", "1000", "--", *PYTHON, program)


@pytest.mark.fault(
    "terminal and streams",
    "the terminal is gone",
    sees="the command gets SIGHUP and SIGCONT as natively; status 130",
    keeps="complete",
)
def test_where_we_lead_the_session_command_is_told_as_natively(
    as_user: Sigwrap, window: Open, hearing: list[str | bytes]
) -> None:
    opened = window(*hearing)
    opened.output.until(rb"ready\n")
    opened.close()
    opened.output.until(BOTH)
    opened.leader.terminate()  # the second interrupt
    assert opened.leader.wait(PATIENCE_S) == INTERRUPTED
    assert as_user.interrupts() == ["received", "forwarded", "forwarded", "escalated"]


@pytest.mark.fault(
    "terminal and streams",
    "the terminal is gone, under nohup",
    sees="the run goes on",
    keeps="complete",
)
def test_who_is_to_survive_it_does(
    as_user: Sigwrap, window: Open, hearing: list[str | bytes]
) -> None:
    """The caller ignores SIGHUP, as under nohup."""
    opened = window(*hearing, ignoring=signal.SIGHUP)
    opened.output.until(rb"ready\n")
    opened.close()
    opened.output.until(rb"got 1\n")
    opened.leader.send_signal(signal.SIGUSR2)
    assert opened.leader.wait(PATIENCE_S) == 128 + signal.SIGUSR2
    assert as_user.interrupts() == ["forwarded", "forwarded"]


def test_a_question_ends_with_the_window(as_user: Sigwrap, window: Open) -> None:
    """The leader tells nobody, and the kernel only whoever asks."""
    as_user.policy = policy(as_user.folder, " [{name: ask, commands: [mkdir], decision: approve}]")
    words = " ".join(map(str, as_user.line("--", "dash", "-c", '"mkdir /x; read x"')))
    opened = window("sh", "-c", f"{words}; :")
    as_user.await_event("approval_requested")
    Reader(opened.master).until(rb"(?s).*\"n\": ")
    with Watch(tree(opened.leader.pid)) as watch:
        opened.close()
        watch.await_ends()
    assert "received" in as_user.interrupts()
