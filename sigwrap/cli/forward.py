"""`sigwrap-forward [--grace TIME] -- COMMAND [ARGS…]`: an init for one command."""

from __future__ import annotations

import sigwrap
from sigwrap.cli.output import out
from sigwrap.errors import UsageError
from sigwrap.front.parent import run_alone
from sigwrap.text import span_s

_USAGE = """sigwrap-forward [--grace TIME] -- COMMAND [ARGS...]

Runs the command, forwards every signal to it, reaps orphans, and exits with its status
(128+N if signal N killed it). Use it as the first process of a container.

--grace TIME   time from a SIGTERM, SIGINT or SIGQUIT until all remaining processes are killed,
               such as 10, 10s or 1m30s [default: wait until the command ends]
--version      show the version"""


def main(words: list[str]) -> int:
    grace_s: float | None = None
    words = list(words)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "--":
            break
        if word in ("-h", "--help"):
            out(_USAGE)
            return 0
        if word == "--version":
            out(f"sigwrap-forward {sigwrap.__version__}")
            return 0
        option, equals, value = word.partition("=")
        if option != "--grace":
            raise UsageError(f"unknown option {word}", "see sigwrap-forward --help")
        if not equals and words[:1] in ([], ["--"]):
            raise UsageError("--grace needs a value", "sigwrap-forward --grace TIME -- COMMAND")
        grace_s = _seconds(value if equals else words.pop(0))
    if not words:
        raise UsageError("no command given", "sigwrap-forward -- COMMAND")
    return run_alone(tuple(words), grace_s)


def _seconds(text: str) -> float:
    try:
        value = span_s(text, or_seconds=True)
    except ValueError as error:
        raise UsageError(f"--grace {text}: {error}") from error
    if value >= 1e9:
        raise UsageError(f"--grace {text}: longer than 30 years")
    return value
