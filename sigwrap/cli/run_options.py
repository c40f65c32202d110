"""The table of run options: their names, what they set, what they mean.

`read_plain_line` reads a well-formed line by this table, without typer, whose import would be a
third of the start-up time. typer reads every other line and says what is wrong with it;
run_command.py makes typer's command from the same table.
"""

from __future__ import annotations

import os

from sigwrap.amounts import size_bytes, span_s
from sigwrap.bare.enum import Enum
from sigwrap.errors import UsageError
from sigwrap.escape import shortened
from sigwrap.hints import Any
from sigwrap.mediate.interrupts import InterruptsEnd
from sigwrap.run.settings import ApprovalMode, Nested, Report, RunSettings
from sigwrap.store.location import DEFAULT_STORE
from sigwrap.tuples import NamedTuple

_NAME_BYTES_MAX = 64
_SECONDS_MAX = 1_000_000_000  # thirty years: a clock must not overflow


class ByteSize(int):
    def __new__(cls, word: str) -> ByteSize:
        try:
            size = size_bytes(word)
        except ValueError as error:
            raise ValueError(f"{word}: {error}") from error
        if not size:
            raise ValueError(f"{word}: must be greater than 0; without the option it is 1G")
        return super().__new__(cls, size)


class SessionName(str):
    def __new__(cls, word: str) -> SessionName:
        if not word:
            raise ValueError("'': the value can't be empty")
        if "/" in word or word.endswith(".db"):  # would name a log file
            raise ValueError(f"{word}: a session name can't contain / or end with .db")
        if word.startswith("-"):
            raise ValueError(f"{word}: a session name can't begin with -")
        return super().__new__(cls, word)


class JoinName(SessionName):
    def __new__(cls, word: str) -> JoinName:
        if word.startswith("."):
            raise ValueError(f"{word}: the name of a shared session can't begin with a dot")
        if len(os.fsencode(word)) > _NAME_BYTES_MAX:
            shown = shortened(word, _NAME_BYTES_MAX)
            raise ValueError(f"{shown}: longer than {_NAME_BYTES_MAX} bytes")
        SessionName(word)
        return str.__new__(cls, word)


class ValueOption(NamedTuple):
    """`--name VALUE` or `--name=VALUE`. RunSettings has the default."""

    names: tuple[str, ...]
    field: str
    help: str
    kind: type[str] | type[float] | type[Enum] | type[ByteSize] = str  # float: seconds
    metavar: str | None = None
    shows_default: bool = True

    @property
    def wanted(self) -> str:
        if issubclass(self.kind, Enum):
            return "|".join(each.value for each in self.kind)
        return self.metavar or "TEXT"


class FlagOption(NamedTuple):
    """Words without a value. `choices` has them, and what each of them sets."""

    choices: dict[str, object]
    field: str
    help: str


RUN_OPTIONS: tuple[ValueOption | FlagOption, ...] = (
    ValueOption(
        ("--policy", "-p"),
        "policy",
        "Policy that decides what the command may do",
        metavar="NAME|FILE",
    ),
    ValueOption(
        ("--root",),
        "root",
        "Project directory, ${PROJECT_ROOT} in a policy [default: current directory]",
        metavar="DIR",
        shows_default=False,
    ),
    ValueOption(
        ("--name",), "name", "Name of the session", SessionName, "NAME", shows_default=False
    ),
    ValueOption(
        ("--store",),
        "store",
        f"Directory for session logs [default: {DEFAULT_STORE}]",
        metavar="DIR",
        shows_default=False,
    ),
    ValueOption(
        ("--grace",),
        "grace_s",
        "Time between the first Ctrl+C and the force kill",
        float,
        metavar="TIME",
    ),
    ValueOption(
        ("--interrupt",),
        "interrupt",
        "Leave Ctrl+C to the command at its prompt (auto) or always (command), or end the run "
        "(sigwrap)",
        InterruptsEnd,
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
        "approvals",
        "Approve on the terminal (tty), with sigwrap approve (control) or both (auto; without a "
        "terminal or in CI: deny), or deny every request",
        ApprovalMode,
    ),
    ValueOption(
        ("--approval-timeout",),
        "approval_timeout_s",
        "Time until an unanswered approval request is denied",
        float,
        metavar="TIME",
    ),
    ValueOption(
        ("--unattended-timeout",),
        "unattended_timeout_s",
        "Time until a request is denied if no terminal, sigwrap watch, page or --notify shows it",
        float,
        metavar="TIME",
    ),
    ValueOption(
        ("--notify",),
        "notify",
        "Shell command to run outside the session for each approval request (it gets "
        "$SIGWRAP_QUESTION, $SIGWRAP_APPROVAL_ID, $SIGWRAP_RULE and $SIGWRAP_STORE), or: bell",
        metavar="COMMAND",
        shows_default=False,
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
        "nested",
        "Inside another session: refuse to run, or join its policy and log",
        Nested,
    ),
    ValueOption(
        ("--log-size",),
        "log_size_bytes",
        "Largest size of the event log [default: limits.log_size of the policy, or 1G]",
        ByteSize,
        metavar="SIZE",
        shows_default=False,
    ),
    ValueOption(
        ("--killswitch-url",),
        "killswitch_url",
        'URL to poll every 10 s; {"killed": true} kills the run (put a URL with a token in the '
        "variable) [default: $SIGWRAP_KILLSWITCH_URL]",
        metavar="URL",
        shows_default=False,
    ),
    FlagOption(
        {"--killswitch-fail-closed": True},
        "killswitch_fail_closed",
        "Kill the run as well if that URL fails three times in a row",
    ),
    ValueOption(
        ("--profile",),
        "profile",
        "Profile from sigwrap policy generate; a program that is not in it raises SIGDRIFT",
        metavar="FILE",
        shows_default=False,
    ),
    ValueOption(
        ("--join-name",),
        "join_name",
        "Run the command in the shared session of this name, and start it if necessary",
        JoinName,
        metavar="NAME",
        shows_default=False,
    ),
    ValueOption(
        ("--join-idle",),
        "join_idle_s",
        "Time until a shared session without processes ends",
        float,
        metavar="TIME",
    ),
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


def read_plain_line(words: list[str]) -> RunSettings | None:
    """Return the settings of a run; None for a line that needs typer."""
    if "--" not in words:
        return None
    end = words.index("--")
    options, command = words[:end], words[end + 1 :]
    if options[:1] == ["run"]:
        options = options[1:]
    fields = read_options(options)
    if fields is None:
        return None
    return RunSettings(command=tuple(command), **fields) if command else None  # type: ignore[arg-type]


def read_options(words: list[str]) -> dict[str, object] | None:
    """Return fields of RunSettings; None if a word is not a plain option of a run."""
    options = list(words)
    fields: dict[str, object] = {}
    while options:
        word = options.pop(0)
        if word in _FLAGS:
            field, chosen = _FLAGS[word]
            fields[field] = chosen
            continue
        name, equals, value = word.partition("=")
        if name not in _VALUES:
            return None
        option = _VALUES[name]
        if not (equals or options):
            raise _without_value(name, option)
        try:
            fields[option.field] = value_of(option, value if equals else options.pop(0))
        except ValueError:
            return None
    return fields


def leading_options(words: list[str]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Split a line without `--` into its options, each with its value, and the rest."""
    given: list[tuple[str, ...]] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        option = _VALUES.get(word)
        if option is None:
            given.append((word,))
        elif rest:
            given.append((word, rest.pop(0)))
        else:
            raise _without_value(word, option)
    return given, rest


def _without_value(name: str, option: ValueOption) -> UsageError:
    return UsageError(f"{name} needs a value", f"sigwrap {name} {option.wanted} -- COMMAND")


def value_of(option: ValueOption, word: Any) -> object:
    """Return what the word stands for; ValueError if the option has no such value."""
    if option.kind is str and not word:
        raise ValueError("'': the value can't be empty")
    return _seconds(word) if option.kind is float else option.kind(word)


def _seconds(word: str) -> float:
    try:
        value = span_s(word, or_seconds=True)
    except ValueError as error:
        raise ValueError(f"{word or repr(word)}: {error}") from error
    if value > _SECONDS_MAX:
        raise ValueError(f"{word}: more than {_SECONDS_MAX} seconds")
    return value
