"""Output goes through a pager on a terminal, and nowhere else."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from sigwrap.log.writer import SessionLog
from tests.support.harness import Sigwrap
from tests.support.terminal import Terminal
from tests.support.waiting import Late

LINES = 400
_TIMES = 30
REPLAY = ("replay", "--instant")


@pytest.fixture
def log(sigwrap: Sigwrap) -> Sigwrap:
    """Make a session of 400 events, one of which is hostile."""
    log = SessionLog.create(str(sigwrap.store), "s1")
    started = {"session_id": "s1", "command": ["evil\x1b]0;title\x07\x1b[2J"]}
    log.append("session_started", 1, started, time.time_ns())
    for number in range(2, LINES + 1):
        payload = {"path": "/bin/ls", "argv": ["ls", f"n{number}"], "ppid": 1, "decision": "audit"}
        log.append("exec_audited", number, payload, time.time_ns())
    log.close()
    return sigwrap


def tool(sigwrap: Sigwrap, text: str) -> str:
    """Write a program that serves as a pager, and return its path."""
    path = sigwrap.folder / "pager"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def start(
    sigwrap: Sigwrap, words: tuple[str, ...], variables: dict[str, str], rows: int = 24
) -> Terminal:
    return sigwrap.on_terminal(*words, size=(rows, 80), env={"TERM": "xterm", **variables})


def test_ctrl_c_is_the_pager_s(log: Sigwrap) -> None:
    if shutil.which("less") is None:
        pytest.skip("needs less")
    terminal = start(log, REPLAY, {})
    terminal.output.through(rb"\r\n:")
    terminal.press("c")
    terminal.output.through(rb"\x07")
    for _ in range(_TIMES):  # what is typed before it has a prompt again, it drops
        terminal.type("G")
        try:
            # It may break what is farther right.
            terminal.output.through(rb"\n +400 ", within_s=1)
        except Late:
            continue
        break
    else:
        raise Late("less shows nothing after the key")
    terminal.type("q")
    assert terminal.await_status() == 0


def test_sigwrap_s_own_variable_comes_first(log: Sigwrap) -> None:
    line = f"{tool(log, 'echo paged; wc -l')} with words"
    for variables in ({"SIGWRAP_PAGER": line, "PAGER": "cat"}, {"PAGER": line}):
        terminal = start(log, REPLAY, variables)
        assert b"paged\r\n400" in terminal.output.through(rb"\d+\r\n")
        assert terminal.await_status() == 0


def test_a_pager_gets_escaped_text_and_colours_and_how_to_show_them(log: Sigwrap) -> None:
    saved = log.folder / "saved"
    pager = tool(log, f'cat >{saved}; echo "$LESS" >>{saved}')
    for command in (REPLAY, ("report",), ("sessions",)):
        terminal = start(log, command, {"PAGER": pager}, rows=2)
        assert terminal.await_status() == 0
        text = saved.read_text()
        assert text.endswith("FRX\n")
        plain = text.replace("\x1b[1m", "").replace("\x1b[1;31m", "").replace("\x1b[32m", "")
        assert "\x1b" not in plain.replace("\x1b[0m", "") and "\x07" not in plain
        assert ("\x1b" in text) == (command != REPLAY)


def test_the_user_s_own_less_shows_colours_too(log: Sigwrap) -> None:
    saved = log.folder / "saved"
    pager = tool(log, f'cat >/dev/null; echo "$LESS" >{saved}')
    terminal = start(log, REPLAY, {"PAGER": pager, "LESS": "-iM"})
    assert terminal.await_status() == 0
    assert saved.read_text() == "-R -iM\n"


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        ((*REPLAY, "--no-pager"), {}),
        (REPLAY, {"TERM": "dumb"}),
        (REPLAY, {"SIGWRAP_PAGER": ""}),
        (REPLAY, {"SIGWRAP_PAGER": "cat"}),
    ],
)
def test_without_a_pager(log: Sigwrap, words: tuple[str, ...], variables: dict[str, str]) -> None:
    pager = tool(log, "echo paged; cat >/dev/null")
    terminal = start(log, words, {"PAGER": pager, **variables})
    said = terminal.output.through(rb"n400")
    assert terminal.await_status() == 0
    assert b"paged" not in said


def test_into_a_pipe_nothing_is_paged(log: Sigwrap) -> None:
    done = log.run(*REPLAY, env={"PAGER": tool(log, "echo paged"), "TERM": "xterm"})
    assert b"paged" not in done.stdout and len(done.stdout.splitlines()) == LINES


def test_a_pager_that_isn_t_there_is_named_and_done_without(log: Sigwrap) -> None:
    terminal = start(log, REPLAY, {"SIGWRAP_PAGER": "no-such-pager -x"})
    said = terminal.output.through(rb"n400")
    assert b"sigwrap: $SIGWRAP_PAGER: no such program: 'no-such-pager -x'" in said
    assert terminal.await_status() == 0


def test_a_pager_that_ends_at_once_is_no_error(log: Sigwrap) -> None:
    terminal = start(log, REPLAY, {"PAGER": tool(log, "exec 0<&-; echo seen")})
    said = terminal.output.through(rb"seen\r\n")
    assert terminal.await_status() == 0
    assert b"Traceback" not in said + terminal.output.rest()


def test_no_less_is_no_error(log: Sigwrap, tmp_path: Path) -> None:
    terminal = start(log, REPLAY, {"PATH": str(tmp_path), "PAGER": "also-missing"})
    terminal.output.through(rb"n400")
    assert terminal.await_status() == 0
