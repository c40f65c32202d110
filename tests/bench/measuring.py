"""What a line costs, and what several cost beside each other.

Machines are noisy, so every round runs all subjects in turn (A B A B …), and what counts are
medians over the rounds: of ratios and of differences to the first subject in the same round.
"""

from __future__ import annotations

import os
import resource
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TOO_LONG_S = 120.0

Figure = dict[str, float]
"""By the kind of time: WALL, PROCESSOR; or a VALUE."""
WALL, PROCESSOR, VALUE = "wall", "processor", "value"


@dataclass(frozen=True, slots=True)
class Cost:
    wall_s: float
    processor_s: float
    """User and system, of all processes below that were waited for. The supervisor is: it is a
    child of sigwrap's front process."""

    def as_figure(self, per_second: float = 1.0) -> Figure:
        return {WALL: self.wall_s * per_second, PROCESSOR: self.processor_s * per_second}


Subject = Callable[[], Cost]
Rounds = dict[str, list[Cost]]


class Failed(Exception):
    """A subject didn't do what it was measured for."""


def run(
    line: Sequence[str],
    *,
    folder: Path | None = None,
    says_wall: bool = False,
    most_s: float = TOO_LONG_S,
) -> Cost:
    """`says_wall`: the line prints how many seconds its work took, without its own start."""
    cost, said = cost_of(lambda: start(line, folder, says_wall=says_wall), most_s)
    return Cost(float(said), cost.processor_s) if says_wall else cost


def cost_of(
    begin: Callable[[], subprocess.Popen[bytes]], most_s: float, given: bytes | None = None
) -> tuple[Cost, bytes]:
    """Return the cost of a child, and what it says. `given`: its standard input."""
    processor_s, started_s = processor_time_s(), time.perf_counter()
    said = end_of(begin(), most_s, given)
    wall_s = time.perf_counter() - started_s
    return Cost(wall_s, processor_time_s() - processor_s), said


def start(
    line: Sequence[str],
    folder: Path | None = None,
    *,
    says_wall: bool = True,
    variables: Mapping[str, str] | None = None,
    is_given: bool = False,
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        line,
        cwd=folder,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.PIPE if is_given else subprocess.DEVNULL,
        stdout=subprocess.PIPE if says_wall else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def end_of(
    child: subprocess.Popen[bytes], most_s: float = TOO_LONG_S, given: bytes | None = None
) -> bytes:
    """What a leader of its session has said: whatever keeps it from its end, nothing of it is
    left."""
    try:
        said, complaint = child.communicate(given, timeout=most_s)
    except BaseException as failure:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        if isinstance(failure, subprocess.TimeoutExpired):
            raise Failed(f"not at its end after {most_s:.0f} s") from None
        raise
    if child.returncode:
        first, *_ = complaint.decode(errors="replace").splitlines() or [""]
        raise Failed(f"status {child.returncode}: {first}")
    return said


def processor_time_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def interleaved(
    subjects: Mapping[str, Subject],
    rounds: int,
    left_out: Callable[[str, Failed], None] | None = None,
) -> Rounds:
    """`left_out`: what happens to a subject that fails; without it, that ends the measurement."""
    costs: Rounds = {name: [] for name in subjects}
    for number in range(1 + rounds):
        for name in list(costs):
            try:
                cost = subjects[name]()
            except Failed as failed:
                if left_out is None:
                    raise
                left_out(name, failed)
                del costs[name]
                continue
            if number:  # the first is not counted: caches, bytecode
                costs[name].append(cost)
    return costs


def medians(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(each.wall_s for each in costs),
        statistics.median(each.processor_s for each in costs),
    )


def ratio(costs: Sequence[Cost], base: Sequence[Cost]) -> Figure:
    """NaN where the base took no measurable time."""
    pairs = list(zip(costs, base, strict=True))
    return {
        WALL: statistics.median(_quotient(a.wall_s, b.wall_s) for a, b in pairs),
        PROCESSOR: statistics.median(_quotient(a.processor_s, b.processor_s) for a, b in pairs),
    }


def added(costs: Sequence[Cost], base: Sequence[Cost]) -> Cost:
    return medians(
        [
            Cost(a.wall_s - b.wall_s, a.processor_s - b.processor_s)
            for a, b in zip(costs, base, strict=True)
        ]
    )


def share(of: Cost, in_: Cost) -> Figure:
    """Of what one adds in what another adds."""
    return {
        WALL: _quotient(of.wall_s, in_.wall_s),
        PROCESSOR: _quotient(of.processor_s, in_.processor_s),
    }


def noise_of(base: Sequence[Cost], costs: Sequence[Cost]) -> float:
    """Return how far the rounds of the base differ, as a part of what the others take."""
    taken_s = [each.wall_s for each in base]
    return (max(taken_s) - min(taken_s)) / medians(costs).wall_s


def _quotient(a: float, b: float) -> float:
    return a / b if b > 0 else float("nan")
