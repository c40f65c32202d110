"""The samples over time, as an SVG of a panel a series, all from zero: what grows leans."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from html import escape
from math import ceil

from tests.endurance.sampling import Sample
from tests.endurance.verdict import Found

_WIDTH, _HEAD, _PANEL, _GAP = 920, 48, 90, 30
_MOST_POINTS = 360
_STYLE = "text { font: 13px system-ui, sans-serif } path { fill: none; stroke: #1f5fa8 }"


def picture(samples: Sequence[Sample], found: Sequence[Found]) -> str:
    height = _HEAD + len(found) * (_PANEL + _GAP)
    grows = [each.series.name for each in found if not each.is_flat]
    head = f"{samples[-1].at_s / 60:.0f} minutes of mixed load, {samples[-1].events:,} events: " + (
        f"grows: {', '.join(grows)}" if grows else "flat"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(head)}</title><style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/><text y="20">{escape(head)}</text>',
    ]
    for number, each in enumerate(found):
        parts += _drawn(each, samples, _HEAD + number * (_PANEL + _GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _drawn(found: Found, samples: Sequence[Sample], top: float) -> Iterator[str]:
    values = [found.series.value(each) for each in samples]
    # One sample that the machine held up would press all others flat.
    most = 1.2 * max(statistics.quantiles(values, n=50))
    bottom = top + _GAP + _PANEL - 12
    points = [
        f"{_WIDTH * each.at_s / samples[-1].at_s:.1f} "
        f"{bottom - (_PANEL - 12) * min(value, most) / most:.1f}"
        for each, value in zip(samples, values, strict=True)
    ]
    name = f"{found.series.name}, median {found.median:,.1f} {found.series.unit}"
    yield f'<text y="{top + 14}">{escape(name)}</text>'
    yield f'<path d="M0 {bottom}H{_WIDTH}" style="stroke: #ddd"/>'
    yield f'<path d="M{"L".join(points[:: ceil(len(points) / _MOST_POINTS)])}"/>'
