"""The samples over time, as an SVG of four panels that all begin at zero: what grows leans."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from tests.endurance.sampling import Sample
from tests.endurance.verdict import Found

_WIDTH, _HEAD, _GAP = 920, 64, 30
_PANEL_WIDTH, _PANEL_HEIGHT = 430, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 96, 30, 28
_ABOVE = 1.2
_MOST_POINTS = 360
_COLORS = ("#1f5fa8", "#b3541e", "#5b7f1f")
_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #333 }
  .title { font-weight: 600; fill: #111 } .head { font: 600 16px system-ui, sans-serif; fill: #111 }
  .axis { fill: #777 } .grid { stroke: #e4e4e4 } .line { fill: none; stroke-width: 1.6 }
"""


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    value: Callable[[Sample], float]


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    lines: tuple[_Line, ...]


_PANELS = (
    _Panel(
        "private memory, MB",
        (
            _Line("supervisor", lambda s: s.supervisor.private / 1e6),
            _Line("front process", lambda s: s.front.private / 1e6),
        ),
    ),
    _Panel(
        "open descriptors",
        (
            _Line("supervisor", lambda s: s.supervisor.descriptors),
            _Line("front process", lambda s: s.front.descriptors),
        ),
    ),
    _Panel(
        "an event, in µs of the supervisor's processor time",
        (_Line("processor", lambda s: s.processor_us),),
    ),
    _Panel("an exec and its wait, in µs", (_Line("exec", lambda s: s.exec_us),)),
)


def picture(samples: Sequence[Sample], found: Sequence[Found]) -> str:
    rows = ceil(len(_PANELS) / 2)
    height = _HEAD + rows * (_PANEL_HEIGHT + _GAP)
    grows = [each.series.name for each in found if not each.is_flat]
    head = f"{samples[-1].at_s / 60:.0f} minutes of mixed load, {samples[-1].events:,} events: " + (
        f"grows: {', '.join(grows)}" if grows else "flat"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(head)}</title><style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        _text(16, 30, head, "head"),
        _text(16, 50, "minutes since the session began, from left to right", "axis"),
    ]
    for number, panel in enumerate(_PANELS):
        x = 16 + number % 2 * (_PANEL_WIDTH + 24)
        y = _HEAD + number // 2 * (_PANEL_HEIGHT + _GAP)
        parts += _drawn(panel, samples, x, y)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _drawn(panel: _Panel, samples: Sequence[Sample], x: float, y: float) -> Iterator[str]:
    left, right = x + _LEFT, x + _PANEL_WIDTH - _RIGHT
    top, bottom = y + _TOP, y + _PANEL_HEIGHT - _BOTTOM
    series = [[line.value(each) for each in samples] for line in panel.lines]
    # One sample that the machine held up would press all others flat.
    most = _ABOVE * max(max(statistics.quantiles(values, n=50)) for values in series)
    last_min = samples[-1].at_s / 60

    def at(minutes: float, value: float) -> tuple[float, float]:
        across = left + (right - left) * minutes / last_min
        return across, bottom - (bottom - top) * min(value, most) / most

    yield _text(x, y + 14, panel.title, "title")
    for value in _ticks(most):
        _, level = at(0, value)
        yield f'<path class="grid" d="M{left:.1f} {level:.1f}H{right:.1f}"/>'
        yield _text(left - 6, level + 4, f"{value:g}", "axis", "end")
    for minutes in _ticks(last_min):
        yield _text(at(minutes, 0)[0], bottom + 18, f"{minutes:g}", "axis", "middle")
    every = ceil(len(samples) / _MOST_POINTS)
    for line, values, color in zip(panel.lines, series, _COLORS, strict=False):
        points = [at(s.at_s / 60, v) for s, v in zip(samples, values, strict=True)]
        path = "L".join(f"{across:.1f} {level:.1f}" for across, level in points[::every])
        yield f'<path class="line" stroke="{color}" d="M{path}"/>'
        _, level = at(last_min, statistics.median(values))
        place = f'x="{right + 8:.1f}" y="{level + 4:.1f}"'
        yield f'<text {place} style="fill:{color}">{line.name}</text>'


def _ticks(most: float) -> list[float]:
    step = 10 ** floor(log10(most))
    for factor in (0.2, 0.5, 1.0):
        if most / (step * factor) <= 6:
            step *= factor
            break
    return [step * number for number in range(floor(most / step) + 1)]


def _text(x: float, y: float, text: str, name: str, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}"'
    return f'<text {place} class="{name}" text-anchor="{anchor}">{escape(text)}</text>'
