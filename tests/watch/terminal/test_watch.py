"""`sigwrap watch` on a real terminal, over real sessions."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from sigwrap.watch.terminal.state import READ_WITHIN_S
from tests.support.harness import PYTHON, UNDER_TEST, Running, Sigwrap
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE_S, await_that, reader

pytestmark = pytest.mark.tier("ci")
RULES = """version: 1
name: mine
command_rules:
  - {name: ask-uname, commands: [uname], decision: approve, message: ask the team first}
  - {name: rest, commands: ["*"], decision: allow}
"""


def policy(subject: Sigwrap) -> str:
    path = subject.folder / "mine.yaml"
    path.write_text(RULES)
    return str(path)


def asks(subject: Sigwrap, *options: str, text: str = "uname -a; echo status $?") -> Running:
    line = ("-p", policy(subject), "--name", "agent", "--no-report", *options, "--")
    return subject.start(*line, "sh", "-c", text, stdin=subprocess.DEVNULL)


def watch(subject: Sigwrap, *words: str) -> Terminal:
    line = [*subject.as_user(), UNDER_TEST, *(words or ("watch",))]
    terminal = subject.terminal_for(line, env={"TERM": "xterm"}, size=(24, 100))
    terminal.output.until(rb"sigwrap watch   ")
    return terminal


READ_S = READ_WITHIN_S + 0.1  # an answer that comes faster is none: no event to wait for


def press_once_read(terminal: Terminal, key: str, said: bytes, read_s: float = READ_S) -> None:
    """Press a key as a user who has read the request."""
    terminal.output.until(rb"wants to run uname")
    too_early = b"this request is new: read it"
    came = too_early
    while came == too_early:
        time.sleep(read_s)
        terminal.type(key)
        came = terminal.output.until(too_early + b"|" + said)


def approved(subject: Sigwrap) -> bool:
    """What waits, by its user; whether anything did."""
    return subject.native(UNDER_TEST, "approve", "--yes").returncode == 0


def leave(terminal: Terminal) -> None:
    terminal.type("q")
    terminal.output.until(rb"\x1b\[\?1049l")
    assert terminal.await_status() == 0


@pytest.mark.promise("watch")
def test_a_no_with_a_message_that_the_caller_reads_with_the_rule_s(sigwrap: Sigwrap) -> None:
    terminal = watch(sigwrap)
    process = asks(sigwrap)
    reader(process.stderr).line()
    terminal.output.until(rb"wants to run uname")
    terminal.type("m")
    terminal.output.until(rb"message: ")
    terminal.type("use hostname\r")
    said = reader(process.stderr).line()
    assert b"ask the team first; request denied: use hostname" in said
    leave(terminal)
    assert process.wait(PATIENCE_S) == 0


def test_the_terminal_is_left_as_it_was_whatever_ends_it(sigwrap: Sigwrap) -> None:
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
    for end in ("ctrl-c", "suspend", *signals):
        terminal = watch(sigwrap)
        if isinstance(end, signal.Signals):
            os.kill(terminal.foreground(), end)
        elif end == "suspend":
            terminal.press("z")
            terminal.output.until(rb"\x1b\[\?1049l")
            terminal.await_stop()
            terminal.continue_job()
            terminal.output.until(rb"\x1b\[\?1049h")
            terminal.output.until(rb"sigwrap watch")
        if isinstance(end, str):
            terminal.press("c")
        terminal.output.until(rb"\x1b\[\?25h\x1b\[\?1049l")
        status = 128 + end if isinstance(end, signal.Signals) else 0
        assert terminal.await_status() == status


def test_without_a_terminal_it_lists_the_requests_and_ends(sigwrap: Sigwrap) -> None:
    def native(*words: str) -> subprocess.CompletedProcess[bytes]:
        return sigwrap.native(UNDER_TEST, *words)

    assert native("watch").stdout == b"no approval requests\n"
    process = asks(sigwrap, "--approvals", "control", text="uname")
    reader(process.stderr).line()
    (listed,) = json.loads(native("watch", "--format", "json").stdout)["requests"]
    for words in (("watch",), ("watch", "--format", "text"), ("watch", "--full", listed["id"])):
        assert b"wants to run uname" in native(*words).stdout
    assert approved(sigwrap)
    assert process.wait(PATIENCE_S) == 0
    mistyped = native("watch", "--store", str(sigwrap.folder / "stroe"))
    assert (mistyped.returncode, b"stroe" in mistyped.stderr) == (125, True)
    unseen = native("watch", "--notify", "bell")
    assert (unseen.returncode, b"--notify needs a terminal" in unseen.stderr) == (125, True)


def test_the_old_names_of_the_list(sigwrap: Sigwrap) -> None:
    process = asks(sigwrap, "--approvals", "control", text="uname")
    reader(process.stderr).line()
    for words in (("approvals",), ("approvals", "list")):
        text = sigwrap.native(UNDER_TEST, *words).stdout
        assert b"wants to run uname" in text
        document = json.loads(sigwrap.native(UNDER_TEST, *words, "--json").stdout)
        (listed,) = document["requests"]
        assert document.keys() == {"schema", "requests", "more", "unreachable"}
    full = sigwrap.native(UNDER_TEST, "approvals", "--full", listed["id"], "--json")
    assert json.loads(full.stdout)["requests"][0]["id"] == listed["id"]
    terminal = watch(sigwrap, "approvals", "--watch")
    terminal.output.until(rb"wants to run uname")
    leave(terminal)
    assert approved(sigwrap)
    process.wait(PATIENCE_S)


def test_no_process_in_a_session_watches(as_user: Sigwrap) -> None:
    terminal = as_user.on_terminal("--", UNDER_TEST, "watch")
    terminal.output.until(rb"processes in a session can't watch or approve")


def test_a_program_reads_lines_of_json(sigwrap: Sigwrap) -> None:
    words = [*sigwrap.as_user(), UNDER_TEST, "watch", "--format", "jsonl"]
    watching = sigwrap.start_line(words)
    lines = reader(watching.stdout)
    assert json.loads(lines.line())["sessions"] == []
    process = asks(sigwrap, "--approvals", "control")
    while not (board := json.loads(lines.line())).get("waiting"):
        continue
    (waiting,) = board["waiting"]
    assert (waiting["what"], waiting["rule"]) == ("uname -a", "ask-uname")
    assert sigwrap.native(UNDER_TEST, "deny").returncode == 0
    assert process.wait(PATIENCE_S) == 0
    found: list[str] = []
    while "exec_denied" not in found:
        document = json.loads(lines.line())
        found += [each["type"] for each in document.get("events", [])]
    watching.stdout.close()
    asks(sigwrap, text="true").wait(PATIENCE_S)
    watching.wait(PATIENCE_S)


def test_an_answer_needs_no_id_where_one_waits(sigwrap: Sigwrap) -> None:
    def approve() -> subprocess.CompletedProcess[bytes]:
        return sigwrap.native(UNDER_TEST, "approve", "--store", str(sigwrap.store))

    assert b"does not exist" in approve().stderr
    first = asks(sigwrap, "--approvals", "control", text="uname")
    reader(first.stderr).line()
    second = asks(sigwrap, "--approvals", "control", text="uname")
    reader(second.stderr).line()
    several = approve()
    assert several.returncode == 125
    assert re.search(rb"2 approval requests are open: give an id \(\w{6}, \w{6}; ", several.stderr)
    first.terminate()
    first.wait(PATIENCE_S)
    unseen = approve()  # another request could be open by now
    assert (unseen.returncode, b"no terminal to confirm on" in unseen.stderr) == (125, True)
    assert approved(sigwrap)
    assert second.wait(PATIENCE_S) == 0
    assert b"no approval requests" in approve().stderr


@pytest.mark.promise("approvals from elsewhere")
def test_without_an_id_it_is_shown_and_asked_about(sigwrap: Sigwrap) -> None:
    process = asks(sigwrap, "--approvals", "control", text="uname")
    reader(process.stderr).line()
    line = [UNDER_TEST, "approve", "--store", str(sigwrap.store)]
    for answer in ("n", "y"):  # after a no to it, it still waits
        terminal = sigwrap.terminal_for(line, size=(24, 100))
        terminal.output.until(rb"wants to run uname[^?]*rule ask-uname[^?]*approve this request\?")
        terminal.type(f"{answer}\n")
        assert (terminal.await_status() == 0) == (answer == "y")
    assert process.wait(PATIENCE_S) == 0


# Requests that a full-screen program hides


def raw(subject: Sigwrap, programs: Path, *options: str) -> Terminal:
    """A full-screen program that runs something at the key r, and shows what it says."""
    line = ("-p", policy(subject), "--no-report", *options, "--", *PYTHON)
    terminal = subject.on_terminal(*line, str(programs / "full_screen.py"))
    terminal.output.until(rb"SCREEN")
    return terminal


@pytest.mark.parametrize("key", ["r", "R"])
def test_a_full_screen_is_left_alone_and_the_wait_is_short(
    sigwrap: Sigwrap, programs: Path, key: str
) -> None:
    """r: its output is a pipe. R: it is the screen itself."""
    terminal = raw(sigwrap, programs, "--unattended-timeout", "1")
    terminal.type(key)
    terminal.output.until(rb"STATUS 126")
    screen = terminal.output.seen
    assert b"wants to run" not in screen
    said = re.findall(rb"SAID ([^\r]*)", screen)
    if key == "r":
        assert re.search(rb"until [\d:]{8}: sigwrap approve .*, or sigwrap watch --store", said[0])
        assert b"no answer within 1 s, and no approver was watching" in said[1]
    else:
        assert screen.count(b"sigwrap: denied: uname") == 1  # what was denied, as always
    (expired,) = sigwrap.events("approval_expired")
    assert expired.payload["waited_ms"] >= 1000
    terminal.type("q")
    assert terminal.await_status() == 0


def test_after_an_answer_there_is_time_again(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = raw(sigwrap, programs, "--unattended-timeout", "60")
    terminal.type("r")
    sigwrap.await_event("approval_requested")
    assert approved(sigwrap)
    terminal.output.until(rb"STATUS 0")
    terminal.type("r")
    await_that(lambda: len(sigwrap.events("approval_requested")) == 2)
    terminal.output.until(rb"key")
    listed = json.loads(sigwrap.native(UNDER_TEST, "watch", "--format", "json").stdout)
    assert listed["requests"][0]["expires_in_s"] > 200
    assert approved(sigwrap)
    terminal.output.until(rb"STATUS 0")
    terminal.type("q")


def test_a_watching_user_is_asked_instead_of_a_full_screen(
    sigwrap: Sigwrap, programs: Path
) -> None:
    watching = watch(sigwrap)
    terminal = raw(sigwrap, programs, "--unattended-timeout", "1")
    terminal.type("r")
    press_once_read(watching, "y", rb"approved", read_s=1.5)  # longer than without an approver
    terminal.output.until(rb"STATUS 0")
    assert b"wants to run" not in terminal.output.seen
    terminal.type("q")
    leave(watching)


# Who is told


def told(subject: Sigwrap) -> tuple[str, Path]:
    path = subject.folder / "told"
    line = 'printf "%s\\n" "$SIGWRAP_APPROVAL_ID $SIGWRAP_RULE $SIGWRAP_QUESTION" >> '
    return f"{line}{path}", path


@pytest.mark.parametrize("by", ["run", "watch"])
def test_a_command_tells_of_a_question(sigwrap: Sigwrap, by: str) -> None:
    command, path = told(sigwrap)
    notify = ("--notify", command)
    terminal = watch(sigwrap, "watch", *notify) if by == "watch" else None
    process = asks(sigwrap, *(notify if by == "run" else ()), text="uname '--token=abcdefgh'")
    await_that(lambda: path.exists() and path.read_text().endswith("\n"))
    (asked,) = sigwrap.events("approval_requested")
    approval_id = asked.payload["approval_id"]
    line = f"{approval_id} ask-uname sh wants to run: uname '--token=***'\n"
    assert path.read_text() == line
    assert sigwrap.native(UNDER_TEST, "approve", approval_id).returncode == 0
    process.wait(PATIENCE_S)
    if terminal is not None:
        leave(terminal)


def test_what_tells_is_outside_of_the_session_without_what_is_kept_from_it(
    as_user: Sigwrap,
) -> None:
    """It may approve, even; and it has no terminal to write on."""
    store = as_user.store
    out = as_user.folder / "out"
    line = f"env >{out}.env; exec >{out} 2>&1; tty; {UNDER_TEST} approve --yes --store {store}"
    (as_user.folder / "kept.yaml").write_text(
        RULES.replace("command_rules:", "env_policy: {remove: [MY_SECRET]}\ncommand_rules:")
    )
    options = ("-p", str(as_user.folder / "kept.yaml"), "--no-report", "--notify", line, "--")
    done = as_user.run(*options, "uname", env={"MY_SECRET": "sesame"}, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert out.read_text().startswith("not a tty\n")
    assert "sesame" not in Path(f"{out}.env").read_text()


def test_one_that_fails_is_told_of_at_the_end(sigwrap: Sigwrap) -> None:
    process = asks(sigwrap, "--notify", "no-such-command-here")
    reader(process.stderr).line()
    await_that(lambda: approved(sigwrap))
    assert process.wait(PATIENCE_S) == 0
    assert b"the --notify command failed with status 127" in process.stderr.read()


@pytest.mark.parametrize(
    ("notify", "said"),
    [("exit 3", b""), ("bell", b"--notify bell: there is no terminal")],
    ids=["a command that fails", "a bell that no terminal rings"],
)
def test_a_failed_notification_leaves_no_time_to_answer(
    sigwrap: Sigwrap, notify: str, said: bytes
) -> None:
    options = ("--approvals", "control", "--unattended-timeout", "1", "--notify", notify)
    process = asks(sigwrap, *options, text="uname")
    assert process.wait(PATIENCE_S) == 126
    assert said in process.stderr.read()
    (expired,) = sigwrap.events("approval_expired")
    assert expired.payload["waited_ms"] < 20_000


def test_the_bell(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = raw(sigwrap, programs, "--notify", "bell")
    assert b"\a" not in terminal.output.seen
    terminal.type("r")
    terminal.output.until(rb"\x07")
    assert approved(sigwrap)
    terminal.output.until(rb"STATUS 0")
    terminal.type("q")
