"""Nobody joins a process group of the outside, gives it the terminal, or makes sigwrap its tracer.

A process that reads the terminal in the background stops its whole group: with the group of another
job it would be that one.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.signal_lab import Lab, python

OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"


def test_a_group_of_the_outside_is_not_joined(users_lab: Lab, programs: Path) -> None:
    """Nor by the numbers of a pid namespace."""
    lab = users_lab.under(OWN)
    terminal = lab.subject.on_terminal("--", *python(programs / "joins_groups.py"))
    said = terminal.output.until(rb"told (\{.*\}) end")
    told = json.loads(said[said.index(b"{") : said.rindex(b"}") + 1])
    by_other_numbers = told.pop("by other numbers")  # None without namespaces of one's own
    assert by_other_numbers in (None, [[0], [0], [0], [0], ["EPERM"]])
    refused = ("outside", "child to outside", "nobody's", "terminal to outside")
    assert all(told.pop(name) == ["EPERM"] for name in refused)
    assert told.pop("is child's") is told.pop("is ours") is True
    assert all(each == [0] for each in told.values()), told
    assert terminal.await_status() == 0
    blocked = {(each["syscall"], each["rule_name"]) for each in lab.payloads("signal_blocked")}
    assert blocked == {("setpgid", "builtin:group"), ("ioctl", "builtin:group")}


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
