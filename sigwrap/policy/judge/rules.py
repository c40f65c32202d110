"""The policy as the engine reads it: checked, typed, variables filled in; and its limits on the
process tree.

Named tuples take an eighth of the time of dataclasses, and sigwrap makes these at every start.
"""

from __future__ import annotations

from sigwrap.bare import NamedTuple
from sigwrap.policy.judge.request import (
    DEFAULT_RULE,
    Action,
    CommandRedirect,
    Decision,
    Operation,
    SignalRequest,
    TargetType,
)
from sigwrap.policy.problems import Place, Problem


class Depth(NamedTuple):
    min: int = 0
    max: int | None = None

    def holds(self, depth: int) -> bool:
        return self.min <= depth and (self.max is None or depth <= self.max)


class CommandRule(NamedTuple):
    place: Place
    name: str
    decision: Action
    commands: tuple[str, ...]
    description: str = ""
    args: tuple[str, ...] | None = None  # None: any
    flags: tuple[str, ...] = ()
    args_patterns: tuple[str, ...] = ()
    subcommands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    depth: Depth | None = None
    sha256: frozenset[str] = frozenset()
    not_sha256: frozenset[str] = frozenset()
    truncated: bool | None = None
    traced: bool | None = None
    system_file: bool | None = None
    loads_code: bool | None = None
    message: str = ""
    redirect_to: CommandRedirect | None = None
    escalate: str = ""
    overrides: tuple[str, ...] | None = None  # rules of a base; None: not given
    layer: int = 0  # of the file in its chain of bases: 0 for the last base

    @property
    def judges_words(self) -> bool:
        """Return whether the rule asks for more than a subcommand in the arguments."""
        words = (self.flags, self.args_patterns, self.paths, self.sources, self.outside)
        return self.args is not None or any(words)


class ProcessPattern(NamedTuple):
    glob: str
    kind: TargetType | None = None  # None: any


class PidRange(NamedTuple):
    minimum: int
    maximum: int


Target = TargetType | ProcessPattern | PidRange


class SignalRule(NamedTuple):
    place: Place
    name: str
    decision: Action
    signals: frozenset[int]
    description: str = ""
    targets: tuple[Target, ...] = ()  # empty: every target
    handled: bool | None = None
    message: str = ""
    redirect_signal: int = 0
    fallback: Action | None = None
    log: bool = True
    escalate: str = ""
    overrides: tuple[str, ...] | None = None
    layer: int = 0


class FileRule(NamedTuple):
    place: Place
    name: str
    decision: Action
    paths: tuple[str, ...]
    operations: tuple[Operation, ...]
    description: str = ""
    make_missing: bool = False
    overrides: tuple[str, ...] | None = None
    layer: int = 0


class NetworkRule(NamedTuple):
    place: Place
    name: str
    decision: Action
    destinations: tuple[str, ...]
    description: str = ""
    ports: tuple[int, ...] = ()  # empty: every port
    protocol: str = ""  # empty: every one
    direction: str = "connect"
    message: str = ""
    overrides: tuple[str, ...] | None = None
    layer: int = 0


Rule = CommandRule | SignalRule | FileRule | NetworkRule


class EnvPolicy(NamedTuple):
    remove: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    place: Place | None = None  # of the section that was read last


DEFAULT_LOG_SIZE_BYTES = 1 << 30
LOG_REACTIONS = ("end", "deny")


class Limits(NamedTuple):
    """Limits; 0 means none."""

    max_depth: int = 0
    max_children: int = 0
    max_processes: int = 0
    max_execs: int = 0
    wall_time_s: int = 0
    cpu_time_s: int = 0
    memory_bytes: int = 0
    at_fork: bool = False
    log_size_bytes: int = 0  # DEFAULT_LOG_SIZE_BYTES
    at_log_size: str = ""  # one of LOG_REACTIONS; empty: the first

    @property
    def hold_at_forks(self) -> bool:
        return self.at_fork and bool(self.max_depth or self.max_children or self.max_processes)

    @property
    def count_at_execs(self) -> bool:
        return not self.at_fork and bool(self.max_children or self.max_processes)

    @classmethod
    def keys(cls) -> dict[str, str]:
        """Map each field to its key in a policy, which has no unit."""
        return {field: field.removesuffix("_s").removesuffix("_bytes") for field in cls._fields}


TRACING = ("allow", "deny")


class Session(NamedTuple):
    mounts: bool | None = None  # None: unless that leaves other cgroups open
    tracing: str = ""  # one of TRACING; empty: deny


class LoopWatch(NamedTuple):
    same_exec: int
    within_s: int
    action: str = "log"


class Watch(NamedTuple):
    loop: LoopWatch | None = None
    drift: str = "log"


class Trust(NamedTuple):
    path_shadow: Action = Action.AUDIT
    boundary: str = "log"


class CommandCase(NamedTuple):
    place: Place
    argv: tuple[str, ...]
    decision: Action
    rule: str
    depth: int = 1
    truncated: bool = False
    traced: bool = False
    system_file: bool | None = None
    loads_code: bool | None = None
    cwd: str = "/project"


class SignalCase(NamedTuple):
    place: Place
    request: SignalRequest
    decision: Action
    rule: str


class FileCase(NamedTuple):
    place: Place
    path: str
    operation: Operation
    decision: Action
    rule: str


class NetworkCase(NamedTuple):
    place: Place
    destination: str
    direction: str
    protocol: str
    decision: Action
    rule: str


Case = CommandCase | SignalCase | FileCase | NetworkCase


class Policy(NamedTuple):
    """A policy with the rules of its bases, own rules first; `cases` are its own.

    The defaults are those of a policy without a base.
    """

    name: str = ""
    file: str = ""
    description: str = ""
    sequence: int = 0  # with `expires`, of a policy by URL
    expires: str = ""
    bases: tuple[str, ...] = ()
    tolerates_old_kernels: bool = False  # runs also where the kernel cannot enforce all of it
    default_command: Action = Action.DENY
    default_signal: Action = Action.DENY
    default_file: Action = Action.ALLOW
    default_network: Action = Action.ALLOW
    variables: tuple[tuple[str, str], ...] = ()
    command_rules: tuple[CommandRule, ...] = ()
    signal_rules: tuple[SignalRule, ...] = ()
    file_rules: tuple[FileRule, ...] = ()
    network_rules: tuple[NetworkRule, ...] = ()
    env_policy: EnvPolicy = EnvPolicy()
    limits: Limits = Limits()
    session: Session = Session()
    watch: Watch = Watch()
    trust: Trust = Trust()
    cases: tuple[Case, ...] = ()
    base_cases: tuple[Case, ...] = ()
    warnings: tuple[Problem, ...] = ()
    asks: bool = True  # False: what needs approval is denied
    home: str = ""  # `~`; empty if unknown
    network_place: Place | None = None  # of the key that set default_network last

    @property
    def has_patterns(self) -> bool:
        """Return whether RE2 is needed: a pattern is compiled when a request first meets it."""
        return any(rule.args_patterns for rule in self.command_rules)

    @property
    def has_recordings(self) -> bool:
        """Return whether a rule records what a command reads and writes."""
        redirects = (rule.redirect_to for rule in self.command_rules)
        return any(redirect is not None and redirect.record for redirect in redirects)


def decision_of(rule: Rule, *, asks: bool = True) -> Decision:
    """Return the decision of a rule; without `asks`, what needs approval is denied."""
    reason = f"rule {rule.name} ({rule.place.file}:{rule.place.line})"
    message = "" if isinstance(rule, FileRule) else rule.message
    escalate = rule.escalate if isinstance(rule, CommandRule | SignalRule) else ""
    return _asked(Decision(rule.decision, rule.name, reason, message, escalate), asks=asks)


def default_of(policy: Policy, kind: str, action: Action) -> Decision:
    reason = f"no {kind} rule of {policy.name} matches; its default is {action.value}"
    return _asked(Decision(action, DEFAULT_RULE, reason), asks=policy.asks)


def _asked(decision: Decision, *, asks: bool) -> Decision:
    if asks or decision.action is not Action.APPROVE:
        return decision
    reason = f"{decision.reason}: it needs approval, and the policy has approvals: deny"
    return decision._replace(action=Action.DENY, reason=reason)


# Limits of the policy on the process tree, checked at an exec.


class Crowd(NamedTuple):
    """Numbers of known processes, the caller among them."""

    siblings: int  # children of its parent
    processes: int  # of the session


def exceeded(limits: Limits, depth: int, crowd: Crowd) -> Decision | None:
    if limits.max_depth and depth > limits.max_depth:
        return _denial("max_depth", f"depth {depth} exceeds the limit of {limits.max_depth}")
    if limits.at_fork:
        return None  # the others are checked at each fork
    if limits.max_children and crowd.siblings > limits.max_children:
        why = f"{crowd.siblings} children exceed the limit of {limits.max_children}"
        return _denial("max_children", why)
    if limits.max_processes and crowd.processes > limits.max_processes:
        why = f"{crowd.processes} processes exceed the limit of {limits.max_processes}"
        return _denial("max_processes", why)
    return None


def used_up(limits: Limits, execs: int) -> Decision | None:
    """Check `max_execs` against the number of execs so far, the first one included."""
    if not limits.max_execs or execs < limits.max_execs:
        return None
    return _denial("max_execs", f"{execs} programs were started, which is the limit")


def _denial(limit: str, why: str) -> Decision:
    text = f"{limit}: {why}"
    return Decision(action=Action.DENY, rule=f"limits.{limit}", reason=text, message=text)
