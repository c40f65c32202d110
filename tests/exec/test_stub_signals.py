"""Signals to a stub, its end and its command's, and the terminal's keys."""

from __future__ import annotations

import os
import signal

from tests.support.harness import PYTHON, Sigwrap
from tests.support.processes import children, tree
from tests.support.recording import prepared, ready
from tests.support.waiting import PATIENCE_S, Watch, await_state


def test_a_signal_to_the_stub_is_the_commands(as_user: Sigwrap) -> None:
    """Under a policy that lets no process signal another: what it passes on, it may."""
    names = ("USR1", "INT", "HUP", "QUIT", "TERM")
    # A trap that is due before a wait begins is run when that is over.
    waits = "while :; do read -t 0.1 x; done"
    traps = "; ".join(f"trap 'echo got {name}' {name}" for name in names[:-1])
    text = f"#!/bin/bash\n{traps}; trap 'echo got TERM; exit 5' TERM\necho ready\n{waits}\n"
    line = prepared(as_user, text, "signal_rules: [{name: no, signals: ['@all'], decision: deny}]")
    process = as_user.start(*line, "sh", "-c", "./tool; echo $?")
    said, stub = ready(as_user, process)
    for name in names:
        os.kill(stub, getattr(signal, f"SIG{name}"))
        assert said.line() == f"got {name}".encode()
    assert said.line() == b"5"
    assert process.wait(PATIENCE_S) == 0
    sent = as_user.sealed_events("signal_sent")
    assert [event.payload["signal_name"] for event in sent] == [f"SIG{name}" for name in names]
    assert {(event.pid, event.payload["rule_name"]) for event in sent} == {(stub, "builtin:stub")}


def test_a_signal_that_kills_the_command_kills_the_stub_so(as_user: Sigwrap) -> None:
    line = prepared(as_user, "#!/bin/sh\necho ready\nexec sleep 1000\n")
    process = as_user.start(*line, *PYTHON, "-c", "import subprocess as s; print(s.call('./tool'))")
    said, stub = ready(as_user, process)
    os.kill(stub, signal.SIGTERM)
    assert said.line() == b"-15"


def test_a_stub_that_is_killed_takes_its_command_along(as_user: Sigwrap) -> None:
    line = prepared(as_user, "#!/bin/sh\necho ready\nexec sleep 1000\n")
    process = as_user.start(*line, "sh", "-c", "./tool; echo $?; read x; true")
    said, stub = ready(as_user, process)
    with Watch(children(stub)) as command:
        assert command.processes
        os.kill(stub, signal.SIGKILL)
        assert said.line() == b"137"
        command.await_ends()
    process.communicate(b"\n", PATIENCE_S)
    (ended,) = as_user.sealed_events("recording_ended")
    assert ended.payload["reason"] in ("its stub has ended", "its stub hung up")


def test_the_interrupt_key_reaches_the_command_once_and_the_stub_outlives_it(
    as_user: Sigwrap,
) -> None:
    text = "#!/bin/bash\ntrap 'echo caught; echo cleaned; exit 7' INT\necho ready\nread x\n"
    as_user.policy = prepared(as_user, text)[1]
    terminal = as_user.on_terminal("--", "./tool")
    terminal.output.until(rb"ready")
    await_state(tree(terminal.pid)[-1], "S")  # the shell is in its read
    terminal.press("C")
    terminal.output.until(rb"caught")
    terminal.output.until(rb"cleaned")
    assert terminal.await_status() == 130
    assert terminal.output.rest().count(b"caught") == 0


def test_suspend_and_resume_as_a_job(as_user: Sigwrap) -> None:
    text = '#!/bin/sh\necho ready; while read -r line; do echo "got $line"; done\n'
    as_user.policy = prepared(as_user, text)[1]
    terminal = as_user.on_terminal("--", "./tool")
    terminal.output.until(rb"ready")
    (stub,) = [each.pid for each in as_user.events("exec_redirected")]
    for number in range(3):
        terminal.press("Z")
        terminal.await_stop()
        for pid in tree(stub):
            await_state(pid, "T")
        terminal.continue_job()
        terminal.type(f"line {number}\n")
        terminal.output.until(b"got line %d" % number)
    terminal.press("D")
    assert terminal.await_status() == 0
