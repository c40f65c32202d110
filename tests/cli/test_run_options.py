"""The options of a run, and what sigwrap says about a line that is wrong."""

from __future__ import annotations

import re
import shlex

import pytest

from sigwrap.cli import run
from sigwrap.cli.main import main
from sigwrap.cli.output import note
from sigwrap.cli.run_options import RUN_OPTIONS, read_options
from sigwrap.errors import SigwrapError
from sigwrap.session.settings import ApprovalMode, Nested, Report, RunSettings


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[RunSettings]:
    """Collect runs instead of starting them."""
    settings: list[RunSettings] = []

    def start(given: RunSettings) -> int:
        settings.append(given)
        return 0

    monkeypatch.setattr(run, "start", start)
    return settings


def typed(*words: str) -> int:
    """Run sigwrap with these words, and print its error as a process does."""
    try:
        return main(list(words))
    except SigwrapError as failure:
        note(*failure.lines)
        return failure.status


def test_every_setting_but_the_command_has_its_option() -> None:
    assert [each.field for each in RUN_OPTIONS if each.field not in RunSettings._fields] == []
    assert {each.field for each in RUN_OPTIONS} == set(RunSettings._fields) - {
        *("command", "preset", "session_id"),
        *("door_fd", "rules_digest"),  # set by the start of a shared session
    }


def test_each_option_sets_what_it_says(started: list[RunSettings]) -> None:
    line = "--policy=my.yaml --root / --name demo --store /tmp/store --grace 2.5 --join-idle=1m30s"
    more = "--approval-timeout 3 --approvals deny --nested join --log-size 1.5K -- true"
    assert typed(*line.split(), *more.split()) == 0
    assert typed(*"--no-report --best-effort --durable -- sh -c true -- --grace 3".split()) == 0
    assert typed(*"run -pci npm start".split()) == typed(*"--utc run -p ci -- npm start".split())
    assert started == [
        RunSettings(
            command=("true",),
            policy="my.yaml",
            root="/",
            name="demo",
            store="/tmp/store",
            grace_s=2.5,
            join_idle_s=90.0,
            approval_timeout_s=3.0,
            approvals=ApprovalMode.DENY,
            nested=Nested.JOIN,
            log_size_bytes=1536,
        ),
        RunSettings(
            command=("sh", "-c", "true", "--", "--grace", "3"),
            report=Report.NEVER,
            best_effort=True,
            durable=True,
        ),
        RunSettings(command=("npm", "start"), policy="ci"),
        RunSettings(command=("npm", "start"), policy="ci"),
    ]


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("", {}),
        ("--name x --durable", {"name": "x", "durable": True}),
        ("--name", None),
        ("--nope", None),
        ("--durable -- true", None),
        ("true", None),
    ],
)
def test_options_alone_are_read(line: str, fields: dict[str, object] | None) -> None:
    assert read_options(line.split()) == fields


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("--grace x -- true", "--grace x: not a duration (such as 45s"),
        ("--grace -1 -- true", "--grace -1: not a duration"),
        ("--grace inf -- true", "--grace inf: not a duration"),
        ("--report=yes -- true", "--report takes no value (see sigwrap run --help)"),
        ("--", "no command given (sigwrap -- npm start)"),
        ("--grace 9999w -- true", "--grace 9999w: more than 1000000000 seconds"),
        ("--approvals maybe -- true", "--approvals maybe: not one of auto, tty, control, deny"),
        ("--policy ci --", "no command given (sigwrap --policy ci -- npm start)"),
        ("run --policy ci", "no command given (sigwrap --policy ci -- npm start)"),
        ("run", "no command given (sigwrap -- npm start)"),
        ("run --grace x", "--grace x: not a duration (such as 45s"),
        ("--name a/b -- true", "--name a/b: a session name can't contain / or end with .db (see"),
        ("--name=a.db -- true", "--name a.db: a session name can't contain / or end with .db (see"),
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
        ("-p", "-p needs a value (sigwrap -p NAME|FILE|URL -- COMMAND)"),
        ("--grace -- true", "--grace needs a value (sigwrap --grace TIME -- COMMAND)"),
        ("policy check --root", "--root needs a value (see sigwrap policy check --help)"),
        (
            "export",
            "missing option --format. Choose from: jsonl, csv, prom, sqlite, rows, otlp (see",
        ),
        ("export --format csv --signal logs", "--signal needs --format otlp\n"),
        ("--store x report", "options of report go after it (sigwrap report --store x)\n"),
        ("--json policy check", "options of policy go after it (sigwrap policy check --json)\n"),
        ("--format json sessions", "options of sessions go after it (sigwrap sessions --format "),
        ("-p ci policy explain -- ls", "(sigwrap policy explain -p ci -- ls)\n"),
        ("--help-al", 'unknown option --help-al (did you mean "--help-all"? see sigwrap'),
        ("replay --speed x", "--speed: 'x' is not a number (see sigwrap replay --help)"),
        ("serve --port x", "--port: 'x' is not a whole number (see sigwrap serve --help)"),
        ("sessions show shop", "To show one session: sigwrap report shop\n"),
        ("sessions --store /dev/null", "the store /dev/null is not a directory (choose"),
        ("signal SIGSTPO", '"SIGSTPO" is not an agent signal (did you mean "SIGSTOP"? see sigw'),
        ("--nested bad ls", "--nested bad: not one of refuse, join (see sigwrap run --help)"),
        ("--polcy ci ls", 'unknown option --polcy (did you mean "--policy"? see sigwrap run '),
        ("-p ci - ls", "-- is missing before the command (sigwrap -p ci -- - ls)"),
        ("--speed 3 replay last", "options of replay go after it (sigwrap replay last --speed 3)"),
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
def test_an_error_is_one_line_and_names_what_is_wrong(
    line: str, complaint: str, started: list[RunSettings], capfd: pytest.CaptureFixture[str]
) -> None:
    assert typed(*line.split()) == 125
    assert complaint in capfd.readouterr().err
    assert started == []


@pytest.mark.parametrize("line", ["run --policy ci", "-p ci npm", "--grace 3", "-p ci - ls"])
def test_a_line_that_is_suggested_is_accepted(
    line: str, started: list[RunSettings], capfd: pytest.CaptureFixture[str]
) -> None:
    assert typed(*line.split()) == 125
    (suggested,) = re.findall(r"\(sigwrap (.+)\)", capfd.readouterr().err)
    assert typed(*shlex.split(suggested)) == 0
    assert len(started) == 1


@pytest.mark.parametrize("option", ["--policy", "--root", "--name", "--store"])
def test_an_empty_word_is_not_taken_for_an_option_that_was_left_out(
    option: str, started: list[RunSettings], capfd: pytest.CaptureFixture[str]
) -> None:
    """A variable that is not set gives such a word."""
    assert typed(option, "", "--", "true") == 125
    assert f"{option} '': the value can't be empty" in capfd.readouterr().err
    assert started == []


@pytest.mark.parametrize("line", ["", "policy"])
def test_a_name_of_several_commands_alone_shows_them(
    line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert typed(*line.split()) == 0
    shown = capfd.readouterr()
    assert shown.out.startswith(f"Usage: {' '.join(['sigwrap', *line.split()])} [OPTIONS] COMMAND")
    assert shown.err == ""


@pytest.mark.parametrize("line", ["run --help", "--help-all"])
def test_the_help_has_every_option(line: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert typed(*line.split()) == 0
    shown = " ".join(capfd.readouterr().out.split())
    for option in RUN_OPTIONS:
        assert all(name in shown for name in option.names)
        assert option.help in shown


def test_the_first_help_has_six_options_of_a_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert typed("--help") == 0
    shown = capfd.readouterr().out.partition("Options of a run:")[2].partition("Global options:")[0]
    assert len(re.findall(r"^  -", shown, re.MULTILINE)) == 6
