"""`limits.cpu_time` and `limits.memory`: whatever the tree looks like. As root, a run has control
groups of its own where they can be made, and as an ordinary user it has none."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.kernel import limits
from tests.support.backstop import Backstop
from tests.support.harness import PYTHON, Running, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S, await_that, reader

LIMIT_REACHED = 124
MIB = 1 << 20


def limited(subject: Sigwrap, limits: str) -> Sigwrap:
    subject.policy = policy(subject.folder, " []\n", f"limits: {{{limits}}}")
    return subject


def uses(programs: Path, *words: object) -> tuple[str, ...]:
    return ("--", *PYTHON, str(programs / "uses.py"), *map(str, words))


def is_ended(subject: Sigwrap, process: Running, limit: str) -> str:
    """By that limit and by no other; says why."""
    status = process.wait(PATIENCE_S)
    said = process.stderr.read().decode()
    assert status == LIMIT_REACHED, said
    (event,) = subject.sealed_events("limit_exceeded")
    assert (event.payload["limit"], event.payload["effect"]) == (limit, "terminated")
    why: str = event.payload["reason"]
    is_known = "the kernel killed" not in why
    assert ("used" in event.payload) is is_known
    assert not is_known or event.payload["used"] >= event.payload["maximum"]
    assert f"sigwrap: a limit ended the command: {why}" in said or "killed: " in said
    assert subject.alive() == []
    return why


# Processor time


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("burn", marks=pytest.mark.promise("usage limits")),
        "orphans",
        "daemon",
    ],
)
def test_processor_time_ends_the_run(as_user: Sigwrap, programs: Path, way: str) -> None:
    process = limited(as_user, "cpu_time: 1s").start(*uses(programs, *way.split()))
    why = is_ended(as_user, process, "cpu_time")
    used_s = float(why.removeprefix("cpu_time: used ").removesuffix(" s of 1 s of processor time"))
    assert used_s > 1
    (near,) = as_user.events("limit_near")
    assert near.payload["limit"] == "cpu_time"


def test_a_fork_bomb_has_no_more_time_than_others(
    as_user: Sigwrap, backstop: Backstop, programs: Path
) -> None:
    subject = limited(as_user, "cpu_time: 1s, max_processes: 12, at_fork: true")
    line = subject.line("--grace", "0.3", *uses(programs, "bomb"))
    process = subject.start_line([*backstop.words, *subject.as_user(), *line])
    assert process.wait(PATIENCE_S) == LIMIT_REACHED
    found = subject.sealed_events("limit_exceeded")
    ended = [event.payload["limit"] for event in found if event.payload["effect"] == "terminated"]
    assert ended == ["cpu_time"] and subject.alive() == []


# Memory


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("memory 120", marks=pytest.mark.promise("usage limits")),
        "hidden 120",
        "leaderless 120",
    ],
)
def test_memory_ends_the_run(as_user: Sigwrap, programs: Path, way: str) -> None:
    process = limited(as_user, "memory: 100M").start(*uses(programs, *way.split()))
    is_ended(as_user, process, "memory")


@pytest.mark.parametrize("way", ["forks", "vfork"])
def test_memory_that_is_shared_counts_once(
    as_user: Sigwrap, programs: Path, compiled: Path, way: str
) -> None:
    """All workers have it in their own page tables: 1,800 MB, if each had it for itself. And who is
    made by vfork has it until its exec."""
    subject = limited(as_user, "memory: 400M")
    line = uses(programs, "prefork", 8, 200) if way == "forks" else ("--", f"{compiled}/in_vfork")
    process = subject.start(*line)
    reader(process.stdout).until(rb"ready")
    subject.await_event("limit_near")
    process.say(b"\n")
    assert process.wait(PATIENCE_S) == 0
    (near,) = subject.sealed_events("limit_near", "limit_exceeded")
    assert (near.payload["limit"], near.payload["maximum"]) == ("memory", 400 * MIB)
    assert 200 * MIB <= near.payload["used"] < 350 * MIB


def test_who_goes_on_growing_is_killed_before_the_grace_is_over(
    as_user: Sigwrap, programs: Path
) -> None:
    subject = limited(as_user, "memory: 100M")
    process = subject.start("--grace", "1000", *uses(programs, "grows"))
    is_ended(as_user, process, "memory")


# Control groups


@pytest.fixture
def groups() -> Iterator[dict[str, Path]]:
    """For sigwrap to be in, and to make its own below; by controller."""
    found = {}
    for controller, above in limits.own_folders().items():
        if controller in ("", "memory", "cpuacct"):
            mount = max(filter(above.startswith, limits.mount_points()), key=len)
            path = Path(mount, f"sigwrap-test-{uuid.uuid4().hex}")
            try:
                path.mkdir()
            except OSError as why:
                pytest.skip(f"needs to make control groups: {why}")
            found[controller] = path
    if not found:
        pytest.skip("needs control groups")
    yield found
    for path in found.values():
        await_that(lambda path=path: not (path / "cgroup.procs").read_text())  # type: ignore[misc]
        for below in [each for each in path.iterdir() if each.is_dir()]:
            below.rmdir()
        path.rmdir()


def start_in(groups: dict[str, Path], subject: Sigwrap, *words: str) -> Running:
    enter = "".join(f"echo $$ > {group}/cgroup.procs && " for group in groups.values())
    line = [*subject.as_user(), *subject.line(*words)]
    return subject.start_line(["sh", "-c", enter + 'exec "$@"', "sh", *line])


def below(groups: dict[str, Path]) -> list[Path]:
    return [path for group in groups.values() for path in group.iterdir() if path.is_dir()]


@pytest.mark.fault(
    "missing resources",
    "control group without memory",
    sees="the kernel kills the largest process, not sigwrap (137 if it is the command)",
    keeps="complete",
)
def test_the_kernel_kills_who_has_most_where_a_group_has_no_memory_left(
    sigwrap: Sigwrap, groups: dict[str, Path]
) -> None:
    group = groups.get("memory", groups.get("", Path()))
    limits = [group / name for name in ("memory.limit_in_bytes", "memory.max")]
    limit = next((each for each in limits if each.exists()), None)
    if limit is None:
        pytest.skip("needs a control group for memory")
    limit.write_text(str(100 << 20))
    grows = f"{PYTHON[0]} -I -S -c 'b = bytearray(400 << 20)'"
    words = ("-p", "agent-observe", "--", "sh", "-c", f"{grows}; echo $?")
    process = start_in(groups, sigwrap, *words)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (0, b"137\n"), err
    killed = [each.payload["signal"] for each in sigwrap.sealed_events("process_exited")]
    assert signal.SIGKILL in killed


def test_a_session_has_groups_of_its_own_and_leaves_none(
    sigwrap: Sigwrap, groups: dict[str, Path]
) -> None:
    """Nor one that a killed session has left; the group of one that lives is no such leftover."""
    mine = "sigwrap-of-somebody-else"
    used = [path for controller, path in groups.items() if not (controller and "" in groups)]
    for group in used:
        (group / "sigwrap-20000101-000000-abcdef" / "below").mkdir(parents=True)
        (group / mine).mkdir()
    limited(sigwrap, "cpu_time: 1m, memory: 400M")
    process = start_in(groups, sigwrap, "--", "sh", "-c", "echo ready; read line")
    reader(process.stdout).until(rb"ready")
    session = sigwrap.events("session_started")[0].payload
    own = [path for path in below(groups) if path.name == f"sigwrap-{session['session_id']}"]
    assert own and session["missing"] == []
    for path in own:
        assert str(session["command_pid"]) in (path / "cgroup.procs").read_text().split()
        # As root inside may, or another root.
        (path.parent / "cgroup.procs").write_text(str(session["command_pid"]))
    assert start_in(groups, sigwrap, "--", "true").wait(PATIENCE_S) == 0
    assert all(path.is_dir() for path in own)
    process.say(b"\n")
    assert process.wait(PATIENCE_S) == 0
    assert {path.name for path in below(groups)} == {mine}


@pytest.mark.parametrize("what", ["burn", "120"])
def test_who_leaves_its_group_is_counted_all_the_same(
    sigwrap: Sigwrap, groups: dict[str, Path], programs: Path, what: str
) -> None:
    limited(sigwrap, "cpu_time: 1s, memory: 100M")
    away = ":".join(map(str, groups.values()))
    process = start_in(groups, sigwrap, *uses(programs, "leaves", away, what))
    is_ended(sigwrap, process, "cpu_time" if what == "burn" else "memory")
    assert below(groups) == []


def test_without_groups_the_log_says_what_is_not_counted(
    as_user: Sigwrap, groups: dict[str, Path]
) -> None:
    """An ordinary user may make none there."""
    if as_user.user is None:
        pytest.skip("root may")
    limited(as_user, "cpu_time: 1m, memory: 400M")
    assert start_in(groups, as_user, "--", "true").wait(PATIENCE_S) == 0
    missing = as_user.sealed_events("session_started")[0].payload["missing"]
    assert [each.partition(":")[0] for each in missing] == [
        "cgroup for cpu_time",
        "cgroup for memory",
    ]
