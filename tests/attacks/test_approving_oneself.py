"""A session that types the answer to its own question."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sigwrap.approve.typists import find_typist
from sigwrap.approve.wording import MOST_WRONG
from tests.support.harness import PYTHON, Running, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S, reader

ASK = """
  - {name: ask, commands: [uname], decision: approve, message: looked at first}
"""
# Whoever has the other end as descriptor 9 types y at what it takes for a question.
TYPES_ON_9 = "(while printf 'y\\n' >&9; do sleep 0.1; done) 2>/dev/null & /bin/uname -s"


def start(
    subject: Sigwrap, programs: Path, name: str, how: str, *words: str, command: str
) -> Running:
    path = policy(subject.folder, ASK)
    program = (*PYTHON, str(programs / "types_the_answer.py"), name, how)
    line = subject.line("-p", path, "--no-report", *words, "--", "sh", "-c", command)
    return subject.start_line([*subject.as_user(), *program, *line])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tmux: server", b"lets processes in the session type on this terminal"),
        ("screen", b"lets processes in the session type on this terminal"),
        ("zellij", b"lets processes in the session type on this terminal"),
        ("wezterm-gui", b"lets processes in the session type on this terminal"),
        ("script", b"script records this terminal to a file"),
    ],
)
def test_nobody_is_asked_where_a_multiplexer_types_or_a_recorder_writes(
    as_user: Sigwrap, programs: Path, name: str, why: bytes
) -> None:
    said = _refused(as_user, programs, name, "types", "/bin/uname -s")
    assert b"processes in the session could type the answer" in said
    assert why in said
    (denied,) = as_user.sealed_events("approval_denied")
    assert denied.payload["reason"] == "nobody"


def _refused(subject: Sigwrap, programs: Path, name: str, how: str, command: str) -> bytes:
    terminal = start(subject, programs, name, how, "--approvals", "tty", command=command)
    said, _ = terminal.communicate(timeout=PATIENCE_S)
    assert terminal.returncode == 126
    assert b"Linux" not in said
    return said


def test_on_a_terminal_of_its_own_a_person_is_asked(as_user: Sigwrap, programs: Path) -> None:
    options = ("--approvals", "tty")
    terminal = start(as_user, programs, "xterm", "types", *options, command="/bin/uname -s")
    said, _ = terminal.communicate(timeout=PATIENCE_S)
    assert b"Linux" in said
    assert terminal.returncode == 0


def test_the_way_to_answer_is_named_there(as_user: Sigwrap, programs: Path) -> None:
    terminal = start(as_user, programs, "tmux: server", "types", command="/bin/uname -s")
    said = reader(terminal.stdout)
    said.until(
        rb"cannot be answered here: tmux lets processes in the session type on this terminal"
    )
    approval_id = said.until(rb"from a login outside: sigwrap approve \w+").split()[-1].decode()
    answer = as_user.native(*as_user.line("approve", approval_id))
    assert answer.returncode == 0, answer.stderr
    said.until(rb"Linux")
    assert terminal.wait(PATIENCE_S) == 0


def test_an_approval_from_the_same_multiplexer_is_none(as_user: Sigwrap, programs: Path) -> None:
    terminal = start(as_user, programs, "tmux: server", "approves", command="/bin/uname -s")
    said = reader(terminal.stderr)
    said.until(rb"the session may have typed this itself: [^\n]*\n")
    (request,) = as_user.events("approval_requested")
    approval_id = request.payload["approval_id"]
    assert as_user.native(*as_user.line("deny", approval_id)).returncode == 0
    assert terminal.wait(PATIENCE_S) == 126
    assert said.rest() == b""  # nor that there is no such request
    (refused,) = as_user.sealed_events("control_refused")
    assert "approve" in refused.payload["peer_cmd"]
    assert not as_user.events("approval_granted")


def test_nobody_is_asked_where_the_session_has_the_other_end(
    as_user: Sigwrap, programs: Path
) -> None:
    said = _refused(as_user, programs, "xterm", "lends", TYPES_ON_9)
    assert b"drives this terminal and is in a session" in said


def test_nobody_is_asked_where_a_variable_speaks_of_a_multiplexer(as_user: Sigwrap) -> None:
    path = policy(as_user.folder, ASK)
    as_user.env["TMUX"] = "/tmp/tmux-1000/default,1,0"
    line = ("-p", path, "--no-report", "--approvals", "tty", "--", "sh", "-c", "/bin/uname; exit 3")
    terminal = as_user.on_terminal(*line)
    terminal.output.until(rb"\$TMUX is set, so a process in the session may type on this terminal")
    assert terminal.await_status() == 3
    assert b"Linux" not in terminal.output.seen


def test_without_a_wall_whoever_holds_the_other_end_is_in_reach(tmp_path: Path) -> None:
    """On a terminal of the test's own: whether the one that runs the tests has one or not."""
    reading, writing = os.pipe()
    pid, master = os.forkpty()
    if pid == 0:
        walled, unwalled = (
            find_typist(in_domain=walled, keeps=lambda _: False).typist for walled in (True, False)
        )
        os.write(writing, f"{walled} / {unwalled and unwalled.why}\n".encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as file:
        said = file.read()
    os.waitpid(pid, 0)
    os.close(master)
    assert said.startswith("None / a process in the session could take this terminal over from ")


def test_a_machine_with_many_open_descriptors_can_still_be_asked(as_user: Sigwrap) -> None:
    """Two other processes of the user hold 30,000."""
    opens = "import os; [os.dup(1) for _ in range(15_000)]; print('ready', flush=True); input()"
    limits = ("prlimit", "--nofile=16000")
    for _ in range(2):
        holder = as_user.start_line([*as_user.as_user(), *limits, *PYTHON, "-c", opens])
        reader(holder.stdout).until(rb"ready")
    path = policy(as_user.folder, ASK)
    terminal = as_user.on_terminal("-p", path, "--no-report", "--", "sh", "-c", "uname -s")
    terminal.read_question()


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_what_a_terminal_says_by_itself_is_no_yes(
    as_user: Sigwrap, programs: Path, when: str
) -> None:
    """No key is pressed: the terminal answers reports, and the session chose what edits a line."""
    go = as_user.folder / "go"
    command = (*PYTHON, str(programs / "sets_editing_keys.py"), when, str(go))
    terminal = as_user.on_terminal("-p", policy(as_user.folder, ASK), "--no-report", "--", *command)
    terminal.read_question()
    go.touch()
    terminal.output.until(rb"\x1b\[\?1\$p\x1b\[5n")
    terminal.type("\x1b[?1;2$y\x1b[0n")
    if when == "before":
        terminal.type("\n")
        terminal.output.until(rb"unknown answer")
    else:
        terminal.output.until(rb"the request is put aside and comes back later")
    terminal.press("c")
    assert terminal.await_status() == 130
    assert b"Linux" not in terminal.output.seen
    assert not as_user.events("approval_granted")


def test_a_yes_without_its_code_is_none_and_codes_are_not_guessed(as_user: Sigwrap) -> None:
    line = ("-p", policy(as_user.folder, ASK), "--no-report", "--approvals", "tty", "--")
    terminal = as_user.on_terminal(*line, "sh", "-c", "/bin/uname -s; /bin/uname -s; exit 3")
    terminal.read_question()
    before = terminal.once
    terminal.type("y\n")
    assert b"Type y and the four letters shown" in terminal.read_question()
    terminal.type(f"y {before}\n")
    assert b"unknown answer" in terminal.read_question()
    terminal.type("n\n")
    for _ in range(MOST_WRONG - 2):  # a no between them begins no new row
        terminal.output.until(rb'"n": ')
        terminal.type("y bcdf\n")
    terminal.output.until(rb"cannot be answered here: 10 wrong answers in a row")
    terminal.press("c")
    assert terminal.await_status() == 130
    assert b"Linux" not in terminal.output.seen
    assert not as_user.events("approval_granted")
