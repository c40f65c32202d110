"""A cgroup that is the user's own: one write stops or kills everybody in it, sigwrap first."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sigwrap.kernel.limits import mount_points
from tests.support.harness import NOBODY, Sigwrap
from tests.support.signal_lab import Lab, python
from tests.support.waiting import PATIENCE_S, await_that

WORKS = dict.fromkeys(("file", "rename", "link", "null", "memory", "name", "proc"), "done")
ATTACKS = ("cgroup.kill", "cgroup.freeze", "cgroup.procs", "below", "by a descriptor")
RULE = "name: own, signals: ['@all'], target: session, decision: allow"


@pytest.fixture
def delegated() -> Iterator[Path]:
    """As systemd gives one to each user."""
    groups = [Path(path) for path in mount_points() if Path(path, "cgroup.controllers").exists()]
    group = next(iter(groups), Path("/none")) / f"sigwrap-test-{uuid.uuid4().hex}"
    try:
        group.mkdir()
    except OSError as why:
        pytest.skip(f"needs a cgroup to give away: {why}")
    for path in (group, *group.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    yield group
    await_that(lambda: not (group / "cgroup.procs").read_text())
    for below in [path for path in group.iterdir() if path.is_dir()]:
        below.rmdir()
    group.rmdir()


def _told(subject: Sigwrap, group: Path, programs: Path) -> tuple[dict[str, Any], int]:
    """By somebody whom sigwrap is in one group with."""
    enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    attack = python(programs / "writes_to_cgroups.py", group, subject.folder / "files")
    line = ["sh", "-c", enter, "sh", *subject.as_user(), *subject.line("--", *attack)]
    process = subject.start_line(line)
    said, error = process.communicate(b"", PATIENCE_S)
    told: dict[str, Any] = json.loads(said or b"{}")
    assert told, error
    return told, process.returncode


def _lab(subject: Sigwrap, mounts: bool | None) -> Lab:
    lab = Lab(subject).under(RULE)
    if mounts is not None:
        policy = Path(lab.subject.policy)
        keeps = f"session: {{mounts: {str(mounts).lower()}, "
        policy.write_text(policy.read_text().replace("session: {", keeps))
    return lab


@pytest.mark.parametrize("mounts", [None, False])
def test_no_cgroup_file_is_written_where_others_are_in_the_group(
    as_user: Sigwrap, delegated: Path, programs: Path, mounts: bool | None
) -> None:
    if as_user.user is None and mounts is None:
        mounts = False  # root's choice, and not what is done unasked
    lab = _lab(as_user, mounts)
    told, status = _told(lab.subject, delegated, programs)
    assert status == 0
    assert told.pop("own") == WORKS
    assert told.pop("mounts") is False
    assert told == dict.fromkeys(ATTACKS, "EACCES")
    (started,) = lab.subject.sealed_events("session_started")
    assert "cgroup_wall" in started.payload["capabilities"]
    unasked = "mounts: `session: {mounts: true}` in the policy would allow them"
    assert started.payload["missing"] == ([unasked] if mounts is None else [])


def test_a_policy_that_keeps_mounts_says_what_it_leaves_open(
    as_user: Sigwrap, delegated: Path, programs: Path
) -> None:
    lab = _lab(as_user, mounts=True)
    told, _killed = _told(lab.subject, delegated, programs)
    assert told["own"] == WORKS and told["cgroup.kill"] == "done"
    natively = as_user.native("unshare", "-U", "-r", "-m", "true")
    assert told["mounts"] is (natively.returncode == 0)
    (started,) = lab.subject.events("session_started")
    assert "cgroup_wall" not in started.payload["capabilities"]
    missing = [f"cgroups: {delegated} lets the session stop and kill other processes"]
    assert started.payload["missing"] == ([] if as_user.user is None else missing)
