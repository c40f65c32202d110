"""What a hook reads in a line is held against what the kernel sees when a real bash runs it: no
program runs that wasn't read, unless the reading says that something isn't known."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.hooks.shell_line import Line
from sigwrap.hooks.shell_reader import read_line
from sigwrap.hooks.words import Word
from sigwrap.hooks.wrapped import chain_of, words_of
from tests.hook.lines import TARGET, generated
from tests.support.harness import EXECS, Sigwrap
from tests.support.programs import needs
from tests.support.waiting import PATIENCE_S

SEEDS = range(int(os.environ.get("SIGWRAP_TEST_SEED", "0")), 1 << 30)
LINES = int(os.environ.get("SIGWRAP_TEST_LINES", "60"))


@needs("git")
@pytest.mark.tier("ci")
def test_no_program_runs_that_was_not_read(sigwrap: Sigwrap) -> None:
    """Each line by itself: what one leaves behind is nothing to the next."""
    folder = repository(sigwrap.folder / "r")
    lines = {f"m{seed}": generated(seed) for seed in SEEDS[:LINES]}
    for mark, line in lines.items():
        (folder / f"{mark}.line").write_text(line)
    (folder / "all.sh").write_text(
        'for f in m*.line; do timeout -s KILL 5 bash -c "$(cat $f)" </dev/null >/dev/null 2>&1;'
        " test $? != 137 || echo $f; done\n"
        "git rebase --abort 2>/dev/null; exit 0\n"
    )
    sigwrap.policy = "agent-observe"
    done = sigwrap.run("--", "bash", "all.sh", cwd=folder, within_s=PATIENCE_S + LINES / 5)
    assert done.returncode == 0, done.stderr
    ran = [
        argv
        for event in sigwrap.sealed_events(*EXECS)
        if TARGET in event.payload["argv"][:1] and len(argv := event.payload["argv"]) > 1
    ]
    marks = {argv[1] for argv in ran} & lines.keys()
    assert len(marks) > LINES / 3, "too few of the lines run anything"
    read = {mark: read_line(lines[mark], folder="/", home="/", depth=1) for mark in marks}
    assert sum(not line.unknown for line in read.values()) > len(marks) / 10
    missed = [
        f"{lines[argv[1]]!r} runs {argv}"
        for argv in ran
        if argv[1] in read and not is_read(argv, read[argv[1]])
    ]
    assert not missed, "\n".join(missed)


def repository(folder: Path) -> Path:
    git = ("git", "-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always")
    steps = (
        ("init", "-q", "."),
        ("commit", "-q", "--allow-empty", "-m", "x"),
        ("submodule", "--quiet", "add", "./.", "sub"),
        ("commit", "-q", "-m", "sub"),
    )
    folder.mkdir()
    for step in steps:
        subprocess.run([*git, *step], cwd=folder, check=True, capture_output=True)
    (folder / "Makefile").write_text("all:\n\t@echo $(X)\n")
    return folder


def is_read(argv: list[str], line: Line) -> bool:
    if line.unknown:
        return True
    given = "".join(f"{word}\n" for word in argv)
    return any(re.fullmatch(pattern, given, re.DOTALL) for pattern in patterns(line))


def patterns(line: Line) -> Iterator[str]:
    for command in line.commands:
        for _, argv in chain_of([word.text for word in command.words]):
            yield "".join(map(pattern, words_of(argv, command.words)))


def pattern(word: Word) -> str:
    if word.splits:
        return ".*"
    return ".*".join(map(re.escape, word.text.split("\0"))) + "\n"
