"""What the kernel itself holds in a session, and what it leaves open here."""

from __future__ import annotations

import os

from sigwrap.linux import cgroups, landlock, procfs
from sigwrap.mediate.signal_rules import noise
from sigwrap.platform import Capability
from sigwrap.policy.judge.engine import Engine
from sigwrap.tuples import NamedTuple


class Walls(NamedTuple):
    unlogged_signals: frozenset[int]
    forks_are_mediated: bool
    domain: bool  # Landlock's: no signal leaves it, and its questions are answered from outside
    writable: tuple[str, ...] | None  # where alone it may write to files; None: everywhere
    without: tuple[str, ...]  # what is not held, or not possible inside

    @property
    def capabilities(self) -> list[Capability]:
        standing = {
            Capability.FORKS: self.forks_are_mediated,
            Capability.SIGNAL_WALL: self.domain,
            Capability.CGROUP_WALL: self.writable is not None,
        }
        return [capability for capability, stands in standing.items() if stands]


def walls_of(engine: Engine) -> Walls:
    domain = landlock.is_available()
    without = [] if domain else [f"landlock: it needs {landlock.NEEDS}"]
    if procfs.can_be_covered():
        without.append("proc: what is mounted over it inside is believed")
    mounts = cgroups.mount_points()
    threatening = cgroups.writable(mounts) if os.getuid() != 0 else ""
    may_mount = engine.policy.session.mounts
    if may_mount is None:
        may_mount = not (threatening and domain)
        if not may_mount:
            without.append("mounts: `session: {mounts: true}` in the policy would allow them")
    if threatening and (may_mount or not domain):
        without.append(f"cgroups: by {threatening} others can be stopped and killed")
    return Walls(
        unlogged_signals=noise(engine, domain=domain),
        forks_are_mediated=engine.policy.limits.hold_at_forks,
        domain=domain,
        writable=None if may_mount or not domain else tuple(cgroups.all_but(mounts)),
        without=tuple(without),
    )
