"""Make docs/sigwrap.1 from the help of all commands: python -m tests.tools.manual"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import sigwrap
from sigwrap import errors
from sigwrap.cli.app import ROOT
from sigwrap.cli.examples import EXAMPLES

PAGE = Path(__file__).parents[2] / "docs" / "sigwrap.1"
_ENVIRONMENT = (
    (
        "SIGWRAP_STORE",
        "Directory for session logs. Without it: $XDG_STATE_HOME/sigwrap, or "
        "~/.local/state/sigwrap.",
    ),
    ("SIGWRAP_KEY", "Secret key of the hash chain in each log."),
    ("SIGWRAP_PAGER, PAGER", "Pager for output longer than the screen. Without them: less."),
    ("NO_COLOR", "Any value but the empty one turns colours off."),
)


def manual(root: Any) -> str:
    """Return the page in roff's man macros."""
    return "\n".join(_lines(root))


def _lines(root: Any) -> Iterator[str]:
    yield f'.TH SIGWRAP 1 "" "sigwrap {sigwrap.__version__}" "User Commands"'
    yield from (".SH NAME", r"sigwrap \- run a command under supervision", ".SH SYNOPSIS")
    yield from (".B sigwrap", r"[\fIOPTIONS\fR] \-\- \fICOMMAND\fR [\fIARGS\fR...]", ".br")
    yield from (".B sigwrap", r"\fISUBCOMMAND\fR [\fIOPTIONS\fR]", ".SH DESCRIPTION")
    yield from _paragraphs(root.help)
    yield ".SH OPTIONS"
    yield from _options(root.commands["run"])
    yield from (".PP", "Before a command:")
    yield from _options(root)
    yield from _examples("run")
    yield ".SH COMMANDS"
    yield from _commands(root, "")
    yield from _section("EXIT STATUS", errors.TABLE)
    yield from _section("ENVIRONMENT", _ENVIRONMENT)


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        full = f"{path} {name}".strip()
        if command.hidden or full == "run":
            continue
        is_group = hasattr(command, "commands")
        if not is_group or command.invoke_without_command:
            arguments = [] if is_group else command.collect_usage_pieces(typer.Context(command))[1:]
            yield f".SS {_text(' '.join(['sigwrap', full, *arguments]))}"
            yield from _paragraphs(command.help or "")
            yield from _options(command)
            yield from _examples(full)
        if is_group:
            yield from _commands(command, full)


def _options(command: Any) -> Iterator[str]:
    context = typer.Context(command)
    for each in command.params:
        if each.param_type_name == "option" and (record := each.get_help_record(context)):
            yield from _tagged(*record)


def _examples(path: str) -> Iterator[str]:
    yield from (".PP", "Examples:", ".EX", *map(_text, EXAMPLES[path]), ".EE")


def _section(title: str, rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    yield f'.SH "{title}"'
    for tag, text in rows:
        yield from _tagged(tag, text)


def _tagged(tag: str, text: str) -> Iterator[str]:
    yield from (".TP", rf"\fB{_text(tag)}\fR")
    if text:
        yield _text(" ".join(text.split()))


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ".PP"
        if paragraph:
            yield _text(" ".join(paragraph.split()))


def _text(text: str) -> str:
    """Escape what roff would interpret: backslashes, hyphens, a macro at the start of a line."""
    shown = text.replace("\\", r"\e").replace("-", r"\-").replace("…", "...")
    return rf"\&{shown}" if shown.startswith((".", "'")) else shown


if __name__ == "__main__":
    PAGE.write_text(manual(ROOT) + "\n", encoding="utf-8")
