"""A hostile process tries what it can: other ABIs, other routes, swaps, races, floods."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.signals.conftest import OWN, Attack
from tests.support.signal_lab import Lab, python

ROUNDS = int(os.environ.get("SIGWRAP_TEST_ROUNDS", "10000"))
ENOUGH_S = 15 if "SIGWRAP_TEST_ROUNDS" in os.environ else 3
"""A race is given up then, on a machine with much else to do."""
ONE_OUTSIDE = "name: out, signals: [WINCH], target: user, decision: allow"

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


def _blocked(lab: Lab) -> list[tuple[str, str, str]]:
    found = lab.payloads("signal_blocked")
    return [(each["syscall"], each["target_type"], each["rule_name"]) for each in found]


# Other ABIs


def test_x32_calls_are_refused_and_recorded(own: Lab, attack: Attack) -> None:
    told = attack("x32_calls")
    assert told == [["ENOSYS"] * 6, {"child": [], "sibling": []}]
    refused = [event.payload["syscall_number"] for event in own.subject.events("abi_refused")]
    assert refused == [62, 200, 129, 520, 524, 234]


def test_upper_register_halves_hide_nothing(own: Lab, attack: Attack) -> None:
    told = attack("upper_halves")
    # The third names the group of that number: there is none. The last two are a question, and
    # which signal a descriptor without an owner is to send.
    results = ["EPERM", "EPERM", "ESRCH", *["EPERM"] * 6, 0, 0]
    assert told == [results, {"child": [], "sibling": []}]
    assert own.payloads("signal_sent") == []
    assert {kind for _, kind, _ in _blocked(own)} == {"siblings"}


# By way of a descriptor's owner


@pytest.mark.parametrize(
    "rules", [(OWN,), (OWN, ONE_OUTSIDE)], ids=["none goes out", "one may go out"]
)
def test_no_owner_but_who_may_be_killed(
    users_lab: Lab, rules: tuple[str, ...], programs: Path
) -> None:
    lab = users_lab.under(*rules)
    outside = lab.outsider()
    told = lab.tells(programs / "attacks.py", lab.boxes, "owns_others", outside.pid)
    results, own, groups, late = told
    assert all(each == {"sibling": "EPERM", "outside": "EPERM"} for each in results.values()), told
    assert all(each == [0, [34]] for each in own.values()), own
    assert all(each == ["EPERM", "EPERM"] for each in groups.values()), groups
    assert late == {"child": [], "sibling": []}
    assert outside.arrived() == [] and outside.lives
    sent = [(each["target_type"], each["signal"]) for each in lab.payloads("signal_sent")]
    # An owner is judged as if it were killed: when it is set, and when the signals begin.
    assert sent.count(("children", 9)) == 2 * len(own)
    assert sent.count(("children", 34)) == len(own)  # the signal that it is to get
    (started,) = lab.subject.events("session_started")
    assert "signal_wall" in started.payload["capabilities"]


def test_owners_are_set_as_the_kernel_would(attack: Attack) -> None:
    told = attack("owners_by_kind")
    process, group = 1, 2
    assert told == [
        [0, [group, "me"]],
        [0, [process, "nobody"]],
        [0, [group, "me"]],
        [0, [process, "nobody"]],
        [0, [group, "me"]],
        [0, [process, "child"]],
        [0, [process, "nobody"]],
        [0, [process, "child"]],
        ["ESRCH", [process, "child"]],
        ["ESRCH", [process, "child"]],
        ["EINVAL", [process, "child"]],
        ["EFAULT", [process, "child"]],
    ]


# Swapped while it is decided


@pytest.mark.parametrize("by", ["pidfd", "setown_ex", "ioctl"])
def test_what_is_swapped_meanwhile_reaches_nobody_else(own: Lab, compiled: Path, by: str) -> None:
    rounds = ROUNDS if by == "pidfd" else ROUNDS // 5
    program = compiled / "swaps_meanwhile.py"
    done = own.run(program, own.boxes, compiled / "swap", by, rounds, ENOUGH_S)
    (let, refused, wrong), late = map(json.loads, done.stdout.splitlines())
    assert wrong == 0
    assert let and refused  # both were tried
    assert late["sibling"] == []
    assert bool(late["child"]) == (by == "pidfd")


def test_pidfds_of_every_kind(attack: Attack) -> None:
    """Folders of /proc are refused. A process group's, a thread's; a file that is none."""
    results, late = attack("pidfds")
    assert results == {
        "folder": ["EPERM", "EPERM"],
        "folder, i386": ["EPERM", "EPERM"],
        "folder, to ask": [0, 0],
        "folder, by its path": "EPERM",
        "folder, flag": ["EPERM"] * 6,
        "group of its leader": "ESRCH",  # it leads none
        "thread": "EPERM",
        "thread, flag": ["EPERM", 0],
        "process, flag": ["EPERM", 0],
        "file": "EBADF",
    }
    assert late["sibling"] == []
    assert [each["signal"] for each in late["child"]] == [34] * 2


def test_a_pidfd_that_was_handed_in(own: Lab) -> None:
    outside = own.outsider()
    ours = os.pidfd_open(os.getpid())
    held = os.pidfd_open(outside.pid)
    try:
        text = "import sys\ntell([named(native(424, int(fd), 9, 0, 0)) for fd in sys.argv[1:]])"
        done = own.subject.run("--", *python(text, held, ours), pass_fds=(held, ours))
    finally:
        os.close(held)
        os.close(ours)
    assert json.loads(done.stdout) == ["EPERM", "EPERM"], done.stderr
    assert outside.lives and outside.arrived() == []
    assert len(_blocked(own)) == 2


def test_a_magic_pidfd_of_oneself_is_judged(own: Lab, attack: Attack) -> None:
    """With its flag it reaches the whole group, siblings too."""
    told = attack("magic_pidfd")
    assert told == [[0, 0], [34, 34], [34]]
    events = own.payloads("signal_sent")
    assert Counter(each["target_type"] for each in events) == {"self": 2, "children": 1}


def test_a_magic_pidfd_does_not_reach_a_sibling(own: Lab, programs: Path) -> None:
    assert own.tells(programs / "magic_pidfd_of_a_group.py", own.boxes) == [34, []]
    assert ("pidfd_send_signal", "siblings", "builtin:default") in _blocked(own)


def test_a_siginfo_of_ones_own_arrives_as_it_was(attack: Attack) -> None:
    results, infos = attack("own_siginfo")
    assert results == [0] * len(infos) + ["EINVAL", "EPERM", "EFAULT"]
    assert infos == [[-1, True]] * len(infos)


# Whose rights count


@needs_root
def test_root_in_ones_own_user_namespace_is_nobody_outside_of_it(lab: Lab, programs: Path) -> None:
    """The supervisor is root and carries the call out: only as far as the caller could."""
    lab.under("name: all, signals: ['@all'], decision: allow")
    told = lab.tells(programs / "attacks.py", lab.boxes, "root_of_its_own")
    if isinstance(told, str):
        pytest.skip(told)
    assert told == ["EPERM"] * 3


def test_a_process_that_is_not_dumpable_signals_like_any_other(attack: Attack) -> None:
    told = attack("not_dumpable")
    assert told == [[0] * 6, 3, 3]


# Tracing


@pytest.mark.promise("sigwrap is out of reach")
def test_nobody_traces_sigwrap_or_anybody_outside(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under("name: all, signals: ['@all'], target: session, decision: allow")
    outside = lab.outsider()
    told, own = lab.tells(programs / "traces_others.py", outside.pid)
    assert own == [0, 0, "opened"]
    for name in ("front", "supervisor", "outside"):
        assert told[name][:3] == ["EPERM"] * 3
        assert set(told[name][3:]) <= {"EPERM", "EACCES"}, (name, told[name])
    rules = Counter(rule for call, _, rule in _blocked(lab) if call == "ptrace")
    assert rules == {"builtin:sigwrap": 4, "builtin:ptrace": 2}  # the filter refuses to seize
    assert outside.lives


# As many as they can


def test_ten_processes_as_fast_as_they_can(own: Lab, attack: Attack) -> None:
    told = attack("ten_at_once")
    assert told == [[0] * 10, {"child": [], "sibling": []}]
    sent: Counter[int] = Counter()
    rows: Counter[int] = Counter()
    for each in own.payloads("signal_sent"):
        sent[each["source_pid"]] += each.get("count", 1)
        rows[each["source_pid"]] += 1
    assert sorted(sent.values()) == [1000] * 5
    assert max(rows.values()) < 60
    blocked = Counter(each["source_pid"] for each in own.payloads("signal_blocked"))
    assert sorted(blocked.values()) == [1000] * 5


# Numbers of a pid namespace


def test_numbers_of_a_pid_namespace_mean_what_they_mean_there(own: Lab, programs: Path) -> None:
    outside = own.outsider()
    program = programs / "namespaces.py"
    done = own.run(program, "numbers_of_a_namespace", own.boxes, outside.pid)
    said = list(map(json.loads, done.stdout.splitlines()))
    if isinstance(said[0], str):
        pytest.skip(said[0])
    told, by_first = said
    assert told["own"] == [3, 1]
    for name in ("above", "sibling"):
        assert told[name] == ["EPERM"] * 3, told
    for name in ("outside", "nobody"):
        assert told[name] == ["ESRCH"] * 3, told
    assert told["itself"] == [0] * 3
    assert told["group"] == [0]
    # Itself three times, and as one of its group.
    assert told["arrived"] == [4, []]
    assert by_first == [0, [35], 0]
    kinds = Counter(each["target_type"] for each in own.payloads() if each["target_pid"])
    assert kinds["external"] == kinds["system"] == kinds["user"] == 0
    senders = {each["source_pid"] for each in own.payloads("signal_sent")}
    assert all(pid > 3 for pid in senders), senders
    assert outside.arrived() == []


def test_numbers_that_are_given_away_at_once(lab: Lab, programs: Path) -> None:
    """In a pid namespace of twenty numbers, where a number is another process's in no time."""
    lab.under(OWN)
    done = lab.run(programs / "namespaces.py", "numbers_given_away", max(ROUNDS // 50, 1))
    said = list(map(json.loads, done.stdout.splitlines()))
    if isinstance(said[0], str):
        pytest.skip(said[0])
    sent, (made, hit) = said
    assert made > 20 and sent
    assert hit == 0


def test_a_namespaces_first_process_is_killed_by_nobody_in_it(
    users_lab: Lab, programs: Path
) -> None:
    """Not by way of the supervisor either, who stands above it."""
    lab = users_lab.under("name: all, signals: ['@all'], decision: allow")
    done = lab.run(programs / "namespaces.py", "kills_number_one")
    said = list(map(json.loads, done.stdout.splitlines()))
    if isinstance(said[0], str) and said[0] != "lives":
        pytest.skip(said[0])
    assert said == [[0, 0], "lives"]


def test_another_process_is_not_reached_by_its_threads(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN, ONE_OUTSIDE)
    program = programs / "threads_of_another.py"
    (results, count), status = map(json.loads, lab.run(program).stdout.splitlines())
    assert (results, status) == (["EPERM"] * count, 0)
    events = lab.payloads("signal_blocked")
    assert len(events) == count and {each["target_type"] for each in events} == {"siblings"}


# Children with other parents and other last words


def test_other_parents_and_exit_signals(own: Lab, programs: Path) -> None:
    """CLONE_PARENT makes a sibling, which may not be signalled; a strange exit signal reaches but
    the parent that asked for it."""
    done = own.run(programs / "other_parents.py")
    (results, mine, _sibling), root = map(json.loads, done.stdout.splitlines())
    assert (results, mine) == (["EPERM", "EPERM"], [35])
    assert root == [0, []]
    kinds = [kind for _, kind, _ in _blocked(own)]
    assert kinds == ["siblings", "session"]
