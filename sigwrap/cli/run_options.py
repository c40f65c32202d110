"""The line of a run: the table of its options, and the reader.

A line is `[run] [OPTIONS] -- COMMAND`, or `[OPTIONS] claude …` for an agent's preset: everything
after an agent's name is the agent's own. typer does not read it, because importing typer would be a
third of the start-up time. run_command.py makes typer's `run` from the table, for the help,
completion and the manual page.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from sigwrap.bare import Any, Enum, NamedTuple
from sigwrap.errors import UsageError
from sigwrap.front.interrupts import InterruptsEnd
from sigwrap.log.folder import DEFAULT_STORE
from sigwrap.session.settings import (
    AGENTS,
    LONGEST_LABEL,
    ApprovalMode,
    Nested,
    Report,
    RunSettings,
)
from sigwrap.text import did_you_mean, shell_words, shortened, size_bytes, span_s

_HELP = "see sigwrap run --help"
_NAME_BYTES_MAX = 64
_SECONDS_MAX = 1_000_000_000  # thirty years: a clock must not overflow
BEFORE_A_COMMAND = ("--utc", "--no-pager")
# Options of sigwrap itself. A line that begins with any other is a run.
_GLOBAL = ("--help", "-h", "--help-all", "--version", *BEFORE_A_COMMAND)


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


def _label(word: str) -> str:
    name, equals, value = word.partition("=")
    if not (equals and name.isidentifier() and name.isascii() and value.isprintable() and value):
        raise ValueError(f"{word or repr(word)}: not NAME=VALUE, such as repo=shop")
    if len(word) > LONGEST_LABEL:
        raise ValueError(f"{shortened(word, _NAME_BYTES_MAX)}: longer than {LONGEST_LABEL}")
    return word


def _descriptor(word: str) -> int:
    if not (word.isdecimal() and word.isascii() and 2 < int(word[:9]) < 1 << 20):
        raise ValueError(f"{word or repr(word)}: not the number of a descriptor above 2")
    return int(word)


class RunOption(NamedTuple):
    """`--name VALUE` or `--name=VALUE`, or a flag. RunSettings has the defaults."""

    names: tuple[str, ...]
    wanted: str  # the value in the help; empty for a flag
    help: str
    read: Callable[[str], object] = _text  # raises ValueError if the word is no such value
    field: str = ""  # of RunSettings
    sets: object = True  # the value of a flag
    repeats: bool = False  # the field has all its values


def _option(
    names: str,
    wanted: str,
    help_text: str,
    read: Callable[[str], object] = _text,
    suffix: str = "",
) -> RunOption:
    each = tuple(names.split())
    return RunOption(each, wanted, help_text, read, each[0][2:].replace("-", "_") + suffix)


def _choice(name: str, kind: type[Enum], help_text: str) -> RunOption:
    words = [each.value for each in kind]

    def read(word: str) -> Enum:
        if word not in words:
            raise ValueError(f"{word or repr(word)}: not one of {', '.join(words)}")
        return kind(word)

    return _option(name, "|".join(words), help_text, read)


def _time(name: str, help_text: str) -> RunOption:
    return _option(name, "TIME", help_text, _seconds, "_s")


def _flag(name: str, help_text: str, field: str = "", sets: object = True) -> RunOption:
    option = _option(name, "", help_text)
    return option._replace(field=field or option.field, sets=sets)


RUN_OPTIONS = (
    _option("--policy -p", "NAME|FILE|URL", "Policy that decides what the command may do"),
    _option("--policy-key", "FILE", "Public Ed25519 key, which must have signed a policy by URL"),
    _option(
        "--policy-fallback",
        "NAME|FILE",
        "Policy to use if the URL does not answer, and no valid copy of an earlier answer exists",
    ),
    _option("--root", "DIR", "Project directory, ${PROJECT_ROOT} in a policy"),
    _option("--name", "NAME", "Name of the session", _session_name),
    RunOption(
        ("--label",),
        "NAME=VALUE",
        "Label of the session, such as repo=shop, for queries over many sessions; in CI, repo, "
        "revision, pipeline, run and job come from the job's variables (may be repeated)",
        _label,
        "labels",
        repeats=True,
    ),
    _option("--store", "DIR", f"Directory for session logs [default: {DEFAULT_STORE}]"),
    _time("--grace", "Time between the first Ctrl+C and the force kill"),
    _choice(
        "--interrupt",
        InterruptsEnd,
        "Leave Ctrl+C to the command at its prompt (auto) or always (command), or end the run "
        "(sigwrap)",
    ),
    _flag(
        "--die-by-signal",
        "End by the signal that killed or interrupted the command, not with status 128+N or 130",
    ),
    _flag(
        "--end-with-caller",
        "End the run within 2 s after the process that started sigwrap has ended (for CI)",
        field="ends_with_caller",
    ),
    _choice(
        "--approvals",
        ApprovalMode,
        "Approve on the terminal (tty), with sigwrap approve (control) or both (auto; without a "
        "terminal or in CI: deny), or deny every request",
    ),
    _time("--approval-timeout", "Time until an unanswered approval request is denied"),
    _time(
        "--unattended-timeout",
        "Time until a request is denied if no terminal, sigwrap watch, page or --notify shows it",
    ),
    _option(
        "--notify",
        "COMMAND",
        "Shell command to run outside the session for each approval request (it gets "
        "$SIGWRAP_QUESTION, $SIGWRAP_APPROVAL_ID, $SIGWRAP_RULE and $SIGWRAP_STORE), or: bell",
    ),
    _flag(
        "--report",
        "Print a line at the end of the run [default: if stderr is a terminal or $CI is set]",
        sets=Report.ALWAYS,
    ),
    _flag("--no-report", "Do not print that line", field="report", sets=Report.NEVER),
    _flag("--verbose", "Print counts and the log's head at the end as well"),
    _flag("--best-effort", "Run even if system calls can't be intercepted"),
    _choice(
        "--nested", Nested, "Inside another session: refuse to run, or join its policy and log"
    ),
    _option(
        "--log-size",
        "SIZE",
        "Largest size of the event log [default: limits.log_size of the policy, or 1G]",
        _size,
        "_bytes",
    ),
    _option(
        "--killswitch-url",
        "URL",
        'URL to poll every 10 s; {"killed": true} kills the run (put a URL with a token in the '
        "variable) [default: $SIGWRAP_KILLSWITCH_URL]",
    ),
    _flag(
        "--killswitch-fail-closed", "Kill the run as well if that URL fails three times in a row"
    ),
    _option(
        "--profile",
        "FILE",
        "Profile from sigwrap policy learn --new; a program that is not in it raises SIGDRIFT",
    ),
    _option(
        "--join-name",
        "NAME",
        "Run the command in the shared session of this name, and start it if necessary",
        _shared_name,
    ),
    _time("--join-idle", "Time until a shared session without processes ends"),
    _option(
        "--ship", "URL", "Ship the log while the command runs: s3://BUCKET/PREFIX or file:///DIR"
    ),
    _option(
        "--ship-credential-fd",
        "N",
        "Read the credential for --ship from this descriptor, as JSON of an AWS credential_process",
        _descriptor,
    ),
    _time("--ship-timeout", "Time to ship the rest in after the run"),
    _flag("--ship-required", "Exit with 125 if not everything was shipped"),
    _flag("--durable", "Sync the log to disk before each action (slow)"),
)
_OPTIONS = {name: each for each in RUN_OPTIONS for name in each.names}


def is_run(words: list[str]) -> bool:
    first = words[0] if words else ""
    return first in ("run", *AGENTS) or (first.startswith("-") and first not in _GLOBAL)


def read_run_line(words: list[str]) -> RunSettings | None:
    """Return the settings of a run; None for a line that asks for help or is no run.

    UsageError says what is wrong with the line.
    """
    line = _split(words[words[:1] == ["run"] :]) if is_run(words) else None
    if line is None:
        return None
    if line.rest and (line.has_dashes or words[0] == "run"):
        return RunSettings(command=tuple(line.rest), **line.fields)
    if line.rest and line.rest[0] in AGENTS:
        return _by_preset(line)
    if wrong := _misplaced([*line.options, *line.rest], line.rest):
        raise wrong
    missing = "-- is missing before the command" if line.rest else "no command given"
    raise UsageError(missing, _with_dashes(line))


def read_options(words: list[str]) -> dict[str, object] | None:
    """Return fields of RunSettings; None if the words are not options of a run alone."""
    try:
        line = _split(words)
    except UsageError:
        return None
    return None if line is None or line.rest or line.has_dashes else line.fields


class _Line(NamedTuple):
    options: list[str]  # as typed
    fields: dict[str, Any]  # of RunSettings
    rest: list[str]
    has_dashes: bool  # before the rest


def _split(words: list[str]) -> _Line | None:
    """Read the options at the start of a line; return None if one of them asks for help.

    UsageError says which option is wrong.
    """
    fields: dict[str, Any] = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if word in ("-h", "--help"):
            return None
        name, equals, value = word.partition("=")
        if name not in _OPTIONS and word[:2] in _OPTIONS:
            name, equals, value = word[:2], "=", word[2:]
        option = _OPTIONS.get(name)
        if option is None:
            meant = did_you_mean(name, [*_OPTIONS, "--help-all", "--version"])
            unknown = UsageError(f"unknown option {shell_words([name])}", f"{meant}{_HELP}")
            # The next word may be the value of the option.
            raise _misplaced(words, rest) or _misplaced(words, rest[1:]) or unknown
        if not option.wanted:
            if equals:
                raise UsageError(f"{name} takes no value", _HELP)
            fields[option.field] = option.sets
            continue
        if not equals:
            if rest[:1] in ([], ["--"]):
                line = f"sigwrap {name} {option.wanted} -- COMMAND"
                raise UsageError(f"{name} needs a value", line)
            value = rest.pop(0)
        try:
            read = option.read(value)
            fields[option.field] = (*fields.get(option.field, ()), read) if option.repeats else read
        except ValueError as error:
            raise UsageError(f"{name} {error}", _HELP) from error
    options = words[: len(words) - len(rest)]
    has_dashes = rest[:1] == ["--"]
    return _Line(options, fields, rest[has_dashes:], has_dashes)


def _misplaced(words: list[str], rest: list[str]) -> UsageError | None:
    """Return the error for options before a command; None if the rest begins with no command."""
    from sigwrap.cli.table import COMMANDS  # for a mistake only

    if not rest or not any(rest[0] in rows for rows in COMMANDS.values()):
        return None
    end = rest.index("--") if "--" in rest else len(rest)
    line = [*rest[:end], *words[: len(words) - len(rest)], *rest[end:]]
    return UsageError(f"options of {rest[0]} go after it", f"sigwrap {shell_words(line)}")


def _by_preset(line: _Line) -> RunSettings:
    from sigwrap.policy.presets import PRESETS

    name, *words = line.rest
    preset = PRESETS[name]
    if "join_name" in line.fields:
        raise UsageError(
            f"--join-name can't be combined with the preset {name}",
            f"to run without the preset: {_with_dashes(line)}",
        )
    names_policy = "policy" in line.fields
    command = preset.line(words, has_file_rules=not names_policy)
    fields = {"policy": preset.policy, "preset": name, **line.fields}
    return RunSettings(command=command, **fields)


def _with_dashes(line: _Line) -> str:
    return f"sigwrap {shell_words([*line.options, '--', *(line.rest or ['npm', 'start'])])}"
