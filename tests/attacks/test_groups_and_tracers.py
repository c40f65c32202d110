"""Nobody joins a process group of the outside, gives it the terminal, takes its terminal away, has
its group signalled by a descriptor, or makes sigwrap its tracer.

A process that reads the terminal in the background stops its whole group: with the group of another
job it would be that one.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import socket
from pathlib import Path
from typing import Any

from tests.support.signal_lab import Lab, python
from tests.support.terminal import Terminal

OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"
ONE_OUTSIDE = "name: out, signals: [WINCH], target: user, decision: allow"
"""With it, no wall of the kernel's own keeps signals inside."""


def _tell_on_a_terminal(lab: Lab, *programs: Path) -> tuple[Terminal, list[dict[str, Any]]]:
    """What they say, one after the other, in one session."""
    line = "; ".join(shlex.join(python(program)) for program in programs)
    terminal = lab.subject.on_terminal("--", "sh", "-c", line)
    said = [terminal.output.until(rb"told (\{.*\}) end") for _ in programs]
    return terminal, [json.loads(each[each.index(b"{") : each.rindex(b"}") + 1]) for each in said]


def test_no_group_of_the_outside_is_joined_and_no_terminal_taken(
    users_lab: Lab, programs: Path
) -> None:
    """Nor by the numbers of a pid namespace."""
    lab = users_lab.under(OWN)
    names = ("joins_groups.py", "takes_terminals.py")
    terminal, (told, takes) = _tell_on_a_terminal(lab, *(programs / name for name in names))
    by_other_numbers = told.pop("by other numbers")  # None without namespaces of one's own
    assert by_other_numbers in (None, [[0], [0], [0], [0], ["EPERM"]])
    refused = ("outside", "child to outside", "nobody's", "terminal to outside")
    assert all(told.pop(name) == ["EPERM"] for name in refused)
    assert told.pop("is child's") is told.pop("is ours") is True
    assert all(each == [0] for each in told.values()), told
    assert (takes.pop("its own"), takes.pop("no terminal")) == ([0], ["ENOTTY"])
    assert all(each == ["EPERM"] for each in takes.values()), takes
    terminal.type("still there\n")
    assert terminal.await_status() == 0
    blocked = {(each["syscall"], each["rule_name"]) for each in lab.payloads("signal_blocked")}
    of_groups = {("setpgid", "builtin:group"), ("ioctl", "builtin:group")}
    is_root = os.getuid() == 0 and lab.subject.user is None
    # Of others the kernel refuses it itself.
    assert blocked == of_groups | ({("ioctl", "builtin:terminal")} if is_root else set())


def test_an_interactive_shell_keeps_its_jobs(users_lab: Lab) -> None:
    """It makes groups, joins its children to them, and hands the terminal to and fro."""
    lab = users_lab.under(OWN)
    terminal = lab.subject.on_terminal("--", "bash", "--norc", "-i")
    terminal.type("sleep 0 | cat | cat; echo piped-$((1 + 1))\n")
    terminal.output.until(rb"piped-2")
    terminal.type("cat | cat &\n")  # stopped, as it reads
    terminal.type("kill -9 %1; wait; echo killed-$((1 + 2))\n")
    terminal.output.until(rb"killed-3")
    terminal.type("echo rea''dy; head -n 1 | cat; echo over-$((2 + 2))\n")
    terminal.output.until(rb"ready\r\n")  # from here on the terminal is the pipeline's
    terminal.type("typed\n")
    terminal.output.until(rb"typed\r\ntyped\r\n")
    terminal.output.until(rb"over-4\r\n")
    terminal.type("exit 7\n")
    assert terminal.await_status() == 7
    assert lab.payloads("signal_blocked") == []


def test_sigwrap_is_nobodys_tracer(users_lab: Lab, programs: Path) -> None:
    """The run hung at the first signal to whoever had asked for it. Who slips under its tracing,
    as its parent leaves, is let go."""
    lab = users_lab.under(OWN)
    told = lab.tells(programs / "asks_to_be_traced_by_sigwrap.py", 30)
    assert told == [["EPERM"], "EPERM", 30]
    blocked = {(each["syscall"], each["rule_name"]) for each in lab.payloads("signal_blocked")}
    assert blocked == {("ptrace", "builtin:sigwrap")}


def test_what_reaches_everybody_fails_in_the_filter(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN)
    told = lab.tells(programs / "asks_the_kernel.py")
    assert told.pop("free") != ["EPERM"]
    assert all(each == ["EPERM"] for each in told.values()), told


# A descriptor signals its owner; the owner of a terminal is the foreground group.


def test_a_key_signals_nobody_that_the_caller_may_not(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN, ONE_OUTSIDE)
    terminal, (told,) = _tell_on_a_terminal(lab, programs / "signals_by_keys.py")
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
