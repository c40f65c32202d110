"""What a measurement has found, as bench.json keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.bench.measuring import Figure, Rounds, added, medians, noise_of, ratio, share

OURS = "sigwrap"
US = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One subject beside the first of its table; times are µs for one unit."""

    name: str
    time_us: Figure
    ratio: Figure
    added_us: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    key: str
    name: str
    unit: str = ""
    rounds: int = 1
    noise: float = 0.0
    """How much of sigwrap's time the native run's differences between rounds are."""
    subjects: list[Compared] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    """What ceilings are about, by name."""

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Result:
        subjects = [Compared(**each) for each in document["subjects"]]
        return cls(**{**document, "subjects": subjects})


def compared(key: str, name: str, rounds: Rounds, *, unit: str, units: int = 1) -> Result:
    """All subjects beside the first."""
    base = next(iter(rounds.values()))
    subjects = [
        Compared(
            name=subject,
            time_us=medians(costs).as_figure(US / units),
            ratio=ratio(costs, base),
            added_us=added(costs, base).as_figure(US / units),
        )
        for subject, costs in rounds.items()
    ]
    figures: dict[str, Figure] = {}
    noise = 0.0
    if OURS in rounds:
        ours = next(each for each in subjects if each.name == OURS)
        figures = {"ratio": ours.ratio, "added_us": ours.added_us}
        noise = noise_of(base, rounds[OURS])
        if "strace" in rounds:
            of_strace = added(rounds["strace"], base)
            figures["of_strace"] = share(added(rounds[OURS], base), of_strace)
    return Result(
        key=key,
        name=name,
        unit=unit,
        rounds=len(base),
        noise=noise,
        subjects=subjects,
        figures=figures,
    )
