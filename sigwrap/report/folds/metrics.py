"""A session's decisions as metrics, in Prometheus' text exposition format."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from sigwrap.bare import NamedTuple
from sigwrap.events import DECISION_TYPES, Event, how_many, kind_of, number, times
from sigwrap.text import printable

_BUCKETS_US = (100, 500, 1_000, 5_000, 10_000)
_SERIES_LIMIT = 10_000  # a log that sigwrap didn't write may hold any number of labels
_LONGEST_LABEL = 200
_FILE = "file_audited"
_PLATFORM = "platform"

Labels = tuple[tuple[str, str], ...]


class _Kind(NamedTuple):
    counted: str
    timed: str
    # By label. A command is none, since its values have no bound.
    fields: dict[str, str]


_RULE, _DECISION = {"rule": "rule_name"}, {"decision": "decision"}
_KINDS = {
    "signal": _Kind(
        "Signals decided.",
        "Time to decide on a signal.",
        {"signal": "signal_name", "target_type": "target_type", **_DECISION},
    ),
    "exec": _Kind("Execs decided.", "Time to decide on an exec.", _RULE | _DECISION),
    "connection": _Kind(
        "Connections, datagrams and servers decided.",
        "Time to decide on a connection.",
        {**_RULE, "direction": "direction", "protocol": "protocol", **_DECISION},
    ),
    "file": _Kind(
        "Audited file writes, creations, deletions and renames.",
        "Time to identify the file.",
        {**_RULE, "operation": "operation"},
    ),
}


class MetricsFold:
    def __init__(self) -> None:
        self._counts: dict[str, dict[Labels, int]] = {kind: {} for kind in _KINDS}
        # By platform: the count of each bucket, and the sum in microseconds.
        self._times: dict[str, dict[str, list[int]]] = {kind: {} for kind in _KINDS}

    def add(self, event: Event) -> None:
        name, payload = event.type, event.payload
        if name != _FILE and not (name in DECISION_TYPES and how_many(name, payload)):
            return
        kind = "file" if name == _FILE else kind_of(name)
        counts, timed = self._counts[kind], self._times[kind]
        platform = str(payload.get(_PLATFORM) or "linux")
        fields = _KINDS[kind].fields.items()
        labels = (
            *((label, str(payload.get(field) or "")) for label, field in fields),
            (_PLATFORM, platform),
        )
        if labels in counts or len(counts) < _SERIES_LIMIT:
            counts[labels] = counts.get(labels, 0) + times(payload)
        us = payload.get("evaluation_us")
        # An event with a count repeats a decision that has an event of its own, with its time.
        is_timed = isinstance(us, int) and us == number(us) >= 0 and payload.get("count") is None
        if is_timed and (platform in timed or len(timed) < _SERIES_LIMIT):
            histogram = timed.setdefault(platform, [0] * (len(_BUCKETS_US) + 2))
            histogram[bisect_left(_BUCKETS_US, number(us))] += 1
            histogram[-1] += number(us)

    def lines(self) -> Iterator[str]:
        for kind, about in _KINDS.items():
            name = f"sigwrap_{kind}s_total"
            yield f"# HELP {name} {about.counted}"
            yield f"# TYPE {name} counter"
            for labels, count in sorted(self._counts[kind].items()):
                yield f"{name}{_rendered(labels)} {count}"
            name = f"sigwrap_{kind}_evaluation_seconds"
            yield f"# HELP {name} {about.timed}"
            yield f"# TYPE {name} histogram"
            for platform, (*buckets, sum_us) in sorted(self._times[kind].items()):
                labels, below = ((_PLATFORM, platform),), 0
                bounds = (*(f"{bound / 1e6:g}" for bound in _BUCKETS_US), "+Inf")
                for bound, count in zip(bounds, buckets, strict=True):
                    below += count
                    yield f"{name}_bucket{_rendered((*labels, ('le', bound)))} {below}"
                yield f"{name}_sum{_rendered(labels)} {sum_us / 1e6:.6f}"
                yield f"{name}_count{_rendered(labels)} {below}"


def _rendered(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    """Escape what a terminal would obey; of that, Prometheus escapes only line ends itself."""
    shown = "\n".join(map(printable, value[:_LONGEST_LABEL].split("\n")))
    return shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
