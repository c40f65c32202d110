"""Neither a variable nor the current folder chooses what sigwrap imports; COMMAND gets the
variables as they are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.harness import IS_BINARY, UNDER_TEST, Sigwrap

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


def _sibling(role: str) -> str:
    return str(Path(UNDER_TEST).with_name(role))


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
    native = set(as_user.native(*shown[1:], env=variables).stdout.split(b"\0"))
    for line in (as_user.line("--no-report", *shown), [_sibling("sigwrap-forward"), *shown]):
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


def test_a_start_that_none_of_it_concerns_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sigwrap import isolation

    def not_again(*_words: object) -> None:
        raise AssertionError("restarted")

    monkeypatch.setattr(isolation, "restart", not_again)
    monkeypatch.setattr(sys, "path", ["/usr/bin", *sys.path[1:]])
    for name in isolation._CHOOSE_CODE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    isolation.isolate()
