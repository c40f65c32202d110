"""Problems of a policy, each with its place and the closest right word."""

from __future__ import annotations

from collections.abc import Iterable

from sigwrap.bare import Enum, NamedTuple
from sigwrap.errors import PolicyError


class Place(NamedTuple):
    file: str
    line: int  # from 1
    column: int  # from 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


class Problem(NamedTuple):
    place: Place
    message: str
    offending: str = ""
    nearest: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        severity = "" if self.severity is Severity.ERROR else f"{self.severity.value}: "
        colon = "" if self.message.startswith(("unknown ", "duplicate ")) else ":"
        offending = f"{colon} {_quoted(self.offending)}" if self.offending else ""
        nearest = f" (did you mean {_quoted(self.nearest)}?)" if self.nearest else ""
        return f"{self.place}: {severity}{self.message}{offending}{nearest}"


class InvalidPolicy(PolicyError):
    """The policy cannot be used; show the headline and all of `problems`."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=_position))
        count = len(self.problems)
        one = str(self.problems[0]) if count == 1 else ""
        super().__init__(one or f"{count} problems in the policy:")

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def lines(self) -> list[str]:
        if len(self.problems) == 1:
            return [self.message]
        return [self.message, *(f"  {problem}" for problem in self.problems)]


def _position(problem: Problem) -> tuple[str, int, int]:
    return (problem.place.file, problem.place.line, problem.place.column)


def _quoted(text: str) -> str:
    # The text may contain anything, and is shown on a terminal.
    shown = text if len(text) <= 80 else text[:77] + "…"
    return (
        '"'
        + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
        + '"'
    )
