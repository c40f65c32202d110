"""Whoever runs in a session chooses how much there is to record, and the disk is everybody's."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sigwrap.log.codec import EVENT_LIMIT
from tests.support.harness import Sigwrap
from tests.support.policies import policy

LIMIT_REACHED = 124


def _log_size(subject: Sigwrap) -> int:
    (path,) = (subject.store / "sessions").iterdir()
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
        row = database.execute(
            "SELECT sum(length(payload)), max(iif(type = 'session_started', 0, length(payload)))"
            " FROM events"
        ).fetchone()
    total, longest = map(int, row)
    assert longest <= EVENT_LIMIT
    return total


def test_an_exec_takes_a_few_kilobytes_whatever_its_arguments(as_user: Sigwrap) -> None:
    """870 execs like these once wrote 628 MB."""
    rules = '\n  - {name: no, commands: ["true"], args_patterns: ["the end$"], decision: deny}\n'
    program = """long=$(printf '%060000d' 0 | tr 0 '\\001')
for each in 1 2 3 4 5 6 7 8; do env nice env /bin/true "$each" "$long" "$long"; done
/bin/true "$long" the end
exit 0"""
    done = as_user.run("-p", policy(as_user.folder, rules), "--", "sh", "-c", program)
    assert done.returncode == 0
    execs = as_user.sealed_events("exec_allowed", "exec_denied")
    assert execs[-1].type == "exec_denied"  # judged by all of its arguments
    cut = [event.payload["cut"] for event in execs if "cut" in event.payload]
    assert len(cut) == 8 * 4 + 1
    assert all(each["argv"]["json"] > 300_000 for each in cut)
    assert _log_size(as_user) < 60_000 + len(execs) * EVENT_LIMIT


def test_a_log_that_is_full_before_command_runs_ends_the_run(as_user: Sigwrap) -> None:
    """COMMAND's own exec was denied for it, which once was all that was said, with status 126."""
    full = "log_size: the event log has reached its limit of 1 bytes"
    done = as_user.run("--log-size", "1", "--", "true")
    assert done.returncode == LIMIT_REACHED
    assert done.stderr.decode().splitlines() == [
        f"sigwrap: {full}; sigwrap ends the run",
        f"sigwrap: a limit ended the command: {full}",
    ]
    (reached,) = as_user.sealed_events("limit_exceeded")
    assert reached.payload["reason"] == full
    (ended,) = as_user.events("session_ended")
    assert (ended.payload["exit_status"], ended.payload["reason"]) == (LIMIT_REACHED, full)


def test_recorded_streams_count(as_user: Sigwrap, tmp_path: Path) -> None:
    rules = (
        "\n  - {name: recorded, commands: [yes], decision: redirect,"
        " redirect_to: {command: yes, append_args: true, via: stub, record: true}}\n"
    )
    line = ["--log-size", "1M", "-p", policy(as_user.folder, rules), "--"]
    done = as_user.run(*line, "sh", "-c", "yes > /dev/null")
    assert done.returncode == LIMIT_REACHED
    recorded = as_user.sealed_events("io_recorded")
    assert 200_000 < sum(event.payload["size"] for event in recorded) < 2_000_000
