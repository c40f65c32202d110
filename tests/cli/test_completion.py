"""Tab in bash, zsh and fish."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.log.writer import SessionLog
from tests.support.harness import UNDER_TEST, Sigwrap
from tests.support.programs import script

SHELLS = {
    "bash": ["bash", "--norc", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
LOADING = {
    "bash": "source <(sigwrap completion bash)",
    "zsh": "autoload -U compinit; compinit -u -D; source <(sigwrap completion zsh)",
    "fish": "sigwrap completion fish | source",
}
Words = Callable[..., list[str]]


@pytest.fixture
def store(sigwrap: Sigwrap) -> Sigwrap:
    """Make a store with a session that has a name, and one with a hostile name."""
    evil = "$(touch pwned)`touch pwned`'\"; touch pwned #"
    other = sigwrap.folder / "other"
    for folder, session_id, name in (
        (sigwrap.store, "20260101-aa", "nightly-build"),
        (sigwrap.store, "20260102-bb", evil),
        (other, "20260103-cc", "other-build"),
    ):
        log = SessionLog.create(str(folder), session_id)
        started = {"session_id": session_id, "name": name, "command": ["npm", "start"]}
        log.append("session_started", 1, started, 1)
        log.close()
    sigwrap.env["PATH"] = f"{Path(UNDER_TEST).parent}:{sigwrap.env['PATH']}"
    sigwrap.env["TERM"] = "dumb"
    return sigwrap


@pytest.fixture
def words(store: Sigwrap) -> Words:
    def complete(*line: str) -> list[str]:
        done = store.run("complete", "--", *line)
        assert (done.returncode, done.stderr) == (0 if done.stdout else 1, b"")
        return [each.split("\t")[0] for each in done.stdout.decode().splitlines()]

    return complete


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (("rep",), ["report", "replay"]),
        (("cl",), ["claude"]),
        (("sessions", "pr"), ["prune"]),
        (("policy", "exp"), ["explain"]),
        (("report", "--form"), ["--format"]),
        (("sessions", "--js"), []),
        (("--ut",), ["--utc"]),
        (("report", ""), ["$(touch pwned)`touch pwned`'\"; touch pwned #", "nightly-build"]),
        (("report", "2026"), ["20260102-bb", "20260101-aa"]),
        (("report", "--json", "nig"), ["nightly-build"]),
        (("--grace", "5", "--policy", "ci"), ["ci"]),
        (("--approv",), ["--approvals", "--approval-timeout"]),
        (("policy", "check", "agent-o"), ["agent-observe"]),
        (("signal", "SIGST"), ["SIGSTOP"]),
        (("signal", "20260101-aa", "SIGST"), ["SIGSTOP"]),
        (("help", "exit"), ["exit-status"]),
        (("help", "rep"), ["report", "replay"]),
        (("why", "nig"), ["nightly-build"]),
        (("policy", "explain", "--", "cl"), []),
        (("sessions", "rm", "20260101-aa", "20260102"), ["20260102-bb"]),
        (("nothing", "x"), []),
        (("--policy=agent-s",), ["agent-strict"]),
        (("--policy", "=", "agent-s"), ["agent-strict"]),
        (("report", "--format=js"), ["json"]),
        (("policy", "init", "--extends", "agent-s"), ["agent-strict"]),
        (("report", "--store=/nonexistent", ""), []),
        (("report", "--store", "/nonexistent", ""), []),
    ],
)
@pytest.mark.promise("completion")
def test_what_is_offered(words: Words, line: tuple[str, ...], offered: list[str]) -> None:
    assert words(*line)[: len(offered) or None] == offered


TYPED = [
    ("sigwrap repo\t", rb"sigwrap report "),
    ("sigwrap report nig\t", rb"nightly-build"),
    ("sigwrap why nig\t", rb"nightly-build"),
    ("sigwrap help tut\t", rb"tutorial"),
    ("sigwrap -p agent-st\t", rb"agent-strict"),
    ("sigwrap -p ci -- only-h\t", rb"-- only-here"),
    ("sigwrap report --form\t", rb"--format"),
    ("sigwrap --policy=agent-st\t", rb"--policy=agent-strict"),
    ("true; sigwrap --policy=agent-st\t", rb"--policy=agent-strict"),
    ("sigwrap report --format=j\t", rb"--format=json"),
    ("sigwrap report --store=other oth\t", rb"other-build"),
    ("sigwrap report --store other oth\t", rb"other-build"),
    ("sigwrap report --store='other' --json oth\t", rb"other-build"),
    ("sigwrap report --store=oth\t", rb"--store=other/"),
    ("sigwrap report --store oth\t", rb"--store other/"),
]


@pytest.mark.tier("ci")
@pytest.mark.parametrize("name", sorted(SHELLS))
def test_tab(store: Sigwrap, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}")
    only_here = store.folder / "bin" / "only-here"
    only_here.parent.mkdir()
    script(only_here.parent, only_here.name, "#!/bin/sh\n")
    store.env["PATH"] = f"{only_here.parent}:{store.env['PATH']}"
    shell = store.terminal_for(SHELLS[name], size=(24, 200))
    shell.type(LOADING[name] + "; echo load''ed\n")
    shell.output.until(rb"loaded")
    for number, (typed, completed) in enumerate(TYPED):
        shell.type(typed)
        shell.output.until(completed)
        shell.press("u")  # the line goes, and all that is shown of it before the next
        shell.type(f"echo do''ne{number}\n")
        shell.output.until(b"done%d" % number)
    # A hostile name is listed, or put into the line: as text.
    shell.type("sigwrap report \t\t")
    shell.output.until(rb"nightly-build|touch.{1,3}pwned")
    assert not (store.folder / "pwned").exists()
