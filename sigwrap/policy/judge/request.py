"""What is asked of a policy, and what it answers.

Named tuples, not dataclasses: one is made for every exec and signal, at a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sigwrap.bare.enum import Enum
from sigwrap.hints import Any
from sigwrap.tuples import NamedTuple

DEFAULT_RULE = "builtin:default"
PROBE_RULE = "builtin:probe"


class Action(Enum):
    """From the most lenient to the strictest: of several answers, the later one holds.

    `redirect` is stricter than `approve`, for after it the original command never runs.
    """

    ALLOW = "allow"
    AUDIT = "audit"
    APPROVE = "approve"
    REDIRECT = "redirect"
    ABSORB = "absorb"
    DENY = "deny"


class Operation(Enum):
    """What is done with a file."""

    READ = "read"  # what is in it; the names in a folder can always be read
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    EXECUTE = "execute"


STRICTNESS: dict[Action, int] = {action: rank for rank, action in enumerate(Action)}


class TargetType(Enum):
    """From the most specific to the least: an event names the first one that holds."""

    SELF = "self"
    PARENT = "parent"
    ROOT = "root"
    CHILDREN = "children"
    ANCESTORS = "ancestors"
    DESCENDANTS = "descendants"
    SIBLINGS = "siblings"
    PEERS = "peers"
    AGENT = "agent"
    SESSION = "session"
    SYSTEM = "system"
    USER = "user"
    EXTERNAL = "external"


IMPLIED_TYPES: dict[TargetType, frozenset[TargetType]] = {
    TargetType.SELF: frozenset({TargetType.SESSION}),
    TargetType.PARENT: frozenset(),
    TargetType.ROOT: frozenset({TargetType.SESSION}),
    TargetType.CHILDREN: frozenset({TargetType.DESCENDANTS, TargetType.SESSION}),
    TargetType.ANCESTORS: frozenset({TargetType.SESSION}),
    TargetType.DESCENDANTS: frozenset({TargetType.SESSION}),
    TargetType.SIBLINGS: frozenset({TargetType.SESSION}),
    TargetType.PEERS: frozenset({TargetType.SESSION}),
    TargetType.AGENT: frozenset({TargetType.SESSION}),
    TargetType.SESSION: frozenset(),
    TargetType.SYSTEM: frozenset({TargetType.EXTERNAL}),
    TargetType.USER: frozenset({TargetType.EXTERNAL}),
    TargetType.EXTERNAL: frozenset(),
}


def with_implied(types: Iterable[TargetType]) -> frozenset[TargetType]:
    stated = frozenset(types)
    return stated.union(*(IMPLIED_TYPES[each] for each in stated))


def most_specific(types: frozenset[TargetType]) -> TargetType:
    return next(each for each in TargetType if each in types)


Fact = bool | Callable[[], bool]


class AskedFact:
    """A fact that is found out where a rule asks for it, and what was found then: the event of the
    decision has it, so that the same can be decided again."""

    __slots__ = ("_find", "answer")

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find
        self.answer: Any = None

    def __call__(self) -> Any:
        self.answer = answer = self._find()
        return answer


def answer_of(fact: object) -> Any:
    """None where nobody has asked."""
    if isinstance(fact, AskedFact):
        return fact.answer
    return fact if isinstance(fact, bool) else None


class Program(NamedTuple):
    """One of the things an exec would run: the file, an interpreter, what a wrapper wraps."""

    path: str  # absolute, symbolic links resolved; `.../NAME` where it is too long to be told
    name: str  # the last part of the path as the caller gave it, links not resolved
    argv: tuple[str, ...]  # undecodable bytes as surrogates
    sha256: Callable[[], str] | None = None  # called only where a rule names digests
    elsewhere: bool = False  # on a mount that isn't sigwrap's: no allowing rule is about it
    # These two are known, or found out by calling them where a rule asks.
    # Only root can change what it was called by; None: see its path.
    system_file: Fact | None = None
    loads_code: Fact = False  # variables set in the session load code into it
    # What the file is as well, or another spelling of its words: only a rule that names it counts.
    counts_by_name: bool = False
    # The system's command of that name, where a search along PATH found this one before it.
    shadows: str = ""
    # The path by which that search found it, as the caller gave it: `path` has links resolved.
    found: str = ""
    missing: bool = False  # it can't be found, and `path` is where it would be looked for

    @property
    def path_is_told(self) -> bool:
        return self.path.startswith("/")


class CommandRequest(NamedTuple):
    programs: tuple[Program, ...]  # the file itself first; never empty
    depth: int = 0
    truncated: bool = False  # argv was longer than what was read
    traced: bool = False  # the caller is being traced, or not all that is loaded can be compared
    cwd: str = ""  # what relative paths start from; see paths.py; empty where it isn't known


class SignalRequest(NamedTuple):
    signal: int
    target_types: frozenset[TargetType]
    target_command: str = ""
    target_pid: int = 0
    handled: Fact = False  # whether the target handles it; asked where a rule wants to know


class Via(Enum):
    EXEC = "exec"
    STUB = "stub"


class CommandRedirect(NamedTuple):
    command: str
    args: tuple[str, ...] = ()
    append_args: bool = False
    env: tuple[tuple[str, str], ...] = ()  # a value may hold ${SIGWRAP_HOST:NAME}
    via: Via = Via.EXEC
    record: bool = False

    def arguments(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Of the replacement; `argv` is what was asked for."""
        return (*self.args, *(argv[1:] if self.append_args else ()))


class Decision(NamedTuple):
    action: Action
    rule: str
    reason: str
    message: str = ""
    escalate: str = ""  # the agent signal to raise, or nothing
    redirect_to: CommandRedirect | None = None  # commands, with Action.REDIRECT
    shadows: str = ""  # commands: which of the system's it runs instead of
    redirect_signal: int = 0  # signals, with Action.REDIRECT
    fallback: Action | None = None  # signals: what to do where this can't be enforced
    log: bool = True  # False: no event; signals only


PROTECTS_SIGWRAP = Decision(
    Action.DENY, "builtin:sigwrap", "processes in a session cannot signal or trace sigwrap"
)
