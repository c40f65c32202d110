"""Read a moment of a session.

`+90s` is after its start; `10m` before its end, or before now if it runs; `14:03`, `14:03:20` and
`2026-11-23 14:03` are clock times.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, tzinfo

from sigwrap.amounts import span_s

_NS_PER_S = 1_000_000_000
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")

EXAMPLES = "+90s, 1h30m, 14:03 or 2026-11-23T14:03"


def moment_ns(words: str, *, started_ns: int, ended_ns: int, utc: bool) -> int:
    """Return the moment; ValueError if `words` is none."""
    if words.startswith("+"):
        return started_ns + round(span_s(words[1:]) * _NS_PER_S)
    try:
        return ended_ns - round(span_s(words.removeprefix("-")) * _NS_PER_S)
    except ValueError:
        pass
    zone = UTC if utc else None
    if _CLOCK.fullmatch(words):
        clock = time.fromisoformat(words.zfill(8 if words.count(":") == 2 else 5))
        return _at_clock(clock, started_ns, zone)
    found = datetime.fromisoformat(words)
    return _ns(found if found.tzinfo else found.replace(tzinfo=zone))


def _at_clock(clock: time, started_ns: int, zone: tzinfo | None) -> int:
    """Return the first such time in the run, which can last past midnight."""
    started = datetime.fromtimestamp(started_ns // _NS_PER_S, UTC).astimezone(zone)
    found = _ns(datetime.combine(started.date(), clock, zone))
    day_ns = 86_400 * _NS_PER_S
    return found + day_ns if found < started_ns - day_ns // 2 else found


def _ns(moment: datetime) -> int:
    return round(moment.timestamp() * _NS_PER_S)
