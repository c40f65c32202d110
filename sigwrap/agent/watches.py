"""Detect loops (SIGLOOP) and execs outside a profile (SIGDRIFT).

Neither protects against a hostile process: to loop unseen, it can run enough other programs in
between, or change an argument each time.
"""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.bare import blake2b, deque
from sigwrap.errors import PolicyError
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import LENIENT, CommandRequest, Program
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.judge.subcommand import name_for_subcommands, readings
from sigwrap.policy.judge.tools import has_subcommands

MAX_EXECS_WATCHED = 1024

_DIGEST_SIZE = 16


class LoopWatch:
    """Detects the same exec `same_exec` times within `within_s`.

    A loop counts once, however long it lasts. It ends when the exec pauses for `within_s`.
    """

    def __init__(self, same_exec: int, within_s: float) -> None:
        self._same_exec = same_exec
        self._within_s = within_s
        self._seen: dict[bytes, _Seen] = {}  # the most recent one is the last

    def noted(self, file: str, argv: Sequence[str], cwd: str, now_s: float) -> bool:
        """Return whether this exec completes a loop.

        Beyond MAX_EXECS_WATCHED different execs, the least recent one is forgotten.
        """
        key = _digest(file, cwd, *argv)
        seen = self._seen.pop(key, None)
        if seen is None or now_s - seen.last_s > self._within_s:
            seen = _Seen(self._same_exec)
        self._seen[key] = seen
        if len(self._seen) > MAX_EXECS_WATCHED:
            del self._seen[next(iter(self._seen))]
        return seen.makes_loop(now_s, self._within_s)


class _Seen:
    __slots__ = ("_is_loop", "_times_s", "last_s")

    def __init__(self, same_exec: int) -> None:
        self._times_s: deque[float] = deque(maxlen=same_exec)
        self._is_loop = False
        self.last_s = 0.0

    def makes_loop(self, now_s: float, within_s: float) -> bool:
        self.last_s = now_s
        if self._is_loop:
            return False
        times_s = self._times_s
        times_s.append(now_s)
        self._is_loop = len(times_s) == times_s.maxlen and now_s - times_s[0] <= within_s
        if self._is_loop:
            times_s.clear()
        return self._is_loop


class DriftWatch:
    """Compares execs with a profile. `sigwrap policy learn --new` makes one: a policy that allows
    what was observed, and nothing else."""

    def __init__(self, profile: Policy) -> None:
        why = _why_it_is_none(profile)
        if why:
            raise PolicyError(
                f"{profile.file} is not a profile: {why}",
                "make one from sessions: sigwrap policy learn --new",
            )
        self.name = profile.name
        self._engine = Engine(profile)

    def outside(self, request: CommandRequest) -> Program | None:
        """Return the first program of the request that is outside the profile."""
        if self._engine.decide_command(request).action in LENIENT:
            return None
        for program in request.programs:
            if program.counts_by_name:  # another spelling, which no profile has
                continue
            if self._engine.decide_program(program, request).action not in LENIENT:
                return program
        return request.programs[0]


def _why_it_is_none(policy: Policy) -> str:
    if policy.default_command in LENIENT:
        return "it allows commands that none of its rules names"
    for rule in policy.command_rules:
        if rule.sha256 or rule.not_sha256:  # the exec would wait for the digest
            return f"its rule {rule.name} has file digests (line {rule.place.line})"
    return ""


def program_and_subcommand(program: Program) -> tuple[str, ...]:
    """Return what a profile distinguishes programs by."""
    basename = program.path.rpartition("/")[2]
    called = name_for_subcommands(basename, program.name)
    if not has_subcommands(called):
        return (program.path,)
    words = {next(iter(each), "") for each in readings(called, program.argv)}
    return (program.path, *sorted(words))


def _digest(*words: str) -> bytes:
    """Return a digest of the words, none of which has a NUL."""
    text = "\0".join(words).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=_DIGEST_SIZE).digest()
