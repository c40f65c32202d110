"""sigwrap man: the manual page, made from the help of all commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

import sigwrap
from sigwrap import status
from sigwrap.cli.examples import EXAMPLES
from sigwrap.cli.group import App
from sigwrap.cli.output import out

_FIRST_STEPS = (
    ("sigwrap -- npm start", "Run a command and log it."),
    ("sigwrap -p agent-strict -- my-agent", "Run an agent under another policy."),
    ("sigwrap report", "Show what happened in the latest session."),
    ("sigwrap why", "Explain how the command ended."),
)
_FILES = (
    ("$SIGWRAP_STORE", "Directory for session logs."),
    ("$XDG_STATE_HOME/sigwrap", "Used if SIGWRAP_STORE is not set."),
    ("~/.local/state/sigwrap", "Used if neither is set."),
)
_ENVIRONMENT = (
    ("SIGWRAP_STORE", "See FILES."),
    ("SIGWRAP_KEY", "Secret key of the hash chain in each log."),
    ("SIGWRAP_PAGER, PAGER", "Pager for output longer than the screen. Without them: less."),
    ("NO_COLOR", "Any value but the empty one turns colours off."),
)


app = App()


@app.command()
def man(context: typer.Context) -> None:
    """Print the manual page."""
    out(manual(context.find_root().command))


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
    yield ".SH COMMANDS"
    yield from _commands(root, "sigwrap")
    yield from _section("EXIT STATUS", status.TABLE)
    yield from _section("ENVIRONMENT", _ENVIRONMENT)
    yield from _section("FILES", _FILES)
    yield from _section("EXAMPLES", _FIRST_STEPS)


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if command.hidden or (path == "sigwrap" and name == "run"):
            continue
        if hasattr(command, "commands"):
            if command.invoke_without_command:
                yield from _command(command, f"{path} {name}", "")
            yield from _commands(command, f"{path} {name}")
        else:
            yield from _command(command, f"{path} {name}", _arguments(command))


def _command(command: Any, path: str, arguments: str) -> Iterator[str]:
    yield f".SS {_text(f'{path} {arguments}'.rstrip())}"
    yield from _paragraphs(command.help or "")
    yield from _options(command)
    name = path.removeprefix("sigwrap ")
    if name in EXAMPLES:
        yield from (".PP", "Examples:", ".EX", *map(_text, EXAMPLES[name]), ".EE")


def _arguments(command: Any) -> str:
    found = [each for each in command.params if each.param_type_name == "argument"]
    return " ".join(each.metavar or each.name.upper() for each in found)


def _options(command: Any) -> Iterator[str]:
    for each in command.params:
        if each.param_type_name != "option" or each.hidden:
            continue
        names = ", ".join((*each.opts, *each.secondary_opts))
        value = "" if each.is_flag else f" {_value(each)}"
        yield from _tagged(names + value, each.help or "")


def _value(option: Any) -> str:
    choices = getattr(option.type, "choices", None)
    if choices is not None:
        return "|".join(str(getattr(each, "value", each)) for each in choices)
    return option.metavar or "TEXT"


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
