"""Programs that ask for something go on: their child waits as a stub, and what draws on the
terminal waits for nothing."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from sigwrap.kernel import procfs
from tests.support.harness import PYTHON, UNDER_TEST, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import await_that, reader

ASK = "\n  - {name: ask, commands: [uname], decision: approve}\n"
SPAWNS = """
import os, subprocess, sys
child = {}
print("started", child, flush=True)
input()
print("went on", flush=True)
print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
WAYS = {
    "vfork": "subprocess.Popen(['uname', '-s']).pid",
    "posix_spawn": "os.posix_spawn('/bin/uname', ['uname', '-s'], os.environ)",
    "npm's child": "subprocess.Popen(['sh', '-c', 'uname -s']).pid",
}


@pytest.mark.promise("approvals from elsewhere")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("answer", "status"), [("approve", b"0"), ("deny", b"126")])
def test_the_parent_goes_on(as_user: Sigwrap, way: str, answer: str, status: bytes) -> None:
    path = policy(as_user.folder, ASK)
    program = (*PYTHON, "-c", SPAWNS.format(WAYS[way]))
    run = as_user.start("-p", path, "--approvals", "control", "--", *program)
    out, err = reader(run.stdout), reader(run.stderr)
    child = int(out.until(rb"started \d+\n").split()[1])
    err.until(rb"sigwrap: request \w+: uname -s needs approval \(rule ask, policy test\); until")
    (request,) = as_user.events("approval_requested")
    waiting = procfs.command_line(request.pid)
    assert waiting == "sigwrap-stub /usr/bin/uname uname -s".replace(
        "/usr", "", way == "posix_spawn"
    )
    assert way == "npm's child" or request.pid == child
    run.say(b"\n")
    out.until(rb"went on\n")
    assert as_user.native(UNDER_TEST, answer, request.payload["approval_id"]).returncode == 0
    out.until(rb"status " + status)
    if answer == "deny":
        err.until(rb"sigwrap: denied: uname -s: request denied \(rule ask")
    assert run.wait() == 0
    kinds = [e.type for e in as_user.sealed_events() if e.type in ("exec_waiting", "exec_denied")]
    assert kinds == ["exec_waiting", *(["exec_denied"] if answer == "deny" else [])]
    as_user.verify_decisions()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGKILL])
def test_a_killed_stub_leaves_nothing(as_user: Sigwrap, number: int) -> None:
    path = policy(as_user.folder, ASK)
    program = (*PYTHON, "-c", SPAWNS.format(WAYS["vfork"]))
    run = as_user.start("-p", path, "--approvals", "control", "--", *program)
    out = reader(run.stdout)
    child = int(out.until(rb"started \d+\n").split()[1])
    as_user.await_event("approval_requested")
    os.kill(child, number)
    await_that(lambda: bool(as_user.events("approval_denied")))
    run.say(b"\n")
    out.until(b"status -%d\n" % number)
    (denied,) = as_user.events("approval_denied")
    assert denied.payload["reason"] == "withdrawn"
    assert run.wait() == 0
    assert not as_user.alive()


DRAWS = """
import socket, sys, tty
tty.setraw(0)
print("drawing", flush=True)
while sys.stdin.read(1) == "c":
    try:
        socket.create_connection(("127.0.0.1", {port})).close()
        print("connected", flush=True)
    except OSError:
        print("refused", flush=True)
"""


def test_a_program_that_draws_on_the_terminal_is_answered_at_once(as_user: Sigwrap) -> None:
    """And its next attempt, as the user says in between: once."""
    path = as_user.folder / "asks.yaml"
    path.write_text(
        "version: 1\nname: asks\ndefaults: {command: allow, signal: allow, network: approve}\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        program = (*PYTHON, "-c", DRAWS.format(port=server.getsockname()[1]))
        terminal = as_user.on_terminal("-p", str(path), "--no-report", "--", *program)
        terminal.output.until(rb"drawing")
        terminal.type("c")
        line = terminal.output.until(rb"does not wait; sigwrap approve \w+ ")
        terminal.output.until(rb"refused")
        approval_id = line.split()[-1].decode()
        approved = as_user.native(UNDER_TEST, "approve", approval_id)
        assert approved.returncode == 0, approved.stderr
        terminal.type("c")
        terminal.output.until(rb"connected")
        terminal.type("c")
        terminal.output.until(rb"refused")
        terminal.type("q")
        assert terminal.await_status() == 0
    kept = [
        e
        for e in as_user.sealed_events("approval_requested")
        if e.payload["approval_id"] == approval_id
    ]
    assert len(kept) == 1
    as_user.verify_decisions()


SELF = """
import os, sys
words = ["x", "-c", "print('ag' 'ain')", "ag" + "ain"]
if os.fork() == 0:
    os.execv(sys.argv[1], words)
print("status", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


@pytest.mark.parametrize("link", [False, True])
def test_what_a_stub_would_find_elsewhere_waits_in_its_caller(as_user: Sigwrap, link: bool) -> None:
    """`/proc/self/exe` is another file for the stub."""
    self_exe = "/proc/self/exe"
    if link:
        self_exe = str(as_user.folder / "link")
        os.symlink("/proc/self/exe", self_exe)
    name = "*" if link else os.path.basename(PYTHON[0])
    rule = (
        f"\n  - {{name: ask, commands: ['{name}'], args_patterns: [^again$], decision: approve}}\n"
    )
    path = policy(as_user.folder, rule)
    run = as_user.start("-p", path, "--approvals", "control", "--", *PYTHON, "-c", SELF, self_exe)
    as_user.await_event("approval_requested")
    (request,) = as_user.events("approval_requested")
    assert as_user.native(UNDER_TEST, "approve", request.payload["approval_id"]).returncode == 0
    out = reader(run.stdout)
    out.until(rb"again\nstatus 0\n")
    assert run.wait() == 0
    assert not as_user.sealed_events("exec_waiting")
