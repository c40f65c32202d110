"""A session's decisions as metrics, in Prometheus' text exposition format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sigwrap.escape import printable
from sigwrap.events import DECISION_TYPES, Event, Payload, kind_of, number, times
from sigwrap.outcomes import how_many

BUCKETS_S = (0.0001, 0.0005, 0.001, 0.005, 0.01)
_SERIES_LIMIT = 10_000  # a log that sigwrap didn't write may hold any number of labels
_LONGEST_LABEL = 200
_FILE = "file_audited"
_PLATFORM = "platform"

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Histogram:
    in_bucket: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    sum_us: int = 0

    def observe(self, duration_us: int) -> None:
        self.sum_us += duration_us
        seconds = duration_us / 1e6
        at = next((at for at, bound in enumerate(BUCKETS_S) if seconds <= bound), -1)
        self.in_bucket[at] += 1


@dataclass(slots=True)
class _Metrics:
    """The counter and the histogram of one kind of decision."""

    kind: str
    counted: str
    timed: str
    fields: dict[str, str]  # by label; a command is none, since its values have no bound
    counts: dict[Labels, int] = field(default_factory=dict)
    times: dict[str, _Histogram] = field(default_factory=dict)  # by platform

    def add(self, payload: Payload) -> None:
        platform = str(payload.get(_PLATFORM) or "linux")
        labels: Labels = tuple(
            (label, str(payload.get(name) or "")) for label, name in self.fields.items()
        )
        labels = (*labels, (_PLATFORM, platform))
        if labels in self.counts or len(self.counts) < _SERIES_LIMIT:
            self.counts[labels] = self.counts.get(labels, 0) + times(payload)
        evaluation_us = payload.get("evaluation_us")
        # An event with a count repeats a decision that has an event of its own, with its time.
        is_timed = isinstance(evaluation_us, int) and payload.get("count") is None
        has_room = platform in self.times or len(self.times) < _SERIES_LIMIT
        if is_timed and has_room and evaluation_us == number(evaluation_us) >= 0:
            self.times.setdefault(platform, _Histogram()).observe(evaluation_us)

    def lines(self) -> Iterator[str]:
        name = f"sigwrap_{self.kind}s_total"
        yield f"# HELP {name} {self.counted}"
        yield f"# TYPE {name} counter"
        for labels in sorted(self.counts):
            yield f"{name}{_rendered(labels)} {self.counts[labels]}"
        name = f"sigwrap_{self.kind}_evaluation_seconds"
        yield f"# HELP {name} {self.timed}"
        yield f"# TYPE {name} histogram"
        for platform, histogram in sorted(self.times.items()):
            of_platform = ((_PLATFORM, platform),)
            below = 0
            for bound, count in zip((*BUCKETS_S, None), histogram.in_bucket, strict=True):
                below += count
                le = "+Inf" if bound is None else f"{bound:g}"
                yield f"{name}_bucket{_rendered((*of_platform, ('le', le)))} {below}"
            yield f"{name}_sum{_rendered(of_platform)} {histogram.sum_us / 1e6:.6f}"
            yield f"{name}_count{_rendered(of_platform)} {below}"


class MetricsFold:
    def __init__(self) -> None:
        rule, decision = {"rule": "rule_name"}, {"decision": "decision"}
        signal = {"signal": "signal_name", "target_type": "target_type", **decision}
        connection = {**rule, "direction": "direction", "protocol": "protocol", **decision}
        file = {**rule, "operation": "operation"}
        connections = "Connections, datagrams and servers decided."
        files = "Audited file writes, creations, deletions and renames."
        time_to = "Time to decide on"
        self._kinds = {
            each.kind: each
            for each in (
                _Metrics("signal", "Signals decided.", f"{time_to} a signal.", signal),
                _Metrics("exec", "Execs decided.", f"{time_to} an exec.", rule | decision),
                _Metrics("connection", connections, f"{time_to} a connection.", connection),
                _Metrics("file", files, "Time to identify the file.", file),
            )
        }

    def add(self, event: Event) -> None:
        name = event.type
        if name == _FILE:
            self._kinds["file"].add(event.payload)
        elif name in DECISION_TYPES and how_many(name, event.payload):
            self._kinds[kind_of(name)].add(event.payload)

    def lines(self) -> Iterator[str]:
        for each in self._kinds.values():
            yield from each.lines()


def _rendered(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    """Escape what a terminal would obey; of that, Prometheus escapes only line ends itself."""
    shown = "\n".join(map(printable, value[:_LONGEST_LABEL].split("\n")))
    return shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
