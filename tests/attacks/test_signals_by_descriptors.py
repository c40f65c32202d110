"""A descriptor that signals its owner, and a terminal, whose owner is the foreground group."""

from __future__ import annotations

import fcntl
import json
import socket
from pathlib import Path

from tests.support.signal_lab import Lab, python

OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"
ONE_OUTSIDE = "name: out, signals: [WINCH], target: user, decision: allow"
"""With it, no wall of the kernel's own keeps signals inside."""


def test_a_key_signals_nobody_that_the_caller_may_not(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN, ONE_OUTSIDE)
    terminal = lab.subject.on_terminal("--", *python(programs / "signals_by_keys.py"))
    said = terminal.output.until(rb"told (\{.*\}) ready")
    told = json.loads(said[said.index(b"{") : said.rindex(b"}") + 1])
    assert set(told.values()) == {"EPERM"}, told
    terminal.type("a key\n")
    terminal.output.until(rb"it lives on")
    assert terminal.await_status() == 0
    blocked = lab.payloads("signal_blocked")
    rules = {(each["syscall"], each["rule_name"], each["signal"]) for each in blocked}
    assert ("fcntl", "builtin:sigwrap", 9) in rules and ("ioctl", "builtin:sigwrap", 9) in rules


def test_a_program_may_have_itself_signalled(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN)
    done = lab.run(programs / "signals_itself.py")
    by_socket, flags, terminal = map(json.loads, done.stdout.splitlines())
    assert by_socket == [[0, 34], [0, None]] * (len(by_socket) // 2)
    assert flags == [True, "EBADF"]
    assert terminal == [0, 2, True, 34, 0, True]
    assert lab.payloads("signal_blocked") == []


def test_an_owner_that_came_with_a_descriptor_is_judged(users_lab: Lab) -> None:
    """It was set outside, and signals at once: only the signal is left to be chosen."""
    lab = users_lab.under(OWN, ONE_OUTSIDE)
    outside = lab.outsider()
    one, other = socket.socketpair()
    with one, other:
        fcntl.fcntl(one, fcntl.F_SETOWN, outside.pid)
        fcntl.fcntl(one, fcntl.F_SETFL, fcntl.FASYNC)
        tries = "[native(72, fd, 10, each) for each in (9, 0)]"
        if_i386 = "[i386(221, fd, 10, 9)] if has_i386() else []"
        text = f"import sys\nfd = int(sys.argv[1])\ntell([named(x) for x in {tries} + ({if_i386})])"
        line = python(text, one.fileno())
        done = lab.subject.run("--", *line, pass_fds=(one.fileno(),))
        assert set(json.loads(done.stdout)) == {"EPERM"}
        other.send(b"x")
    assert outside.lives
    assert 9 not in [each["signal"] for each in outside.arrived()]
    blocked = lab.payloads("signal_blocked")
    assert {each["target_pid"] for each in blocked} == {outside.pid}
