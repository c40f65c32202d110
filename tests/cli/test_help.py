"""sigwrap help shows the pages of docs/ as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sigwrap.cli.app import ROOT
from sigwrap.cli.help import as_text, page
from tests.support.harness import Sigwrap

DOCS = Path(__file__).parents[2] / "docs"
TOPICS = sorted(path.stem for path in DOCS.glob("*.md") if path.stem != "README")


def _commands(command: Any, path: str = "sigwrap") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        if not each.hidden:
            yield from _commands(each, f"{path} {name}")


ALL_COMMANDS = dict(_commands(ROOT))


@pytest.mark.parametrize("path", ALL_COMMANDS)
def test_help_shows_words_and_no_code(path: str) -> None:
    command = ALL_COMMANDS[path]
    shown = command.get_help(command.context_class(command, info_name=path))
    assert shown.startswith(f"Usage: {path} ")
    said = re.sub(r'\$\{[A-Z_]+\}|\{"killed": true\}', "", shown)
    assert re.findall(r"[{}]|:<|\b(?:None|Annotated|class|typing)\b", said) == []
    assert [each.name for each in command.params if not each.help] == []


def test_the_list_names_every_page_and_no_other() -> None:
    assert sorted(re.findall(r"\]\(([a-z-]+)\.md\)", page(""))) == TOPICS


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_fits_a_terminal_and_keeps_its_words(topic: str) -> None:
    is_block = False
    lines = list(as_text(page(topic), 80))
    said = " ".join(" ".join(lines).split())
    for line in page(topic).splitlines():
        is_block ^= line.startswith("```")
        if is_block and not line.startswith("```"):
            assert " ".join(line.split()) in said, line
    assert all(len(line) <= 80 for line in lines if not line.startswith("    "))
    assert "](" not in said and "| --- |" not in said


def test_a_table_is_names_with_what_is_beside_them() -> None:
    assert list(as_text("| a | b |\n| --- | --- |\n| `x` | [y](z.md) |")) == ["`x`  y (z)", ""]
    several = "| a | b | c |\n|---|---|---|\n| x \\| y | 1 | |\n"
    assert list(as_text(several)) == ["x | y  b: 1", ""]


def test_a_topic_is_a_page_or_a_command_and_a_mistake_says_what_is_near(sigwrap: Sigwrap) -> None:
    assert sigwrap.run("help").stdout.startswith(b"Documentation\n")
    assert sigwrap.run("help", "exit-status").stdout.startswith(b"Exit status\n")
    assert sigwrap.run("help", "link").stdout.startswith(b"Usage: sigwrap link ")
    for wrong, said in (("polcy", b'did you mean "policy"?'), ("../README", b"no help topic")):
        done = sigwrap.run("help", wrong)
        assert done.returncode == 125 and said in done.stderr
