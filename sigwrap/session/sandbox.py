"""Plan what the kernel enforces in a session, and what it leaves open on this machine."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from sigwrap.bare import NamedTuple
from sigwrap.calls import Under
from sigwrap.errors import DOCTOR, NoInterception, SessionError
from sigwrap.files.tree import Listing, TooManyNames, as_they_lie
from sigwrap.kernel import descriptors, landlock, limits, procfs
from sigwrap.machine import Capability
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.files import CGROUP_RULE, PARTED_RULE, FileRules, SandboxRule
from sigwrap.policy.judge.request import Action, Operation
from sigwrap.policy.judge.rules import FileRule, Policy, default_of
from sigwrap.policy.problems import Place
from sigwrap.signal.facts import noise
from sigwrap.text import printable

_TO_TAKE = "pidfd_getfd, which is not permitted here"
_GIVES_IT = "in a container, add --cap-add SYS_PTRACE; --best-effort runs without it"
_CHANGES = (Operation.WRITE, Operation.CREATE, Operation.DELETE)


class FileSandbox(NamedTuple):
    """Sandbox rules: each restricted operation is allowed only where a rule permits it."""

    restricted: frozenset[Operation]
    allowed: tuple[SandboxRule, ...]
    by_policy: bool  # otherwise they only protect cgroups
    rules: FileRules | None = None  # as resolved on the disk, if the policy has them


class Sandbox(NamedTuple):
    """What the filter hands over, and what Landlock restricts."""

    unlogged_signals: frozenset[int]
    filtered: frozenset[Under]
    takes_descriptors: bool  # pidfd_getfd works; without it, stubs cannot record
    domain: bool  # Landlock's: it keeps signals in, and a process outside answers its requests
    files: FileSandbox | None  # None: no file operation is restricted
    without: tuple[str, ...]  # missing protection, or features that the session lacks
    told: tuple[str, ...]  # to the user, about the policy's file_rules on this machine

    @property
    def capabilities(self) -> list[Capability]:
        standing = {
            Capability.FORKS: Under.AT_FORK in self.filtered,
            Capability.NETWORK: Under.NETWORK_RULES in self.filtered,
            Capability.SIGNAL_WALL: self.domain,
            Capability.CGROUP_WALL: self.files is not None,
            Capability.FILE_WALL: self.files is not None and self.files.by_policy,
        }
        return [capability for capability, stands in standing.items() if stands]

    def keeps(self, path: str) -> bool:
        """Return whether the sandbox rules deny writing to the file."""
        if self.files is None or self.files.rules is None:
            return False
        return self.files.rules.decide(Operation.WRITE, path).action is Action.DENY


def plan_sandbox(engine: Engine, *, goes_without: bool) -> Sandbox:
    """Plan the sandbox. Raises NoInterception for rules that cannot work, unless `goes_without`."""
    policy = engine.policy
    domain = landlock.is_available()
    without = [] if domain else [f"landlock: it needs {landlock.NEEDS}"]
    told: list[str] = []
    if procfs.can_be_covered():
        without.append("proc: mounts over /proc in the session are trusted")
    held = bool(engine.files.restricted)
    if held and not landlock.holds_files():
        held = False
        told.append(f"the file_rules of {policy.name} need {landlock.FILES_NEED}")
        if not goes_without:
            hint = f"--best-effort runs without them; {DOCTOR}"
            raise NoInterception(told[0], errno.ENOSYS, hint)
        without += told
    filtered = frozenset(_filtered(engine))
    takes = descriptors.can_duplicate()
    if not takes:
        without.append(f"recording: it needs {_TO_TAKE}")
    if not takes and Under.NETWORK_RULES in filtered:
        filtered -= {Under.NETWORK_RULES, Under.DATAGRAM_RULES}
        told.append(f"the network_rules of {policy.name} need {_TO_TAKE}")
        if not goes_without:
            raise NoInterception(told[-1], errno.EPERM, _GIVES_IT)
        without.append(told[-1])
    mounts = limits.mount_points()
    threatening = _threatening(mounts)
    may_mount = _may_mount(policy, threatening, domain=domain, held=held)
    if not may_mount and not held and policy.session.mounts is None:
        without.append("mounts: `session: {mounts: true}` in the policy would allow them")
    if threatening and (may_mount or not (domain or held)):
        without.append(f"cgroups: {threatening} lets the session stop and kill other processes")
    files = None
    if held or (domain and not may_mount):
        rules = _file_rules(engine, mounts, held=held, by_policy=held)
        allowed = _sandbox_rules(policy, rules)
        files = FileSandbox(rules.restricted, allowed, held, rules if held else None)
        if held and (why := _parted_here(rules)):
            told.append(f"{policy.name}: {printable(why)}")
    return Sandbox(
        unlogged_signals=noise(engine, domain=domain),
        filtered=filtered,
        takes_descriptors=takes,
        domain=domain,
        files=files,
        without=tuple(without),
        told=tuple(told),
    )


def held_file_rules(engine: Engine) -> FileRules:
    """Return the rules as a run under that policy enforces them, for display."""
    policy, held, domain = engine.policy, bool(engine.files.restricted), landlock.is_available()
    mounts = limits.mount_points()
    may_mount = _may_mount(policy, _threatening(mounts), domain=domain, held=held)
    stands = held or (domain and not may_mount)
    return _file_rules(engine, mounts if stands else [], held=held, by_policy=True)


def _may_mount(policy: Policy, threatening: str, *, domain: bool, held: bool) -> bool:
    if held or policy.session.mounts is not None:
        return not held and bool(policy.session.mounts)
    return not (threatening and domain)


def _filtered(engine: Engine) -> Iterator[Under]:
    if engine.policy.session.tracing != "allow":
        yield Under.NO_TRACING
    if engine.policy.limits.hold_at_forks:
        yield Under.AT_FORK
    if engine.files.audits:
        yield Under.FILE_AUDIT
    if engine.network.must_mediate:
        yield Under.NETWORK_RULES
    if engine.network.must_mediate_datagrams:
        yield Under.DATAGRAM_RULES


def _threatening(cgroup_mounts: list[str]) -> str:
    return limits.writable(cgroup_mounts) if os.getuid() != 0 else ""


def _file_rules(
    engine: Engine, cgroup_mounts: list[str], *, held: bool, by_policy: bool
) -> FileRules:
    rules: list[FileRule] = []
    if cgroup_mounts:
        rules.append(_cgroup_rule(cgroup_mounts, _CHANGES if held else _CHANGES[:1]))
    policy = engine.policy
    default = default_of(policy, "file", policy.default_file if by_policy else Action.ALLOW)
    if by_policy:
        rules += as_they_lie(policy.file_rules, engine.files)
    return FileRules(rules, default)


def _sandbox_rules(policy: Policy, rules: FileRules) -> tuple[SandboxRule, ...]:
    try:
        return tuple(rules.sandbox_rules(Listing().names_in))
    except TooManyNames as too_many:
        message = f"too many names beside the paths that the file_rules of {policy.name} deny"
        hint = f"deny all of {too_many}, or nothing in it"
        raise SessionError(message, hint) from too_many


def _parted_here(rules: FileRules) -> str:
    """Return why PARTED_RULE denies creating files in the current folder; empty otherwise."""
    try:
        here = os.getcwd()
    except OSError:
        return ""  # the folder was removed
    decision = rules.decide(Operation.CREATE, os.path.join(here, "name"))
    is_felt = decision.rule == PARTED_RULE and os.access(here, os.W_OK)
    return decision.reason if is_felt else ""


def _cgroup_rule(mounts: list[str], operations: tuple[Operation, ...]) -> FileRule:
    """Deny changes of cgroups under every policy: these files stop and kill other processes."""
    place = Place(CGROUP_RULE, 0, 0)
    return FileRule(place, CGROUP_RULE, Action.DENY, tuple(mounts), operations)
