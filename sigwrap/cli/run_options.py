"""The table of run options: their names, what they set, what they mean.

A run is read by this table and not by typer, whose import would be a third of its start-up time.
run_command.py makes typer's `run` from the table, for the help, completion and the manual page.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from sigwrap.amounts import size_bytes, span_s
from sigwrap.bare.enum import Enum
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words, shortened
from sigwrap.hints import Any
from sigwrap.mediate.interrupts import InterruptsEnd
from sigwrap.nearest import did_you_mean
from sigwrap.run.settings import ApprovalMode, Nested, Report
from sigwrap.store.location import DEFAULT_STORE
from sigwrap.tuples import NamedTuple

_HELP = "see sigwrap run --help"
_NAME_BYTES_MAX = 64
_SECONDS_MAX = 1_000_000_000  # thirty years: a clock must not overflow


def _text(word: str) -> str:
    if not word:
        raise ValueError("'': the value can't be empty")
    return word


def _seconds(word: str) -> float:
    try:
        value = span_s(word, or_seconds=True)
    except ValueError as error:
        raise ValueError(f"{word or repr(word)}: {error}") from error
    if value > _SECONDS_MAX:
        raise ValueError(f"{word}: more than {_SECONDS_MAX} seconds")
    return value


def _size(word: str) -> int:
    try:
        size = size_bytes(word)
    except ValueError as error:
        raise ValueError(f"{word}: {error}") from error
    if not size:
        raise ValueError(f"{word}: must be greater than 0; without the option it is 1G")
    return size


def _session_name(word: str) -> str:
    if "/" in word or word.endswith(".db"):  # would name a log file
        raise ValueError(f"{word}: a session name can't contain / or end with .db")
    if word.startswith("-"):
        raise ValueError(f"{word}: a session name can't begin with -")
    return _text(word)


def _shared_name(word: str) -> str:
    if word.startswith("."):
        raise ValueError(f"{word}: the name of a shared session can't begin with a dot")
    if len(os.fsencode(word)) > _NAME_BYTES_MAX:
        shown = shortened(word, _NAME_BYTES_MAX)
        raise ValueError(f"{shown}: longer than {_NAME_BYTES_MAX} bytes")
    return _session_name(word)


class Kind(NamedTuple):
    wanted: str  # in the help
    read: Callable[[str], object] = _text  # raises ValueError if the word is no such value
    suffix: str = ""  # of the field
    is_choice: bool = False


def _one_of(kind: type[Enum]) -> Kind:
    words = [each.value for each in kind]

    def read(word: str) -> Enum:
        if word not in words:
            raise ValueError(f"{word or repr(word)}: not one of {', '.join(words)}")
        return kind(word)

    return Kind("|".join(words), read, is_choice=True)


_TIME = Kind("TIME", _seconds, "_s")


class ValueOption(NamedTuple):
    """`--name VALUE` or `--name=VALUE`. RunSettings has the default."""

    names: tuple[str, ...]
    kind: Kind
    help: str

    @property
    def field(self) -> str:
        return self.names[0][2:].replace("-", "_") + self.kind.suffix


class FlagOption(NamedTuple):
    """Words without a value. `choices` has them, and what each of them sets."""

    choices: dict[str, object]
    field: str
    help: str


RUN_OPTIONS: tuple[ValueOption | FlagOption, ...] = (
    ValueOption(
        ("--policy", "-p"), Kind("NAME|FILE"), "Policy that decides what the command may do"
    ),
    ValueOption(("--root",), Kind("DIR"), "Project directory, ${PROJECT_ROOT} in a policy"),
    ValueOption(("--name",), Kind("NAME", _session_name), "Name of the session"),
    ValueOption(
        ("--store",), Kind("DIR"), f"Directory for session logs [default: {DEFAULT_STORE}]"
    ),
    ValueOption(("--grace",), _TIME, "Time between the first Ctrl+C and the force kill"),
    ValueOption(
        ("--interrupt",),
        _one_of(InterruptsEnd),
        "Leave Ctrl+C to the command at its prompt (auto) or always (command), or end the run "
        "(sigwrap)",
    ),
    FlagOption(
        {"--die-by-signal": True},
        "die_by_signal",
        "End by the signal that killed or interrupted the command, not with status 128+N or 130",
    ),
    FlagOption(
        {"--end-with-caller": True},
        "ends_with_caller",
        "End the run within 2 s after the process that started sigwrap has ended (for CI)",
    ),
    ValueOption(
        ("--approvals",),
        _one_of(ApprovalMode),
        "Approve on the terminal (tty), with sigwrap approve (control) or both (auto; without a "
        "terminal or in CI: deny), or deny every request",
    ),
    ValueOption(
        ("--approval-timeout",), _TIME, "Time until an unanswered approval request is denied"
    ),
    ValueOption(
        ("--unattended-timeout",),
        _TIME,
        "Time until a request is denied if no terminal, sigwrap watch, page or --notify shows it",
    ),
    ValueOption(
        ("--notify",),
        Kind("COMMAND"),
        "Shell command to run outside the session for each approval request (it gets "
        "$SIGWRAP_QUESTION, $SIGWRAP_APPROVAL_ID, $SIGWRAP_RULE and $SIGWRAP_STORE), or: bell",
    ),
    FlagOption(
        {"--report": Report.ALWAYS, "--no-report": Report.NEVER},
        "report",
        "Print a line at the end of the run [default: if stderr is a terminal or $CI is set]",
    ),
    FlagOption(
        {"--verbose": True}, "verbose", "Print counts and the log's head at the end as well"
    ),
    FlagOption(
        {"--best-effort": True}, "best_effort", "Run even if system calls can't be intercepted"
    ),
    ValueOption(
        ("--nested",),
        _one_of(Nested),
        "Inside another session: refuse to run, or join its policy and log",
    ),
    ValueOption(
        ("--log-size",),
        Kind("SIZE", _size, "_bytes"),
        "Largest size of the event log [default: limits.log_size of the policy, or 1G]",
    ),
    ValueOption(
        ("--killswitch-url",),
        Kind("URL"),
        'URL to poll every 10 s; {"killed": true} kills the run (put a URL with a token in the '
        "variable) [default: $SIGWRAP_KILLSWITCH_URL]",
    ),
    FlagOption(
        {"--killswitch-fail-closed": True},
        "killswitch_fail_closed",
        "Kill the run as well if that URL fails three times in a row",
    ),
    ValueOption(
        ("--profile",),
        Kind("FILE"),
        "Profile from sigwrap policy learn --new; a program that is not in it raises SIGDRIFT",
    ),
    ValueOption(
        ("--join-name",),
        Kind("NAME", _shared_name),
        "Run the command in the shared session of this name, and start it if necessary",
    ),
    ValueOption(("--join-idle",), _TIME, "Time until a shared session without processes ends"),
    FlagOption({"--durable": True}, "durable", "Sync the log to disk before each action (slow)"),
)

_VALUES = {
    name: each for each in RUN_OPTIONS if isinstance(each, ValueOption) for name in each.names
}
_FLAGS = {
    word: (each.field, value)
    for each in RUN_OPTIONS
    if isinstance(each, FlagOption)
    for word, value in each.choices.items()
}


class RunLine(NamedTuple):
    options: list[str]  # as typed
    fields: dict[str, Any]  # of RunSettings
    rest: list[str]
    has_dashes: bool  # before the rest


def split_line(words: list[str]) -> RunLine | None:
    """Read the options at the start of a line; return None if one of them asks for help.

    UsageError says which option is wrong.
    """
    fields: dict[str, Any] = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if word in ("-h", "--help"):
            return None
        if word in _FLAGS:
            field, chosen = _FLAGS[word]
            fields[field] = chosen
            continue
        name, equals, value = word.partition("=")
        if name not in _VALUES and word[:2] in _VALUES:
            name, equals, value = word[:2], "=", word[2:]
        if name not in _VALUES:
            raise misplaced(rest) or _wrong_option(name)
        option = _VALUES[name]
        if not equals:
            if rest[:1] in ([], ["--"]):
                line = f"sigwrap {name} {option.kind.wanted} -- COMMAND"
                raise UsageError(f"{name} needs a value", line)
            value = rest.pop(0)
        try:
            fields[option.field] = option.kind.read(value)
        except ValueError as error:
            raise UsageError(f"{name} {error}", _HELP) from error
    options = words[: len(words) - len(rest)]
    has_dashes = rest[:1] == ["--"]
    return RunLine(options, fields, rest[has_dashes:], has_dashes)


def misplaced(rest: list[str]) -> UsageError | None:
    """Return the error for options before a command; None if the rest begins with no command."""
    from sigwrap.cli.table import COMMANDS  # for a mistake only

    if not rest or not any(rest[0] in rows for rows in COMMANDS.values()):
        return None
    return UsageError(f"options of {rest[0]} go after it", f"see sigwrap {rest[0]} --help")


def _wrong_option(name: str) -> UsageError:
    if name in _FLAGS:
        return UsageError(f"{name} takes no value", _HELP)
    meant = did_you_mean(name, [*_VALUES, *_FLAGS])
    return UsageError(f"unknown option {shell_words([name])}", f"{meant}{_HELP}")


def read_options(words: list[str]) -> dict[str, object] | None:
    """Return fields of RunSettings; None if the words are not options of a run alone."""
    try:
        line = split_line(words)
    except UsageError:
        return None
    return None if line is None or line.rest or line.has_dashes else line.fields
