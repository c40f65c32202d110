"""A helper changes the shell that runs it (`renice -p $$`), and nothing beyond that."""

from __future__ import annotations

import pytest

from tests.support.harness import PYTHON
from tests.support.signal_lab import Lab

HELPERS = (
    "renice -n 5 -p $$",
    "ionice -c3 -p $$",
    "taskset -pc 0 $$",
    "chrt -i -p 0 $$",
)
CALLS = {"setpriority", "ioprio_set", "sched_setaffinity", "sched_setscheduler"}


def _says(lab: Lab, line: list[str], said: str) -> None:
    done = lab.subject.run("--", *line)
    assert done.stdout.decode().splitlines() == said.splitlines(), done.stderr.decode()


def _is_denied(lab: Lab, *lines: str, calls: set[str]) -> None:
    text = "".join(f"{{ {line}; }} >/dev/null 2>&1 && echo {at}\n" for at, line in enumerate(lines))
    _says(lab, ["bash", "-c", text], "")
    assert {each["syscall"] for each in lab.payloads("signal_blocked")} == calls


def test_a_helper_changes_its_shell(users_lab: Lab) -> None:
    """The command itself too, where it is a shell."""
    each = "".join(f"{{ {line}; }} >/dev/null || echo '{line}'\n" for line in HELPERS)
    shows = "cut -d' ' -f19 /proc/$$/stat"
    text = f"{each}{shows}\ndash -c '{each.replace(chr(39), '')}{shows.replace(chr(39), chr(34))}'"
    done = users_lab.subject.run("--", "bash", "-c", text)
    assert (done.stdout.split(), done.stderr) == ([b"5"] * 2, b"")
    sent = [each for each in users_lab.payloads() if each["rule_name"] == "builtin:parent"]
    assert {each["syscall"] for each in sent} == CALLS
    assert {(each["type"], each["decision"]) for each in sent} == {("signal_sent", "allow")}
    assert len(sent) == 2 * len(HELPERS)


def test_no_limits_no_group_and_no_realtime_class(users_lab: Lab) -> None:
    _is_denied(
        users_lab,
        "prlimit --pid $$ --nofile=100:",
        "chrt -f -p 1 $$",
        "ionice -c1 -p $$",
        "renice -n 5 -g $(cut -d' ' -f5 /proc/$$/stat)",
        calls={"prlimit64", *CALLS} - {"sched_setaffinity"},
    )


def test_a_grandchild_changes_nothing(users_lab: Lab) -> None:
    lines = (f"(sh -c '{line.replace('$$', '$PPID')}; exit $?')" for line in HELPERS)
    _is_denied(users_lab, *lines, calls=CALLS)


@pytest.mark.parametrize("below", [[], ["bash", "-c", '"$@"; exit $?', "bash"]])
def test_a_parent_that_is_no_shell_stays_as_it_is(users_lab: Lab, below: list[str]) -> None:
    """A shell that an agent runs can become the helper itself."""
    lines = [f"exec {line.replace('$$', '$PPID')}" for line in HELPERS]
    agent = "import subprocess, sys\nfor x in sys.argv[1:]: print(subprocess.call(['sh', '-c', x]))"
    done = users_lab.subject.run("--", *below, *PYTHON, "-c", agent, *lines)
    failed = [line for line in done.stdout.splitlines() if line.isdigit()]
    assert failed == [b"1"] * len(HELPERS)
    assert {each["syscall"] for each in users_lab.payloads("signal_blocked")} == CALLS
