"""The numbers of a session are the same wherever a user reads them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sigwrap.events import Counts
from tests.support.harness import PYTHON, UNDER_TEST, Sigwrap
from tests.support.programs import script

POLICY = """
version: 1
name: counted
defaults: {command: allow, signal: allow, network: allow}
command_rules:
  - {name: no, commands: [nope], decision: deny}
  - {name: ask, commands: [asked], decision: approve}
  - name: swap
    commands: [swapped]
    decision: redirect
    redirect_to: {command: echo, args: [x], via: stub, record: true}
signal_rules:
  - {name: no-usr2, signals: [SIGUSR2], decision: deny}
network_rules:
  - {name: no-9, destinations: [127.0.0.1], ports: [9], decision: deny}
"""
# A signal to itself and a connection repeat within a second, so several are one event.
REPEATED = """
import os, signal, socket
for word in ("one", "one", "two"):
    if os.fork() == 0:
        try:
            os.execvp("nope", ["nope", word])  # along PATH: three directories have one
        except PermissionError:
            os._exit(126)
    os.wait()
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
for _ in range(40):
    os.kill(os.getpid(), signal.SIGUSR1)
for _ in range(3):
    try:
        os.kill(os.getppid(), signal.SIGUSR2)
    except PermissionError:
        pass
for port in (9, 9, 9, 10, 10):
    socket.socket().connect_ex(("127.0.0.1", port))
"""


@pytest.mark.promise("report")
def test_the_end_line_report_sql_summary_and_sessions_agree(as_user: Sigwrap) -> None:
    folder = as_user.folder
    for name in ("a", "b", "c"):
        (folder / name).mkdir()
        for program in ("nope", "asked", "swapped"):
            script(folder / name, program, "#!/bin/sh\n")
    (folder / "repeated.py").write_text(REPEATED)
    (folder / "policy.yaml").write_text(POLICY)
    path = ":".join([*(f"{folder}/{name}" for name in "abc"), as_user.env["PATH"]])
    job = f"""
        asked; asked; swapped
        {" ".join(PYTHON)} repeated.py
    """
    run = as_user.start(
        *("-p", str(folder / "policy.yaml"), "--report", "--verbose"),
        *("--approvals", "control", "--", "sh", "-c", job),
        env={"PATH": path},
    )
    as_user.await_event("approval_requested")
    (asked,) = as_user.events("approval_requested")
    done = as_user.native(UNDER_TEST, "approve", "--always", asked.payload["approval_id"])
    assert done.returncode == 0, done.stderr
    _, stderr = run.communicate()
    told = stderr.decode()

    counts = Counts()
    for event in as_user.sealed_events():
        counts.add(event.type, event.payload)
    assert counts.execs["denied"] == 3, "a command along PATH is one attempt"
    assert (counts.execs["redirected"], counts.approved) == (1, 1)
    assert (counts.signals["denied"], counts.connections["denied"]) == (3, 3)
    assert sum(counts.signals.values()) >= 43 and sum(counts.connections.values()) == 5

    assert f", {counts.denied} actions denied, 1 approved" in told
    assert f": {', '.join(counts.lines())}; log head" in told
    report = json.loads(as_user.run("report", "--format", "json").stdout)
    assert report["outcomes"]["exec"] == counts.execs
    assert report["outcomes"]["signal"] == counts.signals
    assert report["outcomes"]["connection"] == counts.connections
    assert (report["denied"], report["approvals"]) == (counts.denied, counts.answers)
    for form in ("text", "md"):
        said = as_user.run("report", "--format", form).stdout.decode()
        assert ", ".join(counts.lines()) in said
        assert re.search(rf"{counts.denied} actions were denied, 1 approved\.", said)
    for view, count, expected in (
        ("execs", "count(*)", counts.execs),
        ("signals", "sum(count)", counts.signals),
        ("connections", "sum(count)", counts.connections),
    ):
        assert _sql(as_user, f"select outcome, {count} n from {view} group by 1") == expected
    assert _sql(as_user, "select 'all' outcome, sum(count) n from denials") == {
        "all": counts.denied
    }
    answers = "select answer outcome, count(*) n from approvals group by 1"
    assert _sql(as_user, answers) == counts.answers
    (listed,) = json.loads(as_user.run("sessions", "--json").stdout)["sessions"]
    assert listed["denied"] == counts.denied


def _sql(sigwrap: Sigwrap, sql: str) -> dict[str, Any]:
    rows = json.loads(sigwrap.run("query", "--format", "json", sql).stdout)
    return {row["outcome"]: row["n"] for row in rows}
