"""What is settled about a signal holds for the same facts only. A thousandth signal is recorded and
goes on like the first one."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import PYTHON
from tests.support.signal_lab import Lab, python

OFTEN = 1000
ROUNDS = 20
CHILDREN = "name: children, signals: ['@all'], target: [self, children], decision: allow"

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


def _tells(lab: Lab, programs: Path, name: str, *words: object) -> Any:
    return lab.tells(programs / "settled.py", lab.boxes, name, *words)


def _said(lab: Lab, programs: Path, name: str, *words: object) -> list[Any]:
    done = lab.run(programs / "settled.py", lab.boxes, name, *words)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _results(result: object, times: int) -> list[object]:
    return [{str(result): times}, result, result]


def _without_time(payload: dict[str, Any]) -> str:
    return json.dumps({**payload, "evaluation_us": 0})


def test_a_thousand_are_like_the_first(users_lab: Lab, programs: Path) -> None:
    """Allowed, audited, unlogged, denied, absorbed, sent as another one."""
    lab = users_lab.under(
        "name: go, signals: [34], target: children, decision: allow",
        "name: look, signals: [35], target: children, decision: audit, message: seen",
        "name: quiet, signals: [36], target: children, decision: allow, log: false",
        "name: no, signals: [37], target: children, decision: deny",
        "name: swallow, signals: [38], target: children, decision: absorb",
        "name: other, signals: [39], target: children, decision: redirect, redirect_to: 40",
    )
    told = _tells(lab, programs, "often", 34, 35, 36, 37, 38, 39)
    went, failed = _results(0, OFTEN), _results("EPERM", OFTEN)
    assert told == [
        [went, OFTEN],
        [went, OFTEN],
        [went, OFTEN],
        [failed, 0],
        [went, 0],
        [went, OFTEN],
    ]
    payloads = lab.payloads()
    assert Counter(each["rule_name"] for each in payloads) == {
        **dict.fromkeys(("go", "look", "no", "swallow", "other"), OFTEN)
    }
    assert len(set(map(_without_time, payloads))) == 5
    assert all(each["evaluation_us"] >= 0 for each in payloads)


@pytest.mark.parametrize("is_same_file", [False, True])
def test_the_target_runs_another_program(
    users_lab: Lab, programs: Path, is_same_file: bool
) -> None:
    """Its name decides, even if the file stays the same."""
    sleeps = users_lab.subject.folder / "sleep"
    sleeps.symlink_to(PYTHON[0] if is_same_file else str(shutil.which("sleep")))
    words = ("-c", "import signal; signal.pause()") if is_same_file else ("1000",)
    lab = users_lab.under(
        "name: sleeps, signals: [34], target: {type: children, pattern: sleep}, decision: deny",
        CHILDREN,
    )
    told = _tells(lab, programs, "target_runs", sleeps, *words)
    assert told == [_results(0, 20), _results("EPERM", 20)]
    names = Counter(each["target_cmd"] for each in lab.payloads("signal_blocked"))
    assert names == {"sleep": 20}


def test_the_target_names_itself(users_lab: Lab, programs: Path) -> None:
    """A name that a process gives itself counts for nothing, before and after."""
    lab = users_lab.under(
        "name: sleeps, signals: [34], target: {type: children, pattern: sleep}, decision: deny",
        CHILDREN,
    )
    told = _tells(lab, programs, "target_names_itself", "sleep")
    assert told == [_results(0, 20)] * 2
    sent = [each for each in lab.payloads() if each["signal"] == 34]
    assert len(set(map(_without_time, sent))) == 1


@pytest.mark.parametrize("has_same_name", [False, True])
def test_the_sender_runs_another_program(
    users_lab: Lab, programs: Path, has_same_name: bool
) -> None:
    """It is no worker of its parent's any more, even if its name stays the same."""
    lab = users_lab.under("name: peers, signals: [34], target: peers, decision: allow")
    name = Path(PYTHON[0]).name if has_same_name else "other"
    bash = shutil.copy("/bin/bash", users_lab.subject.folder / name)
    line = (bash, "-c", "for i in 1 2 3; do kill -34 $0; done 2>&-; exit 0")
    before, arrived = _said(lab, programs, "sender_runs", *line)
    assert (before, arrived) == (_results(0, 20), 20)
    found = Counter(each["source_cmd"] for each in lab.payloads("signal_blocked"))
    assert found == {name: 3}


def test_the_sender_runs_the_same_program_by_another_name(users_lab: Lab, programs: Path) -> None:
    """It stays a worker of its parent's, and its events say the new name."""
    lab = users_lab.under("name: peers, signals: [34], target: peers, decision: allow")
    other = users_lab.subject.folder / "other"
    other.symlink_to(PYTHON[0])
    line = (other, "-c", "import os, sys\nfor _ in range(3): os.kill(int(sys.argv[1]), 34)")
    before, arrived = _said(lab, programs, "sender_runs", *line)
    assert (before, arrived) == (_results(0, 20), 23)
    found = Counter(each["source_cmd"] for each in lab.payloads() if each["signal"] == 34)
    assert found == {Path(PYTHON[0]).name: 20, "other": 3}


@needs_root
def test_another_process_gets_the_number_of_the_target(lab: Lab, programs: Path) -> None:
    """A child may be signalled, and a grandchild may not."""
    lab = lab.under(CHILDREN)
    told = _said(lab, programs, "takes_the_number")
    if not told:
        pytest.skip("other processes took the number")
    assert told[0] == [_results(0, 20), _results("EPERM", 20)]
    targets = {each["target_pid"] for each in lab.payloads("signal_sent") if each["signal"] == 34}
    assert {each["target_pid"] for each in lab.payloads("signal_blocked")} == targets


def test_no_signal_without_room_in_the_log(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(CHILDREN)
    path = Path(lab.subject.policy)
    limits = "limits: {log_size: 128K, at_log_size: deny}\n"
    path.write_text(path.read_text() + limits)
    done = lab.subject.run("--", *python(programs / "settled.py", lab.boxes, "until_refused"))
    sent, result, got, refused, late = json.loads(done.stdout)
    assert (result, refused, late) == ("EPERM", {"EPERM": 10}, 0)
    assert got == sent == len([x for x in lab.payloads("signal_sent") if x["signal"] == 34]) > 100


@pytest.mark.parametrize("how", ["exec", "kill"])
def test_a_sender_that_ends_meanwhile(users_lab: Lab, programs: Path, how: str) -> None:
    """Each signal that arrives has its event, under the name of its sender at that time."""
    lab = users_lab.under(CHILDREN, "name: rest, signals: [34], target: session, decision: allow")
    senders, arrived = _tells(lab, programs, "ends_meanwhile", how, ROUNDS)
    sent = [each for each in lab.payloads("signal_sent") if each["signal"] == 34]
    assert not Counter(arrived) - Counter(each["source_pid"] for each in sent)
    assert {each["source_pid"] for each in sent} == set(senders) == set(arrived)
    assert len({each["source_cmd"] for each in sent}) == 1  # python, and never true
