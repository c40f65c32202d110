"""A terminal is not taken from those outside who use it, and nor is the machine."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.support.signal_lab import Lab, python

OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"


def test_a_terminal_is_not_taken_from_its_session(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN)
    terminal = lab.subject.on_terminal("--", *python(programs / "takes_terminals.py"))
    said = terminal.output.until(rb"told (\{.*\}) end")
    told = json.loads(said[said.index(b"{") : said.rindex(b"}") + 1])
    assert (told.pop("its own"), told.pop("no terminal")) == ([0], ["ENOTTY"])
    assert all(each == ["EPERM"] for each in told.values()), told
    terminal.type("still there\n")
    assert terminal.await_status() == 0
    blocked = {(each["syscall"], each["rule_name"]) for each in lab.payloads("signal_blocked")}
    is_root = os.getuid() == 0 and lab.subject.user is None
    # Of others the kernel refuses it itself.
    assert blocked == ({("ioctl", "builtin:terminal")} if is_root else set())


def test_what_reaches_everybody_fails_in_the_filter(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN)
    told = lab.tells(programs / "asks_the_kernel.py")
    assert told.pop("free") != ["EPERM"]
    assert all(each == ["EPERM"] for each in told.values()), told
