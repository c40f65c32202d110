"""What sigwrap may ever import is imported before COMMAND may run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib.machinery import BuiltinImporter, FrozenImporter
from pathlib import Path

import pytest

from sigwrap.start import own_code
from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.processes import Roles
from tests.support.recording import prepared
from tests.support.waiting import PATIENCE_S, await_that, reader
from tests.support.web import CERTIFICATE, WebServer, page

NOTES = Path(__file__).parent / "programs" / "notes_late_imports.py"
MANY = """
  - {name: ask-first, commands: [uname], decision: approve}
  - {name: no-id, commands: [id], decision: deny, message: no}
  - {name: by-pattern, commands: [ls], args_patterns: ["^-[a-z]+$"], decision: deny}
  - {name: other, commands: [date], decision: redirect, redirect_to: {command: /bin/true}}
"""

Line = Callable[..., list[str]]


@pytest.fixture
def noted(sigwrap: Sigwrap) -> Path:
    return sigwrap.folder / "noted"


@pytest.fixture
def line(noted: Path) -> Line:
    def line(*words: str) -> list[str]:
        return [sys.executable, str(NOTES), str(noted), *words]

    return line


def _nothing_late(noted: Path) -> None:
    """Both processes have come to that point, and neither has imported anything since."""
    assert noted.read_text().splitlines() == ["sealed", "sealed"]


def test_of_a_run_with_decisions_of_each_kind(sigwrap: Sigwrap, noted: Path, line: Line) -> None:
    rules = policy(sigwrap.folder, MANY)
    script = "id; ls -la; date; kill -CONT $$; /nowhere/x; ulimit -t 100; uname; true & exit 3"
    terminal = sigwrap.terminal_for(
        line("-p", rules, "--report", "--", "sh", "-c", script), env={"SIGWRAP_DEBUG": "1"}
    )
    terminal.read_question()
    terminal.type("n\n")
    assert terminal.await_status() == 3
    _nothing_late(noted)


def test_of_a_recorded_command(sigwrap: Sigwrap, noted: Path, line: Line) -> None:
    words = prepared(sigwrap, "#!/bin/sh\ncat; printf '\\377'\n")
    process = sigwrap.start_line(line(*words, "./tool"))
    out, _ = process.communicate(b"in\n", PATIENCE_S)
    assert out == b"in\n\xff"
    _nothing_late(noted)


@pytest.mark.parametrize(
    ("secure", "url"),
    [
        (True, "https://localhost:{port}/"),
        (False, "https://localhost:{port}/"),
        (False, "https://no-such-host.invalid/"),
        (False, "file:///dev/null"),
    ],
)
def test_of_a_run_with_a_remote_kill_switch(
    sigwrap: Sigwrap, noted: Path, line: Line, secure: bool, url: str
) -> None:
    """A first poll and a second one, whatever comes of them."""
    server = WebServer(page(b'{"killed": false, "reason": "\xc3\xbc"}'), secure=secure)
    url = url.format(port=server.port)
    process = sigwrap.start_line(
        line("--killswitch-url", url, "--", "sh", "-c", "echo ready; read x; exit 3"),
        env={"SSL_CERT_FILE": str(CERTIFICATE)},
    )
    reader(process.stdout).until(rb"ready")
    if f":{server.port}/" in url and url.startswith("https" if secure else "http:"):
        server.await_requests(2)
    else:
        sigwrap.await_event("killswitch_missed")
    process.say(b"\n")
    assert process.wait(PATIENCE_S) == 3
    server.close()
    _nothing_late(noted)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_of_an_interrupted_run(
    sigwrap: Sigwrap, noted: Path, line: Line, number: signal.Signals
) -> None:
    process = sigwrap.start_line(
        line("--grace", "0.1", "--", "sh", "-c", "trap '' TERM; echo ready; read x")
    )
    reader(process.stdout).until(rb"ready")
    process.send_signal(number)
    process.wait(PATIENCE_S)
    _nothing_late(noted)


@pytest.mark.parametrize("victim", ["front", "supervisor"])
def test_of_what_is_left_when_the_other_is_killed(
    sigwrap: Sigwrap, noted: Path, line: Line, victim: str
) -> None:
    process = sigwrap.start_line(line("--", "sh", "-c", "echo ready; read x"))
    said = reader(process.stdout)
    said.until(rb"ready")
    await_that(lambda: noted.read_text().count("sealed") == 2)
    os.kill(getattr(Roles.of(process.pid), victim), signal.SIGKILL)
    said.rest()
    process.wait(PATIENCE_S)
    _nothing_late(noted)


def test_of_an_internal_error(sigwrap: Sigwrap, noted: Path, line: Line) -> None:
    """Its line, and the traceback that SIGWRAP_DEBUG asks for."""
    store = sigwrap.folder / "no-store"
    store.write_text("")
    process = sigwrap.start_line(line("--store", str(store), "--", "true"))
    _, said = process.communicate(b"", PATIENCE_S)
    assert process.returncode == 125
    assert b"Traceback" not in said
    assert noted.read_text() == "sealed\n"  # the supervisor had nothing to run


def test_an_import_that_was_forgotten_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    own_code.import_nothing_more()
    importers: list[object] = [BuiltinImporter, FrozenImporter, own_code._kept]
    assert sys.meta_path == importers
    with pytest.raises(ModuleNotFoundError):
        import colorsys  # noqa: F401
