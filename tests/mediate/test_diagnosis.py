"""The state of a session as lines: cut, aligned, masked, and fit for a terminal."""

from __future__ import annotations

from sigwrap.log.codec import CUT, cut_payload
from sigwrap.session.diagnosis import (
    Diagnosis,
    Standstill,
    TreeProcess,
    lines_of,
    payload_of,
)
from sigwrap.session.lineage import cut_words

SHELL = TreeProcess(10, 9, 0, "sh", ("sh", "-c", "sleep 9"), "S", 75.0)
TOKEN = "ghp_" + "a1" * 18


def _of(*processes: TreeProcess, questions: dict[str, str] | None = None) -> Diagnosis:
    limits: dict[str, tuple[float, float]] = {"max_execs": (3, 100)}
    counts = {"exec_allowed": 3}
    return Diagnosis(None, list(processes), questions or {}, limits, counts, 0, 4096, "ab12")


def test_a_person_reads_the_tree_the_limits_and_the_counts() -> None:
    child = TreeProcess(11, 10, 1, "sleep", ("sleep", "9"), "S", 4000.0)
    found = _of(SHELL, child, questions={"a1b2c3": "git push"})
    assert lines_of(found) == [
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
    found = _of()._replace(stopped=Standstill("agent signal SIGSTOP from uid 1", 75.0, 1))
    assert lines_of(found)[1] == (
        "stopped for 1 m 15 s by agent signal SIGSTOP from uid 1; 1 exec waits"
    )
    assert payload_of(found)["stopped"] == {
        "by": "agent signal SIGSTOP from uid 1",
        "for_s": 75.0,
        "held": 1,
    }


def test_what_could_not_be_recorded_is_said() -> None:
    said = [lines_of(_of()._replace(unrecorded=count))[-1] for count in (1, 2)]
    assert said == [
        "log: 4096 bytes, 1 event could not be recorded",
        "log: 4096 bytes, 2 events could not be recorded",
    ]


def test_any_number_of_processes_fits_and_how_many_do_not_is_said() -> None:
    words = ("x" * 300, "\udcff" * 300, "\x1b[2J")
    many = [TreeProcess(100 + n, 99 + n, n, "sh", words, "S", 1.0) for n in range(3000)]
    asked = {f"{n:06}": "\udcff" * 500 for n in range(64)}
    found = _of(*many, questions=asked)
    payload = payload_of(found)
    assert CUT not in cut_payload(payload)
    assert len(payload["processes"]) + payload["processes_left_out"] == 3000
    assert len(payload["approvals"]) + payload["approvals_left_out"] == 64
    lines = lines_of(found)
    assert len(lines) <= 40
    assert all(line.isprintable() for line in lines)
    assert "… and 2976 more processes" in lines


def test_secrets_are_masked_also_where_a_long_word_is_cut() -> None:
    argv = cut_words(("curl", "--token", TOKEN, f"{'x' * 180}://user:{'secret' * 9}@host"))
    text = " ".join(lines_of(_of(SHELL._replace(argv=argv)))) + str(payload_of(_of(SHELL)))
    assert TOKEN not in text
    assert not any("secret" in word for word in argv)


def test_what_is_kept_of_a_process_is_bounded() -> None:
    kept = cut_words(("x" * 70_000,) * 1000)
    assert sum(map(len, kept)) < 4000
    assert cut_words(("ls", "-l")) == ("ls", "-l")


def test_who_has_not_made_itself_known_has_its_name_only() -> None:
    line = lines_of(_of(TreeProcess(10, 9, 0, "a\nb", (), "S", 0.0)))[2]
    assert line.endswith(r"[a\nb]")
