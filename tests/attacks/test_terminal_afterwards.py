"""What a session leaves on the terminal that it was given, and what can be said there meanwhile."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sigwrap.kernel import procfs
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE_S, await_that

_TIOCGPTPEER = 0x5441
_TIOCGEXCL = 0x80045440
RAW = "stty raw -echo -isig tostop; printf ready; read line < go"
COOKED = "printf ready; read line < go"
REPORT = "\x1b[12;34R"
RULES = """
  - {name: no, commands: [id], decision: deny, message: not here}
  - {name: ask, commands: [uname], decision: approve}
"""


@contextmanager
def other_end(terminal: Terminal) -> Iterator[int]:
    slave = fcntl.ioctl(terminal.master, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
    try:
        yield slave
    finally:
        os.close(slave)


def is_exclusive(terminal: Terminal) -> bool:
    found = array.array("i", [0])
    with other_end(terminal) as slave:
        fcntl.ioctl(slave, _TIOCGEXCL, found, True)
    return found[0] != 0


def _shell(subject: Sigwrap, shell: str, command: str) -> tuple[Terminal, list[Any]]:
    """With a session's line as its words, and the modes of before."""
    for name in ("set", "go", "ended"):
        os.mkfifo(subject.folder / name)
        (subject.folder / name).chmod(0o666)
    line = subject.line("-p", "agent-observe", "--no-report", "--", "sh", "-c", command)
    words = ["sh", "-c", f"printf before; read x; {shell}", "sh", *line]
    terminal = subject.terminal_for([*subject.as_user(), *words])
    terminal.output.until(rb"before")
    modes = termios.tcgetattr(terminal.master)
    terminal.type("\n")
    return terminal, modes


class Left:
    """A terminal that goes through a session."""

    def __init__(self, subject: Sigwrap, command: str) -> None:
        self._subject = subject
        self.terminal, self.modes = _shell(subject, 'exec "$@"', command)
        self.terminal.output.until(rb"ready")

    def end(self, how: str) -> int:
        command = self._subject.command_pid()
        if how == "exits":
            (self._subject.folder / "go").write_bytes(b"\n")
        elif how == "is killed":
            os.kill(command, signal.SIGKILL)
        else:
            found = procfs.stat(command)
            assert found is not None
            os.kill(found.ppid, signal.SIGKILL)
        return self.terminal.await_status()

    def await_unread(self, count: int) -> None:
        unread = array.array("i", [0])

        def is_there() -> bool:
            with other_end(self.terminal) as slave:
                fcntl.ioctl(slave, termios.FIONREAD, unread, True)
            return unread[0] >= count

        await_that(is_there)

    def unread(self) -> bytes:
        """All that is there, also a line without an end."""
        with other_end(self.terminal) as slave:
            modes = termios.tcgetattr(slave)
            modes[3] &= ~termios.ICANON
            modes[6][termios.VMIN] = 0
            termios.tcsetattr(slave, termios.TCSANOW, modes)
            return os.read(slave, 4096)


@pytest.mark.parametrize("how", ["exits", "is killed", "loses its supervisor"])
def test_the_modes_are_those_of_before_and_what_the_terminal_answered_is_no_command(
    as_user: Sigwrap, how: str
) -> None:
    left = Left(as_user, RAW)
    assert termios.tcgetattr(left.terminal.master) != left.modes
    said = f"{REPORT}rm -rf x\r"
    left.terminal.type(said)
    left.await_unread(len(said))
    left.end(how)
    assert termios.tcgetattr(left.terminal.master) == left.modes
    assert left.terminal.foreground() == left.terminal.pid
    assert left.unread() == b""


def test_nor_is_it_where_the_command_kept_the_modes_and_was_killed(as_user: Sigwrap) -> None:
    left = Left(as_user, COOKED)
    left.terminal.type(f"{REPORT}rm -rf x\n")
    left.await_unread(len(REPORT))
    assert left.end("is killed") == 128 + signal.SIGKILL
    assert left.unread() == b""


def test_what_was_typed_ahead_is_there_after_an_end_of_its_own(as_user: Sigwrap) -> None:
    left = Left(as_user, COOKED)
    left.terminal.type("make\nls")
    left.terminal.output.until(rb"make\r\nls")  # the echo
    assert left.end("exits") == 0
    assert left.unread() == b"make\nls"


def test_a_job_in_the_background_restores_nothing(sigwrap: Sigwrap) -> None:
    """The modes are those of the job in the foreground."""
    os.mkfifo(sigwrap.folder / "go")
    line = sigwrap.line("-p", "agent-observe", "--no-report", "--", "sh", "-c", COOKED)
    shell = '"$@" & stty -echo; echo > go; wait $!; echo "status $?"'
    terminal = sigwrap.terminal_for(["sh", "-m", "-c", shell, "sh", *line])
    terminal.output.until(rb"status 0")
    assert not termios.tcgetattr(terminal.master)[3] & termios.ECHO


def test_what_a_pager_had_set_at_the_start_is_nothing_to_restore(as_user: Sigwrap) -> None:
    pager = "stty -icanon -echo </dev/tty; echo >set; read x; stty icanon echo </dev/tty; echo >go"
    shell = f'{{ read x <set; "$@"; }} | {{ {pager}; }}'
    terminal, modes = _shell(as_user, shell, "echo; read x <go")
    assert terminal.await_status() == 0
    assert termios.tcgetattr(terminal.master) == modes


@pytest.mark.parametrize("end", ["true", "kill -KILL $$"])
def test_a_pager_that_goes_on_keeps_its_modes_and_its_keys(as_user: Sigwrap, end: str) -> None:
    takes = "exec 3</dev/tty; read x; stty -icanon -echo <&3; printf set; read x <ended"
    goes_on = "stty -a <&3; head -c 4 <&3"
    shell = f'{{ "$@"; echo >ended; }} | {{ {takes}; {goes_on}; }}'
    terminal, _ = _shell(as_user, shell, f"echo; read x <go; {end}")
    terminal.output.until(rb"set")
    terminal.type("keys")
    (as_user.folder / "go").write_bytes(b"\n")
    terminal.output.until(rb"-icanon.* -echo ")
    terminal.output.until(rb"keys")
    assert terminal.await_status() == 0


SHELLS = (
    'echo x | "$@"',
    '{ read x <go; } | { "$@"; echo >go; }',
    '{ "$@"; echo >ended; } | { read x; read x <ended; }',
    '{ "$@"; echo >ended; } | { exec 3</dev/zero; read x; read x <ended; }',
    '{ { "$@"; echo >ended; } | { read x; read x <ended; }; } 3>&1',
    '{ read x <go; } & "$@"; echo >go; wait',
    '"$1" --no-report -- sh -c "echo; read x <go" | { read x; "$@"; echo >go; }',
)


@pytest.mark.parametrize(
    ("shell", "end"), [*((shell, "true") for shell in SHELLS), (SHELLS[2], "kill -KILL $$")]
)
def test_who_only_shares_the_job_hinders_nothing(as_user: Sigwrap, shell: str, end: str) -> None:
    """Bash mends the modes itself only after a death by a signal, which this is none of."""
    terminal, modes = _shell(as_user, shell, f"stty raw -echo </dev/tty; echo; {end}")
    terminal.await_status()
    assert termios.tcgetattr(terminal.master) == modes


def test_a_terminal_whose_output_was_stopped_goes_on(as_user: Sigwrap, programs: Path) -> None:
    command = (*PYTHON, str(programs / "silences_the_terminal.py"), "stopped", "true")
    line = as_user.line("-p", "agent-observe", "--report", "--", *command)
    shell = '"$@"; echo "status $?"'
    terminal = as_user.terminal_for([*as_user.as_user(), "sh", "-c", shell, "sh", *line])
    terminal.output.until(rb"status 0")


@pytest.mark.parametrize("how", ["exclusive", "stopped"])
def test_what_is_said_there_is_seen_and_a_person_is_asked(
    as_user: Sigwrap, programs: Path, how: str
) -> None:
    """A denial while COMMAND runs, a question, and the line at the end."""
    silences = (*PYTHON, str(programs / "silences_the_terminal.py"), how)
    command = (*silences, "sh", "-c", "/usr/bin/id; exec /bin/uname")
    terminal = as_user.on_terminal("-p", policy(as_user.folder, RULES), "--report", "--", *command)
    terminal.output.until(rb"sigwrap: denied: /usr/bin/id: not here \(rule no")
    terminal.read_question()
    terminal.approve()
    terminal.output.until(rb"Linux")
    terminal.output.until(rb"sigwrap: exit 0 after .* s, 1 action denied, 1 approved \(")
    assert terminal.await_status() == 0
    assert not is_exclusive(terminal)


def test_a_standard_error_that_nobody_reads_holds_up_no_end(
    as_user: Sigwrap, programs: Path
) -> None:
    """COMMAND has filled the pipe, and sigwrap has a line of its own to say."""
    command = (*PYTHON, str(programs / "fills_stderr.py"))
    process = as_user.start("-p", "agent-observe", "--report", "--", *command)
    assert process.wait(PATIENCE_S) == 7
