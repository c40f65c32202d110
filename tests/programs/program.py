"""What the entry of a program says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

PIDS_OF_BASH = (r"^(bash: line \d+: +)\d+ ", r"\1PID ")
"""For `normalize`: in what a shell says of a job that was killed."""

AWAIT = (
    'await() { for i in $(seq 500); do "$@" 2>/dev/null && return; sleep 0.02; done;'
    ' echo "waited in vain: $*"; }; gone() { ! kill -0 $1; };'
)
"""Before a step that waits for what takes a moment: `await test -e file`, `await gone $pid`."""

POLICIES = ("agent-default", "agent-observe", "ci")


class User(Enum):
    US = "us"
    """Whoever runs the tests: root, as a rule."""
    ORDINARY = "ordinary"


# What is done to COMMAND from outside while it runs.


@dataclass(frozen=True, slots=True)
class See:
    """Wait until this pattern is in the output, or on the screen of a terminal."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Type:
    """Keys, on a terminal: `^C` is typed as \\x03."""

    text: str


@dataclass(frozen=True, slots=True)
class Shot:
    """The screen as it is now is part of the outcome."""


@dataclass(frozen=True, slots=True)
class Send:
    """A signal to the process that the caller started: COMMAND natively, sigwrap when wrapped."""

    signal: str


@dataclass(frozen=True, slots=True)
class Do:
    """Run by sh outside of COMMAND, natively; what it prints is part of the outcome."""

    text: str


Act = See | Type | Shot | Send | Do


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """COMMAND is `line`, or, with `steps`, an agent that runs each of them by `bash -c`.

    All texts of a shell find $CACHE, the folder that `setup` has filled, and the work folder as
    their current folder; so does `line`, in which only $CACHE and the other variables of the
    environment are replaced."""

    name: str
    needs: tuple[str, ...] = ()
    """On PATH, where the user may run it."""
    there: str = ""
    """For what `needs` can't say: by sh, as the user; fails with the reason why it isn't there."""
    setup: str = ""
    """Once, natively, in $CACHE: by sh -eu, as we are. May use package registries. Runs anew when
    its text changes."""
    before: str = ""
    """Natively, by sh -eu, in the work folder: what COMMAND finds."""
    line: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    acts: tuple[Act, ...] = ()
    after: str = ""
    """Natively, by sh, when COMMAND has ended; what it prints is part of the outcome."""
    terminal: bool = False
    """Of 80 columns and 24 rows, with COMMAND in its foreground."""
    users: tuple[User, ...] = (User.US, User.ORDINARY)
    within_s: float = 60
    processes: int = 300
    """At most, at a time: the kernel holds it."""
    normalize: tuple[tuple[str, str], ...] = ()
    """Patterns and what they become in all that was said (re.sub, multi-line)."""
    keep: Callable[[str], str] | None = None
    """What of the standard streams is compared: a suite's results instead of all that it says."""
    must_say: str = ""
    """A pattern in what is kept of the native output, without which nothing was tried."""
    ignore_files: str = ""
    """A pattern of paths that are not compared. What differs between two native runs isn't."""
    forwarded: bool = False
    """Not under a policy: the compared run finds sigwrap-forward as $FORWARD, which natively is
    empty."""
    interrupted: bool = False
    """COMMAND is ended by an interrupt to sigwrap, whose status is 130 then."""
    differs: dict[str, str] = field(default_factory=dict)
    """Why a run differs from a native one, by policy, or by "policy user", or for "*": so it must
    be, and is expected."""
    quick: bool = False
    """Runs in `make test` as well."""

    def why_it_differs(self, policy: str, user: User) -> str:
        keys = (f"{policy} {user.value}", policy, f"* {user.value}", "*")
        return next((self.differs[key] for key in keys if key in self.differs), "")

    def normalized(self, said: str) -> str:
        for pattern, becomes in self.normalize:
            said = re.sub(pattern, becomes, said, flags=re.MULTILINE)
        return said

    def kept(self, said: str) -> str:
        return self.keep(said) if self.keep else said
