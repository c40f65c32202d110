"""Hostile words on the command line or in files can't forge a line of sigwrap's output."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup

from sigwrap.cli.app import ROOT
from sigwrap.cli.output import note
from sigwrap.cli.run_options import RUN_OPTIONS
from tests.support.harness import UNDER_TEST, Sigwrap
from tests.support.waiting import PATIENCE_S

HOSTILE = b"x\x1b[31m\r\nsigwrap: forged\xe2\x80\xae\xff\xc2\x9b\xe2\x80\xa8sigwrap: y\t\x7fz"
ENDLESS = b"long" * 25_000
MOST_SHOWN = 10_000
Line = tuple[str, ...]
HERE = "WORD"  # stands for the word in a line


def _commands(group: TyperGroup, path: Line) -> Iterator[tuple[Line, Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def _lines() -> Iterator[Line]:
    """Yield every command with the word as the value of each option, and as its argument."""
    for path, command in _commands(ROOT, ()):
        for each in command.params:
            match each.param_type_name:
                case "argument":
                    yield (*path, HERE)
                case _ if getattr(each, "is_flag", False):
                    yield (*path, f"{each.opts[0]}={HERE}")
                case _:
                    yield (*path, each.opts[0], HERE)
        yield (*path, f"--{HERE}")
        yield (*path, f"-{HERE}")
        yield (f"--{HERE}", *path)
    for option in RUN_OPTIONS:
        if option.wanted:
            yield (option.names[0], HERE, "--report", "--", "true")
        yield (f"{option.names[0]}={HERE}", "--", "true")


OTHERS: list[Line] = [
    (HERE,),
    ("policy", HERE),
    ("approvals", HERE),
    ("approvals", "--full", HERE),
    ("--", HERE),
    ("--", f"./{HERE}"),
    ("--", f"--{HERE}"),
    ("--report", "--", "sh", "-c", "exit 3", HERE),
    ("-p", "ci", HERE),
    ("--store", HERE, "reprot"),
]


def _by_command() -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in dict.fromkeys([*_lines(), *OTHERS]):
        words = [word for word in line if word.isalpha() and word != HERE]
        found.setdefault(words[0] if words and line[0].isalpha() else "run", []).append(line)
    return found


LINES = _by_command()
# A socket may have no longer path: with the folder's, that of every word is.
_LONGER_THAN_A_SOCKET = 108


def assert_harmless(said: bytes, program: str = "sigwrap") -> None:
    assert said.endswith(b"\n") or not said
    assert len(said) <= MOST_SHOWN
    for line in said.decode().split("\n")[:-1]:
        assert line.startswith(f"{program}: "), line
        assert not line.startswith("sigwrap: forged"), line
        assert line.isprintable(), line


@pytest.mark.parametrize("command", LINES)
def test_a_typed_word_forges_nothing(request: pytest.FixtureRequest, command: str) -> None:
    # The kill switch ends all that its user has.
    subject = request.getfixturevalue("alone" if command == "killswitch" else "sigwrap")
    folder = subject.folder / ("x" * _LONGER_THAN_A_SOCKET)
    folder.mkdir()
    for line in LINES[command]:
        # A session that is to be joined stays, and is found by the environment of a real start.
        forks = not any("join" in word for word in line)
        for hostile in (HOSTILE, ENDLESS):
            words = [word.encode().replace(HERE.encode(), hostile) for word in line]
            assert_harmless(subject.run(*words, forks=forks, cwd=folder).stderr)


def test_a_page_at_a_hostile_path_says_where_it_is_in_one_line(as_user: Sigwrap) -> None:
    process = as_user.start("serve", "--socket", HOSTILE.replace(b"/", b"")[:50])
    said = process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE_S)
    assert b"x\\e[31m\\r\\nsigwrap: forged" in said
    assert_harmless(said + process.stderr.read())


@pytest.mark.parametrize("line", [("--", HERE), ("--", f"./{HERE}"), ("--grace", HERE), (HERE,)])
def test_nor_does_one_that_the_init_for_containers_is_given(
    as_user: Sigwrap, forward: str, line: Line
) -> None:
    for hostile in (HOSTILE, ENDLESS):
        words = [word.encode().replace(HERE.encode(), hostile) for word in line]
        done = as_user.native(forward, *words)
        assert done.returncode in (125, 127)
        assert_harmless(done.stderr, "sigwrap-forward")


def test_a_file_is_named_and_forges_nothing(as_user: Sigwrap) -> None:
    folder = os.fsencode(as_user.folder)
    name = HOSTILE.replace(b"/", b"")
    policy = os.path.join(folder, name + b".yaml")
    Path(os.fsdecode(policy)).write_text("version: 1\nname: x\ndefalts: {}\nvars: 5\n")
    done = as_user.run("-p", policy, "--", "true")
    assert done.returncode == 125
    headline, first, second = done.stderr.splitlines()
    assert headline == b"sigwrap: 2 problems in the policy:"
    assert first.startswith(b"sigwrap:   ")
    assert b'.yaml:3:1: unknown key "defalts"' in first
    assert b".yaml:4:7: vars must be" in second
    assert_harmless(done.stderr)
    checked = as_user.run("policy", "check", policy)
    assert checked.returncode == 125
    assert all(line.isprintable() for line in checked.stdout.decode().split("\n"))
    program = os.path.join(folder, name)
    Path(os.fsdecode(program)).write_text("#!/nowhere\n")
    for mode, status in ((0o644, 126), (0o755, 127)):
        os.chmod(program, mode)
        done = as_user.run("--", program)
        assert done.returncode == status
        assert_harmless(done.stderr)


def test_its_own_name_is_no_exception(sigwrap: Sigwrap) -> None:
    link = os.path.join(os.fsencode(sigwrap.folder), b"a\x1b[31m\nsigwrap: forged")
    os.symlink(UNDER_TEST, link)
    done = sigwrap.native(link, "--", "nowhere")
    assert done.returncode == 127
    assert done.stderr == b"sigwrap: nowhere: command not found on PATH\n"


def test_a_stub_that_is_typed_says_one_line(sigwrap: Sigwrap) -> None:
    done = sigwrap.native(UNDER_TEST, "--as", "stub", HOSTILE)
    assert done.returncode == 126
    assert_harmless(done.stderr, "sigwrap-stub")


def test_a_word_is_cut_and_what_is_said_of_it_stays(capfd: pytest.CaptureFixture[str]) -> None:
    note("y" * 100_000 + ": not found (see sigwrap --help)")
    said = capfd.readouterr().err
    assert len(said) < 400
    assert said.startswith("sigwrap: yyy")
    assert said.endswith("yyy: not found (see sigwrap --help)\n")
    path = "/" + "/".join(["folder"] * 100)
    note(f"{path}: not found")
    assert capfd.readouterr().err == f"sigwrap: {path}: not found\n"
