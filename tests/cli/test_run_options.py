"""The reader of a plain line and typer make the same settings of the same words."""

from __future__ import annotations

import re
import shlex

import pytest

from sigwrap.cli import run
from sigwrap.cli.app import run_app
from sigwrap.cli.run_options import RUN_OPTIONS, ValueOption, read_plain_line
from sigwrap.errors import UsageError
from sigwrap.run.settings import ApprovalMode, Nested, Report, RunSettings

LINES = [
    "-- true",
    "run -- true",
    "-p ci -- npm start",
    "--policy=my.yaml --root / --name demo --store /tmp/store -- npm start",
    "--grace 2.5 --approval-timeout 3 -- true",
    "--approvals deny --nested join -- true",
    "--grace 1m30s --approval-timeout 2d --log-size 1.5G -- true",
    "--report -- true",
    "--no-report --best-effort --durable -- sh -c true -- --grace 3",
    "--killswitch-url https://example.com/x --killswitch-fail-closed -- true",
]
NOT_PLAIN = ["", "true", "--grace", "report --json", "--grace x -- true", "--grace -1 -- true"]
NOT_PLAIN += ["--grace inf -- true", "--nope -- true", "--approvals maybe -- true", "-pci -- true"]
NOT_PLAIN += ["--report=yes -- true", "--"]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[RunSettings]:
    """Collect the runs that typer would have started."""
    settings: list[RunSettings] = []

    def start(given: RunSettings) -> int:
        settings.append(given)
        return 0

    monkeypatch.setattr(run, "start", start)
    return settings


def test_every_setting_but_the_command_has_its_option() -> None:
    assert [each.field for each in RUN_OPTIONS if each.field not in RunSettings._fields] == []
    assert {each.field for each in RUN_OPTIONS} == set(RunSettings._fields) - {
        *("command", "preset"),
        *("ready_fd", "door_fd", "rules_digest"),  # of who starts a session that is to be joined
    }


@pytest.mark.parametrize("line", LINES)
def test_both_readers_agree(line: str, started: list[RunSettings]) -> None:
    plain = read_plain_line(line.split())
    assert plain is not None
    assert run_app(line.split()) == 0
    assert started == [plain]


def test_each_option_sets_what_it_says() -> None:
    read = read_plain_line([*LINES[3].split()[:-3], *LINES[4].split()[:-2], *LINES[5].split()])
    assert read == RunSettings(
        command=("true",),
        policy="my.yaml",
        root="/",
        name="demo",
        store="/tmp/store",
        grace_s=2.5,
        approval_timeout_s=3.0,
        approvals=ApprovalMode.DENY,
        nested=Nested.JOIN,
    )
    read = read_plain_line(LINES[8].split())
    assert read == RunSettings(
        command=("sh", "-c", "true", "--", "--grace", "3"),
        report=Report.NEVER,
        best_effort=True,
        durable=True,
    )


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_what_is_not_plain_is_left_to_typer(line: str) -> None:
    assert read_plain_line(line.split()) is None


def test_an_option_whose_value_would_be_the_double_dash_is_named() -> None:
    with pytest.raises(UsageError, match="--grace needs a value"):
        read_plain_line(["--grace", "--", "true"])


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("--grace x -- true", "--grace x: not a duration (such as 45s"),
        ("--grace 9999w -- true", "--grace 9999w: more than 1000000000 seconds"),
        ("--approvals maybe -- true", "'maybe' is not one of 'auto', 'tty', 'control', 'deny'"),
        ("--policy ci --", "no command given (sigwrap --policy ci -- npm start)"),
        ("run --policy ci", "no command given (sigwrap --policy ci -- npm start)"),
        ("run", "no command given (sigwrap -- npm start)"),
        ("run --grace x", "--grace x: not a duration (such as 45s"),
        ("--name a/b -- true", "--name a/b: a session name can't contain / or end with .db\n"),
        ("--name=a.db -- true", "--name a.db: a session name can't contain / or end with .db\n"),
        ("--log-size 0 -- true", "--log-size 0: must be greater than 0"),
        (
            "--policy ci npm start",
            "-- is missing before the command (sigwrap --policy ci -- npm start)",
        ),
        ("--grace 5", "no command given (sigwrap --grace 5 -- npm start)"),
        (
            "npm start",
            'unknown command "npm". All commands: sigwrap --help. '
            "To run a program of that name: sigwrap -- npm start\n",
        ),
        ("--quiet claude", "unknown option --quiet (see sigwrap run --help)"),
        ("-p", "-p needs a value (sigwrap -p NAME|FILE -- COMMAND)"),
        ("run --grace", "--grace needs a value (see sigwrap run --help)"),
        ("policy check --root", "--root needs a value (see sigwrap policy check --help)"),
        (
            "export",
            "missing option --format. Choose from: jsonl, csv, prom, sqlite (see sigwrap export",
        ),
        ("--store logs report", "options of report go after it (see sigwrap report --help)\n"),
        ("--json policy check", "options of policy go after it (see sigwrap policy --help)\n"),
        ("--nested bad ls", "--nested: 'bad' is not one of 'refuse', 'join' (see sigwrap run"),
        ("--polcy ci ls", 'unknown option --polcy (did you mean "--policy"? see sigwrap run '),
        ("-p ci - ls", "-- is missing before the command (sigwrap -p ci -- - ls)"),
        ("--speed 3 replay last", "unknown option --speed (did you mean"),
        ("--utc reprot", 'unknown command "reprot". Did you mean "report"? To run a prog'),
        ("version", 'unknown command "version". Did you mean "--version"? To run a prog'),
        (
            "policy chekc",
            'unknown command "policy chekc". Did you mean "policy check"?\n',
        ),
        ("sessions list", "sigwrap sessions --help. To list sessions: sigwrap sessions\n"),
        ("sessions shop", "To show one session: sigwrap report shop\n"),
        ("why shop node", "node is not a pid (sigwrap report shows the pids of a session)"),
        ("reprot --help", 'Did you mean "report"? To run a program of that name: sigwrap -- rep'),
        ("-p ci reprot", "-- is missing before the command (sigwrap -p ci -- reprot)"),
        ("policy help", 'Did you mean "policy --help"?\n'),
        (
            "reprot",
            'sigwrap: unknown command "reprot". Did you mean "report"? '
            "To run a program of that name: sigwrap -- reprot\n",
        ),
    ],
)
def test_typer_says_what_is_wrong(
    line: str, complaint: str, started: list[RunSettings], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_app(line.split()) == 125
    assert complaint in capfd.readouterr().err
    assert started == []


@pytest.mark.parametrize("line", ["run --policy ci", "-p ci npm", "--grace 3", "-p ci - ls"])
def test_a_line_that_is_suggested_is_accepted(
    line: str, started: list[RunSettings], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_app(line.split()) == 125
    (suggested,) = re.findall(r"\(sigwrap (.+)\)", capfd.readouterr().err)
    assert run_app(shlex.split(suggested)) == 0
    assert len(started) == 1


@pytest.mark.parametrize("option", ["--policy", "--root", "--name", "--store"])
def test_an_empty_word_is_not_taken_for_an_option_that_was_left_out(
    option: str, started: list[RunSettings], capfd: pytest.CaptureFixture[str]
) -> None:
    """A variable that is not set gives such a word."""
    assert run_app([option, "", "--", "true"]) == 125
    assert f"{option} '': the value can't be empty" in capfd.readouterr().err
    assert started == []


@pytest.mark.parametrize("line", ["", "policy"])
def test_a_name_of_several_commands_alone_shows_them(
    line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_app(line.split()) == 0
    shown = capfd.readouterr()
    assert shown.out.startswith(f"Usage: {' '.join(['sigwrap', *line.split()])} [OPTIONS] COMMAND")
    assert shown.err == ""


@pytest.mark.parametrize("line", ["run --help", "--help-all"])
def test_the_help_has_every_option(line: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_app(line.split()) == 0
    shown = " ".join(capfd.readouterr().out.split())
    for option in RUN_OPTIONS:
        names = option.names if isinstance(option, ValueOption) else tuple(option.choices)
        assert all(name in shown for name in names)
        assert option.help in shown


def test_the_first_help_has_six_options_of_a_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_app(["--help"]) == 0
    shown = capfd.readouterr().out.partition("Options of a run:")[2].partition("Global options:")[0]
    assert len(re.findall(r"^  -", shown, re.MULTILINE)) == 6
