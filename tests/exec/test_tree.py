"""The shape of the tree: how deep a process is, whatever it does to hide it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.harness import EXECS, Sigwrap
from tests.support.policies import TRACING, policy
from tests.support.waiting import PATIENCE_S

LIMIT_REACHED = 124


def limited(sigwrap: Sigwrap, limits: str, rules: str = " []\n") -> str:
    return policy(sigwrap.folder, rules, f"limits: {{{limits}}}")


def run(sigwrap: Sigwrap, *line: str | Path) -> None:
    """Under a policy that allows all; it must end well."""
    done = sigwrap.run("-p", policy(sigwrap.folder, " []\n", TRACING), "--", *map(str, line))
    assert (done.returncode, done.stderr) == (0, b"")


def depths_of_true(sigwrap: Sigwrap) -> list[int]:
    found = sigwrap.sealed_events(*EXECS)
    return [event.payload["depth"] for event in found if event.payload["argv"][0] == "true"]


# Depth


@pytest.mark.parametrize("way", ["fork", "clone3", "beside", "clone32"])
def test_depth_survives_double_forks(as_user: Sigwrap, compiled: Path, way: str) -> None:
    """Each generation two deeper, in a session of its own, and its parent gone before it was
    seen."""
    run(as_user, compiled / "forks", "descend", way, "stays", "5")
    assert depths_of_true(as_user) == [10]


@pytest.mark.parametrize("how", ["hidden", "alike", "traced"])
def test_nobody_gets_less_deep_by_looking_like_its_subreaper(
    as_user: Sigwrap, compiled: Path, how: str
) -> None:
    """Undumpable, so that an ordinary user can't see its image; without randomization; and that
    with execs that can't be verified."""
    run(as_user, compiled / "orphans", how, "9")
    (depth,) = depths_of_true(as_user)
    assert depth >= 19


@pytest.mark.parametrize("end", ["ended", "killed"])
def test_all_ancestors_end_at_once(as_user: Sigwrap, compiled: Path, end: str) -> None:
    """Each had execed. One more than it is: who is left may have been a grandchild of the last."""
    run(as_user, compiled / "orphans", "execs", end, "3")
    found = {event.payload["argv"][-2]: event for event in as_user.sealed_events(*EXECS)[1:-1]}
    assert [found[left].payload["depth"] for left in ("2", "1", "0")] == [2, 3, 4]
    (depth,) = depths_of_true(as_user)
    assert 5 <= depth <= 6


def test_double_forks_in_a_pid_namespace(as_user: Sigwrap, compiled: Path) -> None:
    """The namespace's first process adopts them. Those of its own program it may have made itself:
    only for these the fork in between does not count, unless sigwrap still sees it. The kernel
    closes the files of a process, for which the next one waits, before it gives its children away.
    """
    made = ("unshare", "-fp") if as_user.user is None and os.getuid() == 0 else ("unshare", "-Urfp")
    if as_user.native(*made, "true").returncode:
        pytest.skip("needs to make a pid namespace")
    run(as_user, *made, compiled / "forks", "descend", "fork", "stays", "4")
    (depth,) = depths_of_true(as_user)
    assert 8 <= depth <= 9


@pytest.mark.parametrize("tracer", [(), ("strace", "-f", "-qq", "-o", "/dev/null")])
def test_orphans_of_one_program_are_equally_deep(as_user: Sigwrap, tracer: tuple[str, ...]) -> None:
    """A shell that sends one command after the other into the background."""
    if tracer and not shutil.which(tracer[0]):
        pytest.skip("needs strace")
    text = "i=0; while [ $i -lt 40 ]; do (/bin/true &); i=$((i + 1)); done"
    run(as_user, *tracer, "sh", "-c", text)
    found = as_user.sealed_events(*EXECS)
    depths = {event.payload["depth"] for event in found if event.payload["argv"] == ["/bin/true"]}
    shell = 1 if tracer else 0
    assert depths == {shell + 2}


# Programs started


@pytest.mark.promise("limits")
def test_max_execs_ends_the_run(sigwrap: Sigwrap) -> None:
    """COMMAND is the first; what the policy denies, or what isn't there, is none."""
    rules = "\n  - {name: no-false, commands: ['false'], decision: deny}\n"
    name = limited(sigwrap, "max_execs: 3", rules)
    text = "/bin/false; /no/such; /bin/true; /bin/true; /bin/false; echo so far; /bin/true; cat"
    process = sigwrap.start("-p", name, "--", "sh", "-c", text)
    assert process.wait(PATIENCE_S) == LIMIT_REACHED
    assert process.stdout.read() == b"so far\n"
    err = process.stderr.read()
    assert b"(rule limits.max_execs, policy test)" in err
    assert b"a limit ended the command: max_execs" in err
    assert len(sigwrap.sealed_events(*EXECS)) == 3
    denied = [event.payload["rule_name"] for event in sigwrap.events("exec_denied")]
    assert denied[:3] == ["no-false", "no-false", "limits.max_execs"]
    (event,) = sigwrap.events("limit_exceeded")
    facts = (event.payload["limit"], event.payload["maximum"], event.payload["effect"])
    assert facts == ("max_execs", 3, "terminated")
    assert event.payload["used"] == 3


# What people do


def test_a_shells_pipelines_never_fail_to_fork(sigwrap: Sigwrap) -> None:
    """Its children end while it forks, and its handler of SIGCHLD doesn't restart calls: were the
    filter to tell of forks, some would fail with EINTR."""
    name = limited(sigwrap, "max_processes: 100, max_children: 50, max_depth: 50")
    text = "i=0; while [ $i -lt 1000 ]; do : | : ; i=$((i + 1)); done; echo $i"
    done = sigwrap.run("-p", name, "--", "sh", "-c", text)
    assert (done.stdout, done.stderr) == (b"1000\n", b"")
