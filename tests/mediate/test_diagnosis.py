"""The state of a session as lines: cut, aligned, masked, and fit for a terminal."""

from __future__ import annotations

from typing import Any

from sigwrap.events import Payload
from sigwrap.log.codec import CUT, cut_payload
from sigwrap.session.diagnosis import command_of, lines_of, payload_of
from sigwrap.session.lineage import cut_words

TOKEN = "ghp_" + "a1" * 18


def _process(
    pid: int = 10,
    depth: int = 0,
    argv: tuple[str, ...] = ("sh", "-c", "sleep 9"),
    age_s: float = 75.0,
) -> Payload:
    """A process, and its parent has the pid below."""
    return {
        "pid": pid,
        "ppid": pid - 1,
        "depth": depth,
        "command": command_of("a\nb", argv),
        "state": "S",
        "age_s": age_s,
    }


def _of(*processes: Payload, asked: dict[str, str] | None = None, **others: Any) -> Payload:
    rest = {"limits": {"max_execs": [3, 100]}, "counts": {"exec_allowed": 3}, "unrecorded": 0}
    rest |= {"stopped": None, "log_bytes": 4096, "head": "ab12", **others}
    return payload_of(list(processes), asked or {}, rest)


def test_a_person_reads_the_tree_the_limits_and_the_counts() -> None:
    child = _process(11, 1, ("sleep", "9"), 4000.0)
    assert lines_of(_of(_process(), child, asked={"a1b2c3": "git push"})) == [
        "diagnostic: 2 processes, head ab12",
        "      pid      ppid depth state      age  command",
        "       10         9     0 S     1 m 15 s  sh -c 'sleep 9'",
        "       11        10     1 S     1 h 06 m    sleep 9",
        "approval request a1b2c3  git push",
        "limit max_execs: 3 of 100",
        "events: exec_allowed 3",
        "log: 4096 bytes",
    ]


def test_a_stopped_session_is_said_to_be_one() -> None:
    stopped = {"by": "agent signal SIGSTOP from uid 1", "for_s": 75.0, "held": 1}
    assert lines_of(_of(stopped=stopped))[1] == (
        "stopped for 1 m 15 s by agent signal SIGSTOP from uid 1; 1 exec waits"
    )


def test_what_could_not_be_recorded_is_said() -> None:
    said = [lines_of(_of(unrecorded=count))[-1] for count in (1, 2)]
    assert said == [
        "log: 4096 bytes, 1 event could not be recorded",
        "log: 4096 bytes, 2 events could not be recorded",
    ]


def test_any_number_of_processes_fits_and_how_many_do_not_is_said() -> None:
    words = ("x" * 300, "\udcff" * 300, "\x1b[2J")
    asked = {f"{n:06}": "\udcff" * 500 for n in range(64)}
    payload = _of(*(_process(100 + n, n, words) for n in range(3000)), asked=asked)
    assert CUT not in cut_payload(payload)
    assert len(payload["processes"]) + payload["processes_left_out"] == 3000
    assert len(payload["approvals"]) + payload["approvals_left_out"] == 64
    lines = lines_of(payload)
    assert len(lines) <= 40
    assert all(line.isprintable() for line in lines)
    left_out = 3000 - sum("xxx" in line for line in lines)
    assert f"… and {left_out} more processes" in lines


def test_secrets_are_masked_also_where_a_long_word_is_cut() -> None:
    argv = cut_words(("curl", "--token", TOKEN, f"{'x' * 180}://user:{'secret' * 9}@host"))
    assert TOKEN not in command_of("curl", argv)
    assert not any("secret" in word for word in argv)


def test_what_is_kept_of_a_process_is_bounded() -> None:
    kept = cut_words(("x" * 70_000,) * 1000)
    assert sum(map(len, kept)) < 4000
    assert cut_words(("ls", "-l")) == ("ls", "-l")


def test_who_has_not_made_itself_known_has_its_name_only() -> None:
    assert lines_of(_of(_process(argv=())))[2].endswith(r"[a\nb]")
