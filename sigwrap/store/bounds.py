"""How large an event is at most.

What a process chooses (arguments, paths, names) can be as long as it likes, and a log that grows by
a megabyte with each exec is soon a full disk. So an event of more than EVENT_LIMIT characters of
JSON is written with its longest fields cut. Its field `cut` says of each how long its JSON was, and
the BLAKE2b of it: whoever has the value can tell that it was this one.
"""

from __future__ import annotations

from itertools import islice

from sigwrap.bare import json
from sigwrap.bare.digests import blake2b
from sigwrap.events import Payload
from sigwrap.hints import Any

EVENT_LIMIT = 8 * 1024
CUT = "cut"
MARK = "[...]"

# The policy and the recorded streams are there to be whole; what they take is counted.
WHOLE_TYPES = frozenset({"session_started", "io_recorded"})

_DIGEST_SIZE = 16
_CUT_ENTRY_SIZE = 100  # of JSON, beside the field's name
_LEAST_ROOM = 16
_MOST_FIELDS = 64
_encode = json.encoder(separators=(",", ":"))


def bounded(payload: Payload, limit: int = EVENT_LIMIT) -> Payload:
    """The same where it isn't longer."""
    if len(payload) > _MOST_FIELDS:  # of a log from elsewhere
        payload = dict(islice(payload.items(), _MOST_FIELDS))
    jsons = {name: _encode(value) for name, value in payload.items()}
    sizes = {name: len(text) for name, text in jsons.items()}
    frame = sum(len(_encode(name)) + _CUT_ENTRY_SIZE + len(name) for name in payload)
    long = _too_long(sizes, max(limit - frame, 0))
    if not long:
        return payload
    rest = sum(size for name, size in sizes.items() if name not in long)
    room = (limit - frame - rest) // len(long)
    fitted = {name: _fitted(payload[name], room) for name in long}
    cut = {name: {"json": sizes[name], "blake2b": _digest(jsons[name])} for name in sorted(long)}
    return {**payload, **fitted, CUT: cut}


def json_size(value: object) -> int:
    return len(_encode(value))


def _too_long(sizes: dict[str, int], room: int) -> frozenset[str]:
    """Which have to be cut so that all fit: the longest, and no more of them than needed."""
    by_size = sorted(sizes, key=lambda name: sizes[name])
    for position, name in enumerate(by_size):
        left = len(by_size) - position
        if sizes[name] > room // left:
            return frozenset(by_size[position:])
        room -= sizes[name]
    return frozenset()


def _fitted(value: Any, room: int) -> Any:
    """As much of it as fits into `room` characters of JSON, or of its kind what takes least."""
    if isinstance(value, str):
        return _fitted_text(value, room)
    if isinstance(value, (list, tuple)):
        return _fitted_list(value, room)
    if isinstance(value, dict):
        each = room // max(len(value), 1)
        return {
            name: _fitted(item, each - len(_encode(name)) - 2)
            for name, item in list(value.items())[: max(room // _LEAST_ROOM, 0)]
        }
    return value


def _fitted_text(text: str, room: int) -> str:
    if len(text) + 2 <= room and len(_encode(text)) <= room:
        return text
    room = max(room - len(MARK) - 2, 0)
    kept = text[:room]
    while kept and (size := len(_encode(kept)) - 2) > room:
        kept = kept[: min(len(kept) * room // size, len(kept) - 1)]
    return kept + MARK


def _fitted_list(values: list[Any] | tuple[Any, ...], room: int) -> list[Any]:
    kept: list[Any] = []
    room -= len(MARK) + 4
    for value in values:
        size = len(_encode(value)) + 1
        if size > room:
            kept.append(_fitted(value, room - 1) if room >= _LEAST_ROOM + len(MARK) else MARK)
            break
        kept.append(value)
        room -= size
    return kept


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=_DIGEST_SIZE).hexdigest()
