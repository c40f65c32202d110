"""The table of commands says what the commands say, and each command imports what it needs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from sigwrap.cli.app import ROOT, renamed, run_app
from sigwrap.cli.table import COMMANDS, HIDDEN, OLD_NAMES, POLICY

GROUPS: list[tuple[Any, dict[str, Any]]] = [
    (ROOT, COMMANDS),
    (ROOT.get_command(None, "policy"), POLICY),
]


@pytest.mark.parametrize(("group", "table"), GROUPS)
def test_the_table_has_each_command_and_its_help(group: Any, table: dict[str, Any]) -> None:
    registered = set()
    for title, rows in table.items():
        for name, (_module, line) in rows.items():
            command = group.get_command(None, name)
            assert command.name == name and command.hidden == (title == HIDDEN)
            assert command.hidden or line == command.get_short_help_str(99).rstrip(".")
            registered |= set(group._made)
    assert registered <= {name for rows in table.values() for name in rows}


@pytest.mark.parametrize(
    ("line", "others"),
    [
        ("", "typer"),
        ("--version", "typer"),
        ("--help", "sigwrap.log.catalog sigwrap.session.run sigwrap.report sigwrap.hooks"),
        ("complete -- rep", "sigwrap.log.catalog sigwrap.session.run sigwrap.report yaml"),
        ("sessions", "sigwrap.cli.control sigwrap.report.folds.summary sigwrap.hooks yaml"),
        ("policy list", "sigwrap.session.run sigwrap.hooks sigwrap.cli.policy.writing"),
        ("report", "sigwrap.session.run sigwrap.hooks sigwrap.doctor sigwrap.watch"),
    ],
)
def test_a_command_imports_no_other(line: str, others: str) -> None:
    look = (
        "import sys\nfrom sigwrap.cli.main import main\n"
        f"words = {line.split()!r}\n"
        "if words: main(words)\n"
        f"print([each for each in {others.split()!r} if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_an_old_name_is_replaced_and_named_once(capfd: pytest.CaptureFixture[str]) -> None:
    assert renamed("policy suggest x --json".split()) == "policy learn x --json".split()
    assert capfd.readouterr().err == 'sigwrap: "policy suggest" is now "policy learn"\n'
    assert renamed("--utc approvals list -q".split()) == "--utc watch --format text -q".split()
    assert capfd.readouterr().err == 'sigwrap: "approvals list" is now "watch --format text"\n'
    for line in ("report", "-p ci install", "policy", "", "--utc"):
        assert renamed(line.split()) == line.split()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_an_old_name_is_no_command_and_its_new_one_is(old: str, new: str) -> None:
    assert _is_command(new.partition(" --")[0]) and not _is_command(old)


def _is_command(path: str) -> bool:
    command: Any = ROOT
    for word in path.split():
        command = getattr(command, "commands", {}).get(word)
    return command is not None


@pytest.mark.parametrize(
    "line",
    [
        "sessions --format json",
        "sessions --json",
        "--no-pager sessions --json --utc",
        "sessions --format text --json",
    ],
)
def test_json_is_a_format_of_every_command_that_prints_it(
    line: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGWRAP_STORE", "/")
    assert run_app(line.split()) == 0
    assert capfd.readouterr().out.startswith('{\n  "schema": "sigwrap.sessions/')


def test_utc_is_global(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    made = ROOT.get_command(None, "sessions")
    monkeypatch.setattr(made, "callback", lambda **given: seen.append(given["utc"]))
    for line in ("sessions", "--utc sessions", "sessions --utc"):
        assert run_app(line.split()) == 0
    assert seen == [False, True, True]
