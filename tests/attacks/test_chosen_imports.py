"""Neither a variable nor the current folder chooses what sigwrap imports; COMMAND gets the
variables as they are. What may ever be imported is imported before COMMAND may run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib.machinery import BuiltinImporter, FrozenImporter
from pathlib import Path

import pytest

from sigwrap.start import own_code
from tests.support.harness import IS_BINARY, UNDER_TEST, Sigwrap
from tests.support.policies import policy
from tests.support.processes import Roles
from tests.support.recording import prepared
from tests.support.waiting import PATIENCE_S, await_that, reader
from tests.support.web import CERTIFICATE, WebServer, page

# What sigwrap imports, and Python by itself doesn't.
MODULES = ("json", "sqlite3", "shlex", "hashlib", "socket", "yaml", "re2", "typer", "pkgutil")


@pytest.fixture
def planted(as_user: Sigwrap) -> Path:
    folder = as_user.folder / "planted"
    folder.mkdir()
    for name in MODULES:
        (folder / f"{name}.py").write_text(
            f"open({str(as_user.folder / 'attacked')!r}, 'w')\nraise SystemExit(99)\n"
        )
    return folder


def test_no_variable_does_and_the_environment_is_not_a_byte_different(
    as_user: Sigwrap, planted: Path
) -> None:
    """Of sigwrap, sigwrap-forward, and a command that only reads."""
    variables = {
        "PYTHONPATH": str(planted),
        "PYTHONPYCACHEPREFIX": str(planted),
        "PYTHONUSERBASE": str(planted),
        "LC_ALL": "C",
        "EMPTY": "",
        "ODD": "a=b\n",
    }
    shown = ("--", "sh", "-c", "env -0; exit 3")
    forward = str(Path(UNDER_TEST).with_name("sigwrap-forward"))
    native = set(as_user.native(*shown[1:], env=variables).stdout.split(b"\0"))
    for line in (as_user.line("--no-report", *shown), [forward, *shown]):
        done = as_user.native(*line, env=variables)
        assert (done.returncode, done.stderr) == (3, b"")
        more = set(done.stdout.split(b"\0")) ^ native
        assert [each.partition(b"=")[0] for each in more] in ([], [b"SIGWRAP_SESSION"])
    assert as_user.native(UNDER_TEST, "policy", "check", "ci", env=variables).returncode == 0
    assert not (as_user.folder / "attacked").exists()


@pytest.mark.skipif(IS_BINARY, reason="the binary is no module")
def test_the_current_folder_does_not(as_user: Sigwrap, planted: Path) -> None:
    python = Path(UNDER_TEST).with_name("python")
    if as_user.user is not None and not os.access(python, os.X_OK):
        pytest.skip("nobody may run the Python of this environment")
    for role in ((), ("--as", "forward")):
        line = (str(python), "-m", "sigwrap", *role, "--", "sh", "-c", "exit 3")
        done = as_user.native(*line, cwd=planted)
        assert (done.returncode, done.stderr) == (3, b"")
    assert not (as_user.folder / "attacked").exists()


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


@pytest.mark.parametrize(
    ("whom", "number"),
    [
        ("front", signal.SIGINT),
        ("front", signal.SIGTERM),
        ("front", signal.SIGKILL),
        ("supervisor", signal.SIGKILL),
    ],
)
def test_of_a_run_that_is_interrupted_or_loses_one_of_the_two(
    sigwrap: Sigwrap, noted: Path, line: Line, whom: str, number: signal.Signals
) -> None:
    words = ("--grace", "0.1", "--", "sh", "-c", "trap '' TERM; echo ready; read x")
    process = sigwrap.start_line(line(*words))
    said = reader(process.stdout)
    said.until(rb"ready")
    await_that(lambda: noted.read_text().count("sealed") == 2)
    os.kill(getattr(Roles.of(process.pid), whom), number)
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
    importers: list[object] = [BuiltinImporter, FrozenImporter, own_code._read]
    assert sys.meta_path == importers
    with pytest.raises(ModuleNotFoundError):
        import colorsys  # noqa: F401
