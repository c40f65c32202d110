"""A replacement stands in for the original in every way: status, streams, terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigwrap.linux import procfs
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.processes import tree
from tests.support.programs import needs, script
from tests.support.waiting import PATIENCE_S, await_state

ENDS = ["0", "1", "42", "126", "127", "255", "-15", "-2", "-10", "-11", "-9", "-34"]
"""What programs/ends.py says."""


@pytest.fixture(params=["exec", "stub"])
def standing_in(sigwrap: Sigwrap, request: pytest.FixtureRequest) -> Sigwrap:
    """`tool` becomes `replacement`, `more` becomes `less`, and so on; arguments are kept."""
    folder = sigwrap.folder
    script(folder, "tool", "#!/bin/sh\necho the original\n")
    script(folder, "replacement", '#!/bin/bash\neval "$1"\n')
    rules = "".join(
        f"""
  - {{name: {name}, commands: [{name}], decision: redirect,
     redirect_to: {{command: {command}, append_args: true, via: {request.param}}}}}"""
        for name, command in {"tool": f"{folder}/replacement", "more": "less"}.items()
    )
    policy(folder, rules + "\n")
    sigwrap.policy = str(folder / "policy.yaml")
    return sigwrap


def test_its_end(standing_in: Sigwrap, programs: Path) -> None:
    done = standing_in.run("--", *PYTHON, str(programs / "ends.py"))
    assert (done.stdout.decode().split(), done.stderr) == (ENDS, b"")
    assert standing_in.run("--", "./tool", "exit 42").returncode == 42


def test_a_signal_to_it(standing_in: Sigwrap, programs: Path) -> None:
    """By the id that its parent knows it by."""
    assert standing_in.run("--", *PYTHON, str(programs / "terminates_it.py")).stdout == b"told 5\n"


def test_the_end_of_its_input(standing_in: Sigwrap) -> None:
    """It comes when the writer closes, and not before."""
    process = standing_in.start("--", "./tool", "echo err >&2; cat; echo over")
    process.say(b"first\n")
    assert process.stdout.readline() == b"first\n"
    process.stdin.close()
    assert (process.stdout.read(), process.stderr.read()) == (b"over\n", b"err\n")
    assert process.wait(PATIENCE_S) == 0
    assert standing_in.run("--", "sh", "-c", "./tool cat </dev/null; echo $?").stdout == b"0\n"


@needs("less")
def test_a_pager_keeps_the_terminal(standing_in: Sigwrap) -> None:
    """Its keys, its size, Ctrl+Z and fg."""
    text = standing_in.folder / "text"
    text.write_text("".join(f"line-{number}.\n" for number in range(1, 200)))
    script(standing_in.folder, "more", "#!/bin/sh\necho the original\n")
    terminal = standing_in.on_terminal(
        "--no-report", "--", "./more", str(text), env={"TERM": "vt100"}
    )
    output = terminal.output
    terminal.resize(10, 40)
    output.until(rb"line-1\.")
    terminal.type("G")
    output.until(rb"line-199\.")
    terminal.type("g")
    output.until(rb"line-1\.")
    terminal.resize(30, 40)
    output.until(rb"line-25\.")
    terminal.press("z")
    terminal.await_stop()
    (pager,) = (pid for pid in tree(terminal.pid) if procfs.comm(pid) == "less")
    await_state(pager, "T")  # it puts the terminal in order first
    terminal.continue_job()
    output.until(rb"line-25\.")
    terminal.type(" ")
    output.until(rb"line-50\.")
    terminal.type("q")
    assert terminal.await_status() == 0
    assert b"the original" not in output.seen
    assert len(standing_in.sealed_events("exec_redirected")) == 1
