"""The table of run options: their names, what they set, what they mean.

`read_plain_line` reads a well-formed line by this table, without typer, whose import would be a
third of the start-up time. typer reads every other line and says what is wrong with it;
run_command.py makes typer's command from the same table.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from sigwrap.amounts import size_bytes, span_s
from sigwrap.bare.enum import Enum
from sigwrap.errors import UsageError
from sigwrap.escape import shortened
from sigwrap.mediate.interrupts import InterruptsEnd
from sigwrap.run.settings import ApprovalMode, Nested, Report, RunSettings
from sigwrap.store.location import DEFAULT_STORE
from sigwrap.tuples import NamedTuple

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


def _one_of(words: type[Enum]) -> Kind:
    return Kind("|".join(each.value for each in words), words, is_choice=True)


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
            fields[option.field] = option.kind.read(value if equals else options.pop(0))
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
    return UsageError(f"{name} needs a value", f"sigwrap {name} {option.kind.wanted} -- COMMAND")
