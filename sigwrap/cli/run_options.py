"""The options of a run, once: what they are called, what they set, what they mean.

`read_plain_line` reads a well-formed line by this table, without typer, whose import would be a
third of the start-up time. Every other line is typer's, which explains what is wrong;
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
_SECONDS_MAX = 1_000_000_000  # thirty years; a clock's end would not be far


class ByteSize(int):
    def __new__(cls, word: str) -> ByteSize:
        try:
            size = size_bytes(word)
        except ValueError as error:
            raise ValueError(f"{word}: {error}") from error
        if not size:
            raise ValueError(f"{word}: a log needs room; left out, it has 1G")
        return super().__new__(cls, size)


class JoinName(str):
    def __new__(cls, word: str) -> JoinName:
        if not word:
            raise ValueError("'': an empty word names nothing")
        if "/" in word or word.startswith("."):
            raise ValueError(f"{word}: it names a file, so it has no / and begins with no dot")
        if word.startswith("-"):
            raise ValueError(f"{word}: it looks like an option")
        if len(os.fsencode(word)) > _NAME_BYTES_MAX:
            shown = shortened(word, _NAME_BYTES_MAX)
            raise ValueError(f"{shown}: longer than {_NAME_BYTES_MAX} bytes")
        return super().__new__(cls, word)


class ValueOption(NamedTuple):
    """`--name VALUE` or `--name=VALUE`; the default is that of the field in RunSettings."""

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
    """A word without a value; `choices` has the words, and what each of them sets."""

    choices: dict[str, object]
    field: str
    help: str


RUN_OPTIONS: tuple[ValueOption | FlagOption, ...] = (
    ValueOption(("--policy", "-p"), "policy", "What is allowed.", metavar="NAME|FILE"),
    ValueOption(
        ("--root",),
        "root",
        "The workspace, ${PROJECT_ROOT} in a policy; by default the current folder.",
        metavar="DIR",
        shows_default=False,
    ),
    ValueOption(("--name",), "name", "A label for the session.", str, "NAME", shows_default=False),
    ValueOption(
        ("--store",),
        "store",
        f"Where the log goes: {DEFAULT_STORE}.",
        metavar="DIR",
        shows_default=False,
    ),
    ValueOption(
        ("--grace",),
        "grace_s",
        "From the first Ctrl+C to SIGKILL; a number alone is seconds.",
        float,
        metavar="TIME",
    ),
    ValueOption(
        ("--interrupt",),
        "interrupt",
        "Whose Ctrl+C is: COMMAND's, at its prompt or always; or it always ends the run.",
        InterruptsEnd,
    ),
    FlagOption(
        {"--die-by-signal": True},
        "die_by_signal",
        "Where COMMAND died of a signal or was interrupted, end by that signal, as a shell or "
        "service manager may want to see it, instead of the status 128+N or 130.",
    ),
    FlagOption(
        {"--end-with-caller": True},
        "ends_with_caller",
        "Where whoever started sigwrap ends, end the run within two seconds, as by SIGTERM: for "
        "CI, whose runner may signal only the shell of a step.",
    ),
    ValueOption(
        ("--approvals",),
        "approvals",
        "Who answers where a rule asks: the terminal or sigwrap approve (where there is no "
        "terminal, or $CI is set, it is no); the terminal; sigwrap approve; nobody.",
        ApprovalMode,
    ),
    ValueOption(
        ("--approval-timeout",),
        "approval_timeout_s",
        "Without an answer by then, such as 90s or 10m, it is no.",
        float,
        metavar="TIME",
    ),
    ValueOption(
        ("--unattended-timeout",),
        "unattended_timeout_s",
        "The same where nobody would see the question: it isn't on the terminal, no sigwrap watch "
        "or page is open, --notify tells nobody, and nobody has answered in this session.",
        float,
        metavar="TIME",
    ),
    ValueOption(
        ("--notify",),
        "notify",
        "Run where something waits for an answer, by sh and outside of the session, with "
        "$SIGWRAP_QUESTION, $SIGWRAP_APPROVAL_ID, $SIGWRAP_RULE and $SIGWRAP_STORE; or: bell. As "
        "long as it succeeds, somebody is told, and --approval-timeout counts.",
        metavar="COMMAND",
        shows_default=False,
    ),
    FlagOption(
        {"--report": Report.ALWAYS, "--no-report": Report.NEVER},
        "report",
        "A summary on stderr at the end; by default where stderr is a terminal, "
        "and one line where $CI is set.",
    ),
    FlagOption({"--best-effort": True}, "best_effort", "Run even where interception can't be had."),
    ValueOption(
        ("--nested",),
        "nested",
        "Inside another session: refuse; or join it, and run under its rules and in its log.",
        Nested,
    ),
    ValueOption(
        ("--log-size",),
        "log_size_bytes",
        "How large the event log may get, before the policy's limits.log_size; 1G by default.",
        ByteSize,
        metavar="SIZE",
        shows_default=False,
    ),
    ValueOption(
        ("--killswitch-url",),
        "killswitch_url",
        'Asked every 10 s; the run is killed where it answers {"killed": true}. https, file, or '
        "http to this machine; by default $SIGWRAP_KILLSWITCH_URL. A token belongs in that "
        "variable: others can read this line.",
        metavar="URL",
        shows_default=False,
    ),
    FlagOption(
        {"--killswitch-fail-closed": True},
        "killswitch_fail_closed",
        "Kill the run also where that URL gives no answer three times in a row.",
    ),
    ValueOption(
        ("--profile",),
        "profile",
        "What sigwrap policy generate has made: a program that isn't in it raises SIGDRIFT.",
        metavar="FILE",
        shows_default=False,
    ),
    ValueOption(
        ("--join-name",),
        "join_name",
        "Run COMMAND in the session of this name, with all others that are given it; the first one "
        "starts it, and what a command leaves running goes on in it.",
        JoinName,
        metavar="NAME",
        shows_default=False,
    ),
    ValueOption(
        ("--join-idle",),
        "join_idle_s",
        "Such a session ends when nothing has run in it for so long.",
        float,
        metavar="TIME",
    ),
    FlagOption({"--durable": True}, "durable", "Sync the log to disk before each effect; slow."),
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
    """None where it takes typer to say what is meant, or what is wrong."""
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
    """Fields of RunSettings; None where a word is no plain option of a run."""
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


class Given(NamedTuple):
    """An option as it was typed."""

    words: tuple[str, ...]
    name: str
    is_of_a_run: bool


def leading_options(words: list[str]) -> tuple[list[Given], list[str]]:
    """Of a line without --, and what begins with the first word that is neither an option nor the
    value of one."""
    found = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        option = _VALUES.get(word)
        if option is None:
            found.append(_given_in(word))
        elif rest:
            found.append(Given((word, rest.pop(0)), word, is_of_a_run=True))
        else:
            raise _without_value(word, option)
    return found, rest


def _without_value(name: str, option: ValueOption) -> UsageError:
    return UsageError(f"{name} needs a value", f"sigwrap {name} {option.wanted} -- COMMAND")


def _given_in(word: str) -> Given:
    """A flag, an option with its value attached, or what a run doesn't have."""
    name, equals, _ = word.partition("=")
    if name in _FLAGS and equals:
        return Given((word,), word, is_of_a_run=False)
    if name not in _VALUES and word[:2] in _VALUES:
        name = word[:2]
    return Given((word,), name, is_of_a_run=name in _VALUES or name in _FLAGS)


def value_of(option: ValueOption, word: Any) -> object:
    """ValueError where the option has no such value."""
    if option.kind is str and not word:
        raise ValueError("'': an empty word names nothing")
    return _seconds(word) if option.kind is float else option.kind(word)


def _seconds(word: str) -> float:
    try:
        value = span_s(word, or_seconds=True)
    except ValueError as error:
        raise ValueError(f"{word or repr(word)}: {error}") from error
    if value > _SECONDS_MAX:
        raise ValueError(f"{word}: more than {_SECONDS_MAX} seconds")
    return value
