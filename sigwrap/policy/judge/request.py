"""Requests to a policy, and its decisions.

Named tuples take a third of the time of dataclasses, and one is made for every exec and signal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sigwrap.bare import Any, Enum, NamedTuple

DEFAULT_RULE = "builtin:default"
PROBE_RULE = "builtin:probe"


class Action(Enum):
    """Actions from the most lenient to the strictest.

    `redirect` is stricter than `approve`: the original command never runs.
    """

    ALLOW = "allow"
    AUDIT = "audit"
    APPROVE = "approve"
    REDIRECT = "redirect"
    ABSORB = "absorb"
    DENY = "deny"


class Operation(Enum):
    """An operation on a file."""

    READ = "read"  # contents; the names in a folder can always be read
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    EXECUTE = "execute"


LENIENT = frozenset({Action.ALLOW, Action.AUDIT})  # the action goes on as requested
STRICTNESS: dict[Action, int] = {action: rank for rank, action in enumerate(Action)}


class TargetType(Enum):
    """Target types from the most specific; an event names the first that applies."""

    SELF = "self"
    SIGWRAP = "parent"  # sigwrap, whatever process started the sender
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


_OUTSIDE = (TargetType.SIGWRAP, TargetType.SYSTEM, TargetType.USER, TargetType.EXTERNAL)
_IMPLIED: dict[TargetType, tuple[TargetType, ...]] = {
    **{each: (TargetType.SESSION,) for each in TargetType if each not in _OUTSIDE},
    TargetType.CHILDREN: (TargetType.DESCENDANTS, TargetType.SESSION),
    TargetType.SYSTEM: (TargetType.EXTERNAL,),
    TargetType.USER: (TargetType.EXTERNAL,),
}


def with_implied(types: Iterable[TargetType]) -> frozenset[TargetType]:
    stated = frozenset(types)
    return stated.union(*(_IMPLIED.get(each, ()) for each in stated))


def most_specific(types: frozenset[TargetType]) -> TargetType:
    return next(each for each in TargetType if each in types)


Fact = bool | Callable[[], bool]


def known(fact: Fact) -> bool:
    return fact if isinstance(fact, bool) else fact()


class AskedFact:
    """A fact that is found when a rule needs it, and kept for the event of the decision."""

    __slots__ = ("_find", "answer")

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find
        self.answer: Any = None

    def __call__(self) -> Any:
        self.answer = answer = self._find()
        return answer


def answer_of(fact: object) -> Any:
    """Return a known fact, or None if no rule needed it."""
    if isinstance(fact, AskedFact):
        return fact.answer
    return fact if isinstance(fact, bool) else None


class Program(NamedTuple):
    """A program that an exec would run: the file, an interpreter, or a wrapped command."""

    path: str  # absolute, symbolic links resolved; `.../NAME` if it is too long
    name: str  # the last part of the path as the caller gave it, links not resolved
    argv: tuple[str, ...]  # undecodable bytes as surrogates
    sha256: Callable[[], str] | None = None  # called only where a rule names digests
    elsewhere: bool = False  # in another mount namespace: no rule that allows matches it
    # These two are known, or called when a rule needs them.
    # Only root can change the path that was called; None: judge by the path.
    system_file: Fact | None = None
    loads_code: Fact = False  # variables that were set in the session load code into it
    # Another name of the file, or another spelling: only rules that name it count.
    counts_by_name: bool = False
    # The system command that this program shadows on PATH.
    shadows: str = ""
    # The path at which that search found it: `path` has links resolved.
    found: str = ""
    missing: bool = False  # not found; `path` is where it would be

    @property
    def basename(self) -> str:
        """The file's own name, or the name of another spelling."""
        return self.name if self.counts_by_name else self.path.rpartition("/")[2]

    @property
    def path_is_told(self) -> bool:
        return self.path.startswith("/")


class CommandRequest(NamedTuple):
    programs: tuple[Program, ...]  # the file itself first; never empty
    depth: int = 0
    truncated: bool = False  # argv was longer than what was read
    traced: bool = False  # the caller is traced, or not all of its memory can be compared
    cwd: str = ""  # see paths.py; empty if unknown


class SignalRequest(NamedTuple):
    signal: int
    target_types: frozenset[TargetType]
    target_command: str = ""
    target_pid: int = 0
    handled: Fact = False  # whether the target handles it; found when a rule needs it


class Via(Enum):
    EXEC = "exec"
    STUB = "stub"


HOST_VALUE = "${SIGWRAP_HOST:"  # how a value of sigwrap's own environment begins


class CommandRedirect(NamedTuple):
    command: str
    args: tuple[str, ...] = ()
    append_args: bool = False
    env: tuple[tuple[str, str], ...] = ()
    via: Via = Via.EXEC
    record: bool = False

    @property
    def has_secret(self) -> bool:
        """Return whether a variable has a value that the caller must not get."""
        return any(HOST_VALUE in value for _, value in self.env)

    def arguments(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return the arguments of the replacement for the original `argv`."""
        return (*self.args, *(argv[1:] if self.append_args else ()))


class Decision(NamedTuple):
    action: Action
    rule: str
    reason: str
    message: str = ""
    escalate: str = ""  # the agent signal to raise, or nothing
    redirect_to: CommandRedirect | None = None  # commands, with Action.REDIRECT
    shadows: str = ""  # commands: the system command that it shadows
    redirect_signal: int = 0  # signals, with Action.REDIRECT
    fallback: Action | None = None  # signals: if this can't be enforced
    log: bool = True  # False: no event; signals only


def is_below_policies(rule: str) -> bool:
    """Return whether sigwrap itself decided. The default is a policy's own."""
    return rule.startswith("builtin:") and rule != DEFAULT_RULE


def strictest(decisions: Iterable[Decision]) -> Decision:
    """Return the first of the strictest."""
    return max(decisions, key=lambda each: STRICTNESS[each.action])


PROTECTS_SIGWRAP = Decision(
    Action.DENY, "builtin:sigwrap", "processes in a session cannot signal or trace sigwrap"
)
