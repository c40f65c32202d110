"""A session's decisions as metrics, in Prometheus' text exposition format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sigwrap.escape import printable
from sigwrap.events import (
    CONNECTION_TYPES,
    DECISION_TYPES,
    EXEC_TYPES,
    SIGNAL_TYPES,
    Event,
    Payload,
    number,
    times,
)
from sigwrap.outcomes import how_many

BUCKETS_S = (0.0001, 0.0005, 0.001, 0.005, 0.01)

_SERIES_LIMIT = 10_000  # a log from elsewhere may hold any number of different labels

_LONGEST_LABEL = 200

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Histogram:
    in_bucket: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    sum_us: int = 0

    def observe(self, duration_us: int) -> None:
        self.sum_us += duration_us
        seconds = duration_us / 1e6
        for index, bound in enumerate(BUCKETS_S):
            if seconds <= bound:
                self.in_bucket[index] += 1
                return
        self.in_bucket[-1] += 1


class _Pair:
    """The two metrics of a kind of decision."""

    def __init__(self, counter: str, counts_what: str, histogram: str, times_what: str) -> None:
        self._counter = (counter, counts_what)
        self._histogram = (histogram, times_what)
        self._counts: dict[Labels, int] = {}
        self._times: dict[str, _Histogram] = {}

    def add(self, labels: Labels, payload: Payload) -> None:
        if labels in self._counts or len(self._counts) < _SERIES_LIMIT:
            self._counts[labels] = self._counts.get(labels, 0) + times(payload)
        evaluation_us = payload.get("evaluation_us")
        # An event with a count repeats a decision that is an event of its own, with its time.
        is_timed = isinstance(evaluation_us, int) and payload.get("count") is None
        if is_timed and evaluation_us == number(evaluation_us) >= 0:
            platform = _platform(payload)
            if platform in self._times or len(self._times) < _SERIES_LIMIT:
                self._times.setdefault(platform, _Histogram()).observe(evaluation_us)

    def lines(self) -> Iterator[str]:
        name, what = self._counter
        yield f"# HELP {name} {what}"
        yield f"# TYPE {name} counter"
        for labels in sorted(self._counts):
            yield f"{name}{_rendered(labels)} {self._counts[labels]}"
        name, what = self._histogram
        yield f"# HELP {name} {what}"
        yield f"# TYPE {name} histogram"
        for platform in sorted(self._times):
            histogram = self._times[platform]
            labels = (("platform", platform),)
            below = 0
            for bound, count in zip((*BUCKETS_S, None), histogram.in_bucket, strict=True):
                below += count
                le = "+Inf" if bound is None else f"{bound:g}"
                yield f"{name}_bucket{_rendered((*labels, ('le', le)))} {below}"
            yield f"{name}_sum{_rendered(labels)} {histogram.sum_us / 1e6:.6f}"
            yield f"{name}_count{_rendered(labels)} {below}"


class MetricsFold:
    def __init__(self) -> None:
        self._signals = _Pair(
            "sigwrap_signals_total",
            "Signals decided.",
            "sigwrap_signal_evaluation_seconds",
            "Time to decide on a signal.",
        )
        self._execs = _Pair(
            "sigwrap_execs_total",
            "Execs decided.",
            "sigwrap_exec_evaluation_seconds",
            "Time to decide on an exec.",
        )
        self._connections = _Pair(
            "sigwrap_connections_total",
            "Connections, datagrams and servers decided.",
            "sigwrap_connection_evaluation_seconds",
            "Time to decide on a connection.",
        )
        self._files = _Pair(
            "sigwrap_files_total",
            "Audited file writes, creations, deletions and renames.",
            "sigwrap_file_evaluation_seconds",
            "Time to identify the file.",
        )

    def add(self, event: Event) -> None:
        payload = event.payload
        if event.type in DECISION_TYPES and not how_many(event.type, payload):
            return
        if event.type in SIGNAL_TYPES:
            labels: Labels = (
                ("signal", str(payload.get("signal_name") or "")),
                ("target_type", str(payload.get("target_type") or "")),
                ("decision", str(payload.get("decision") or "")),
                ("platform", _platform(payload)),
            )
            self._signals.add(labels, payload)
        elif event.type in EXEC_TYPES:
            # No command: its values have no bound, and each would be a series for ever.
            labels = (
                ("rule", str(payload.get("rule_name") or "")),
                ("decision", str(payload.get("decision") or "")),
                ("platform", _platform(payload)),
            )
            self._execs.add(labels, payload)
        elif event.type in CONNECTION_TYPES:
            labels = (
                ("rule", str(payload.get("rule_name") or "")),
                ("direction", str(payload.get("direction") or "")),
                ("protocol", str(payload.get("protocol") or "")),
                ("decision", str(payload.get("decision") or "")),
                ("platform", _platform(payload)),
            )
            self._connections.add(labels, payload)
        elif event.type == "file_audited":
            labels = (
                ("rule", str(payload.get("rule_name") or "")),
                ("operation", str(payload.get("operation") or "")),
                ("platform", _platform(payload)),
            )
            self._files.add(labels, payload)

    def lines(self) -> Iterator[str]:
        yield from self._signals.lines()
        yield from self._execs.lines()
        yield from self._connections.lines()
        yield from self._files.lines()


def _platform(payload: Payload) -> str:
    return str(payload.get("platform") or "linux")


def _rendered(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    """Of what a terminal would obey, only a line's end is escaped by Prometheus' own rules."""
    shown = "\n".join(map(printable, value[:_LONGEST_LABEL].split("\n")))
    return shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
