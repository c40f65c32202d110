"""COMMAND sees what it would see without sigwrap. Each test asks natively, asks again, compares."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import IS_BINARY, PYTHON, UNDER_TEST, Sigwrap
from tests.support.waiting import Pipe, reader


def _compare(sigwrap: Sigwrap, *words: str, **options: Any) -> tuple[bytes, bytes]:
    """Natively and under sigwrap; both must end well, and say nothing else."""
    native = sigwrap.native(*words, **options)
    wrapped = sigwrap.run("--", *words, **options)
    assert (native.returncode, native.stderr) == (0, b"")
    assert (wrapped.returncode, wrapped.stderr) == (0, b"")
    return native.stdout, wrapped.stdout


def _same_probe(program: Path, sigwrap: Sigwrap, *lead: str, **options: Any) -> dict[str, Any]:
    """`lead` is what runs the probe natively; what it hands on is what sigwrap gets."""
    probe = [*PYTHON, str(program), "a", "b c"]
    native = sigwrap.native(*lead, *probe, **options)
    wrapped = sigwrap.native(*lead, *sigwrap.line("--", *probe), **options)
    assert (native.returncode, wrapped.returncode) == (0, 0), wrapped.stderr
    assert wrapped.stderr == native.stderr
    expected: dict[str, Any] = json.loads(native.stdout)
    seen: dict[str, Any] = json.loads(wrapped.stdout)
    if options.get("start_new_session", True):
        # Each run was a session of its own: its own group, its own session.
        for found in (expected, seen):
            assert found["group"] == found["session"]
            del found["group"], found["session"]
    for found in (expected, seen):
        for fd, link in found["fds"].items():
            found["fds"][fd] = link.partition(":[")[0]
    assert seen == expected
    return seen


@pytest.mark.promise("transparent")
def test_everything_at_once(as_user: Sigwrap, programs: Path) -> None:
    processor = min(os.sched_getaffinity(0))

    def change() -> None:
        os.umask(0o057)
        os.nice(7)
        resource.setrlimit(resource.RLIMIT_NOFILE, (77, 500))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 21))
        os.sched_setaffinity(0, {processor})

    opening = ("bash", "-c", 'exec 7>/dev/null; exec 20</dev/null; exec "$@"', "bash")
    options = {"start_new_session": False, "preexec_fn": change}
    seen = _same_probe(programs / "probe.py", as_user, *opening, **options)
    assert (seen["group"], seen["session"]) == (os.getpgrp(), os.getsid(0))
    assert {"0", "1", "2", "7", "20"} <= set(seen["fds"])
    assert (seen["umask"], seen["affinity"]) == (0o057, [processor])
    assert seen["nice"] == min(os.nice(0) + 7, 19)


@pytest.mark.fault(
    "missing resources",
    "hard limit of 48 open files",
    sees="nothing",
    keeps="complete",
)
def test_a_low_limit_of_open_files_is_enough(sigwrap: Sigwrap, programs: Path) -> None:
    seen = _same_probe(programs / "probe.py", sigwrap, "prlimit", "--nofile=48:48")
    assert any(line.split()[:4] == ["Max", "open", "files", "48"] for line in seen["limits"])


# Environment


@pytest.mark.parametrize(
    "added",
    [
        {"LC_ALL": "C"},
        {"LANG": "C", "EMPTY": "", "TWO": "a\nb", "EQUALS": "a=b=c", "BASH_FUNC_f%%": "() { :; }"},
        {"PYTHONPATH": "/nowhere", "PYTHONUNBUFFERED": "1", "LD_LIBRARY_PATH": "/opt/nowhere"},
    ],
    ids=",".join,
)
def test_the_environment_is_the_callers_plus_the_session(
    sigwrap: Sigwrap, added: dict[str, str]
) -> None:
    for name in ("LANG", "LC_ALL"):
        sigwrap.env.pop(name, None)
    native, wrapped = _compare(sigwrap, "cat", "/proc/self/environ", env=added)
    started = sigwrap.events("session_started")[0]
    entries = wrapped.split(b"\0")
    entries.remove(f"SIGWRAP_SESSION={started.payload['session_id']}".encode())
    assert entries == native.split(b"\0")


def test_the_key_of_the_log_is_not_handed_on(as_user: Sigwrap) -> None:
    key = "correct-horse-battery"
    look = 'for p in /proc/[0-9]*; do tr "\\0" "\\n" <$p/environ; cat $p/cmdline; done 2>/dev/null'
    if as_user.user is None:
        look = "cat /proc/self/environ"  # root may look into any process
    done = as_user.run("--", "sh", "-c", f"{look}; true", env={"SIGWRAP_KEY": key})
    assert done.returncode == 0
    assert b"SIGWRAP_SESSION=" in done.stdout
    assert key.encode() not in done.stdout


# Signals


def _signal_lines(block: bytes) -> dict[str, str]:
    lines = (line.split(":\t") for line in block.decode().splitlines() if ":\t" in line)
    wanted = ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "NoNewPrivs")
    return {pair[0]: pair[1] for pair in lines if pair[0] in wanted}


def _ignoring(*numbers: int) -> Callable[[], None]:
    def change() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    return change


def _blocking(*numbers: int) -> Callable[[], None]:
    def change() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    return change


reaping = pytest.mark.skipif(
    IS_BINARY, reason="PyInstaller's bootloader can't wait for its child where SIGCHLD is ignored"
)
the_bootloader_keeps_streams = pytest.mark.skipif(
    IS_BINARY, reason="PyInstaller's bootloader keeps what it inherited open until the end"
)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_ignoring(signal.SIGCHLD), id="SIGCHLD ignored", marks=reaping),
        pytest.param(_blocking(*signal.valid_signals()), id="all blocked"),
        pytest.param(
            _ignoring(*({*range(1, 65)} - {9, 13, 19, 25, 32, 33})), id="all ignored", marks=reaping
        ),
    ],
)
def test_mask_and_dispositions(sigwrap: Sigwrap, change: Callable[[], None]) -> None:
    native, wrapped = _compare(sigwrap, "cat", "/proc/self/status", preexec_fn=change)
    expected, seen = _signal_lines(native), _signal_lines(wrapped)
    assert (expected.pop("NoNewPrivs"), seen.pop("NoNewPrivs")) == ("0", "1")  # documented
    assert seen == expected


# Streams


@the_bootloader_keeps_streams
def test_the_writer_into_stdin_sees_that_command_closed_it(sigwrap: Sigwrap) -> None:
    """And the readers of its output and of a pipe that it inherited."""
    with Pipe() as pipe:
        text = f"exec <&- >&- {pipe.writing}>&-; echo closed >&2; sleep 600"
        process = sigwrap.start("--", "bash", "-c", text, pass_fds=(pipe.writing,))
        pipe.let_go()
        assert reader(process.stderr).line() == b"closed"
        assert reader(process.stdout).rest() == b""
        assert pipe.rest() == b""
        with pytest.raises(BrokenPipeError):
            for _ in range(3):
                process.say(b"x" * 100_000)
        assert process.poll() is None


@pytest.mark.fault(
    "terminal and streams",
    "the reader of the output is gone",
    sees="SIGPIPE, status 141, as natively",
    keeps="complete",
)
def test_a_pipeline_ends_when_its_reader_does(sigwrap: Sigwrap) -> None:
    """`yes` must die of SIGPIPE, which Python ignores."""
    line = " ".join(map(str, sigwrap.line("--", "yes")))
    done = sigwrap.native("bash", "-c", f"{line} | head -1; echo ${{PIPESTATUS[*]}}")
    assert (done.stdout, done.stderr) == (b"y\n141 0\n", b"")


def test_nothing_is_printed_by_default(sigwrap: Sigwrap) -> None:
    for words in (["true"], ["sh", "-c", "kill -9 $$"], ["sh", "-c", "sleep 600 & exit 3"]):
        done = sigwrap.run("--", *words)
        assert (done.stdout, done.stderr) == (b"", b"")


def test_a_summary_in_ci_is_two_lines_on_stderr(sigwrap: Sigwrap) -> None:
    done = sigwrap.run("--", "echo", "out", env={"CI": "true"})
    assert done.stdout == b"out\n"
    end, counts = done.stderr.decode().splitlines()
    session_id = sigwrap.events()[0].payload["session_id"]
    assert end.startswith("sigwrap: exit 0 after ")
    assert end.endswith(f" s (sigwrap report {session_id[-6:]})")
    assert counts.startswith(f"sigwrap: session {session_id}: 1 command; log head ")
    head = counts.rpartition("; log head ")[2]
    assert sigwrap.native(UNDER_TEST, "verify", "--head", head).returncode == 0
    assert sigwrap.run("--no-report", "--", "true", env={"CI": "true"}).stderr == b""


# The terminal


@pytest.mark.promise("transparent")
def test_on_a_terminal_it_is_the_foreground_job(sigwrap: Sigwrap, programs: Path) -> None:
    probe = [*PYTHON, str(programs / "probe.py"), "and", "waits"]
    found = []
    for line in (probe, sigwrap.line("--no-report", "--", *probe)):
        terminal = sigwrap.terminal_for(line)
        said = terminal.output.until(rb"\{.*\} END")
        seen = json.loads(said.removesuffix(b" END"))
        assert terminal.foreground() == terminal.pid == seen.pop("group")
        assert seen.pop("session") == terminal.keeper
        assert all(entry[:2] == [True, True] for entry in seen["tty"].values())
        # Two terminals: their names differ.
        seen.pop("tty_nr")
        seen["fds"] = sorted(seen["fds"])
        found.append(seen)
        terminal.type("\n")
        assert terminal.await_status() == 0
        terminal.output.rest()
        assert b"sigwrap" not in terminal.output.seen
    native, wrapped = found
    assert wrapped == native
