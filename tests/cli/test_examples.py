"""Every command has examples in its help, and takes them as they stand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from sigwrap.cli.app import ROOT
from sigwrap.cli.examples import EXAMPLES


def commands(group: Any = ROOT, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        full = f"{path} {name}".strip()
        if command.hidden or full == "approvals list":  # the same as approvals
            continue
        if not hasattr(command, "commands"):
            yield full, command
            continue
        if command.invoke_without_command:
            yield full, command
        yield from commands(command, full)


@pytest.mark.parametrize(("path", "command"), list(commands()))
def test_the_help_has_an_example(path: str, command: Any) -> None:
    shown = command.get_help(typer.Context(command, info_name=path, terminal_width=80))
    assert all(f"\n    {line}\n" in f"{shown}\n" for line in EXAMPLES[path])


def test_no_example_is_of_another_command() -> None:
    assert set(EXAMPLES) == {path for path, _ in commands()}


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_is_a_line_that_sigwrap_takes(line: str) -> None:
    called = re.search(r"sigwrap ([^|>)]*)", line)
    assert called is not None
    words = shlex.split(called[1])
    if "-c" in words:  # that is no option of typer's
        words[words.index("-c")] = "--"
    command = ROOT.commands["run"] if words[0].startswith("-") else ROOT
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        context = typer.Context(command, info_name="sigwrap")
        _, command, words = command.resolve_command(context, words)
    command.make_context("sigwrap", words)


@pytest.mark.parametrize(("path", "command"), list(commands()))
def test_its_first_sentence_fits_the_list_of_commands(path: str, command: Any) -> None:
    assert not command.get_short_help_str(64).endswith("..."), path
