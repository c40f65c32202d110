"""How an event becomes a row and back.

The canonical row, which the chain hashes, is one line of ASCII:

    seq TAB time_ns TAB type TAB pid TAB payload

The payload is compact JSON whose first member "v" is the version of its type. ASCII-only JSON
escapes tabs and newlines, and carries bytes that are no UTF-8 as \\udcXX, as Python reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sigwrap.bare import json
from sigwrap.bare.functools import lru_cache
from sigwrap.errors import InternalError, StoreError
from sigwrap.events import EVENT_TYPES, UPCASTERS, Base64, Event, Payload, Upcaster
from sigwrap.hints import Any
from sigwrap.store.bounds import EVENT_LIMIT, WHOLE_TYPES, bounded
from sigwrap.tuples import NamedTuple

VERSION_KEY = "v"


class Row(NamedTuple):
    """An event as it is stored; a tuple, because a million of them pass through a report."""

    seq: int
    time_ns: int
    type: str
    pid: int
    payload: str
    hash: str


_make = tuple.__new__  # half of what a call of the class takes
_VERSION_MEMBER = {kind.name: f'{{"{VERSION_KEY}":{kind.version}' for kind in EVENT_TYPES.values()}


@lru_cache(maxsize=None)
def _json_scanner() -> Callable[[str, int], tuple[Any, int]]:
    """What raw_decode calls; StopIteration where it finds nothing."""
    from json import JSONDecoder

    return JSONDecoder(parse_constant=_refuse).scan_once  # type: ignore[attr-defined,no-any-return]


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


_encode_json = json.encoder(separators=(",", ":"), allow_nan=False)

# Of what is read. A log from elsewhere may hold anything; what is written is far from these.
MAX_PAYLOAD_CHARACTERS = 32 << 20
_MAX_CHARACTERS_OF_MOST = 4 << 20
_MAX_MEMBERS = 1_000_000
_MAX_NESTING = 64
_INT64 = 1 << 63
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, StopIteration)


def encode_payload(type_name: str, payload: Payload) -> str:
    text = _encode_payload(type_name, payload)
    if len(text) > EVENT_LIMIT and type_name not in WHOLE_TYPES:
        return _encode_payload(type_name, bounded(payload))
    return text


def _encode_payload(type_name: str, payload: Payload) -> str:
    start = _VERSION_MEMBER.get(type_name)
    if start is None:
        raise InternalError(f"there is no event type {type_name!r}", "add it to EVENT_TYPES")
    if type_name == "io_recorded" and payload:
        return _encode_stream(start, payload)
    members = _encode_json(payload)
    return f"{start},{members[1:]}" if payload else start + "}"


def _encode_stream(start: str, payload: Payload) -> str:
    """The bytes are the last member, and long: they are copied once, and what is known to need no
    escape isn't searched for any, which takes half the time."""
    *others, last = payload
    data = payload[last]
    if not isinstance(data, str):
        return f"{start},{_encode_json(payload)[1:]}"
    members = _encode_json({name: payload[name] for name in others})[1:-1]
    before = f"{start},{members}" if members else start
    if type(data) is Base64:
        return f'{before},{json.escape(last)}:"{data}"}}'
    return f"{before},{json.escape(last)}:{json.escape(data)}}}"


def is_as_written(row: Row, event: Event) -> bool:
    """No other JSON of the same meaning, and no key twice, of which another reader might take the
    first. Of another version of its type nobody can tell."""
    start = _VERSION_MEMBER.get(row.type)
    if start is None or not row.payload.startswith(start):
        return True
    return _encode_payload(row.type, event.payload) == row.payload


def canonical_row(seq: int, time_ns: int, type_name: str, pid: int, payload: str) -> bytes:
    return f"{seq}\t{time_ns}\t{type_name}\t{pid}\t{payload}".encode()


def journal_line(canonical: bytes, hash_hex: str) -> bytes:
    return b"".join((canonical, b"\t", hash_hex.encode(), b"\n"))


def parse_journal_line(line: bytes) -> Row:
    """ValueError where the line is none."""
    seq, time_ns, type_name, pid, payload, hash_hex = line[:-1].decode("ascii").split("\t")
    row = Row(int(seq), int(time_ns), type_name, int(pid), payload, hash_hex)
    if (
        not -_INT64
        <= min(row.seq, row.time_ns, row.pid)
        <= max(row.seq, row.time_ns, row.pid)
        < _INT64
    ):
        raise ValueError("a number out of SQLite's range")
    return row


def decode_row(
    row: Row,
    upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS,
    current_versions: Mapping[str, int] | None = None,
) -> Event:
    seq, time_ns, type_name, pid, text, hash_hex = row
    try:
        length = len(text)
        if length > EVENT_LIMIT:
            _check_size(type_name, text)
        payload, end = _json_scanner()(text, 0)
        version = payload.pop(VERSION_KEY)
        if end != length:
            raise ValueError("data after the JSON")
        if not (type(time_ns) is type(pid) is int and type(type_name) is type(hash_hex) is str):
            raise TypeError("a column has the wrong type")
        # Each level takes two characters: most events are too short for so many.
        if length > 2 * _MAX_NESTING and text.count("[") + text.count("{") > _MAX_NESTING:
            _check_nesting(payload)
        if length > EVENT_LIMIT and type_name not in WHOLE_TYPES:
            payload = bounded(payload)
    except _UNREADABLE as error:
        raise StoreError(f"row {seq} can't be read", "run sigwrap verify") from error
    current = _CURRENT_VERSION if current_versions is None else current_versions
    # A type that isn't registered is of a newer sigwrap, or of an old one: readers show its name.
    if version != current.get(type_name, version):
        payload = _upcast(seq, type_name, payload, version, current[type_name], upcasters)
    return _make(Event, (seq, time_ns, type_name, pid, payload, hash_hex))


def _check_size(type_name: str, text: str) -> None:
    """ValueError for what would take long to read, or much memory."""
    limit = MAX_PAYLOAD_CHARACTERS if type_name in WHOLE_TYPES else _MAX_CHARACTERS_OF_MOST
    if len(text) > limit or sum(map(text.count, "[{,")) > _MAX_MEMBERS:
        raise ValueError("too long")


def _check_nesting(value: object) -> None:
    """ValueError for what would be written by a recursion too deep."""
    level = [value]
    for _ in range(_MAX_NESTING):
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        if not inner:
            return
        level = inner
    raise ValueError("nested too deeply")


_CURRENT_VERSION = {kind.name: kind.version for kind in EVENT_TYPES.values()}


def _upcast(
    seq: int,
    type_name: str,
    payload: Payload,
    version: int,
    current: int,
    upcasters: Mapping[tuple[str, int], Upcaster],
) -> Payload:
    if type(version) is not int or version < 1:
        raise StoreError(f"row {seq} can't be read", "run sigwrap verify")
    if version > current:
        raise StoreError(
            f"row {seq}: {type_name} has version {version}, this sigwrap knows {current}",
            "read it with the sigwrap that wrote it, or a newer one",
        )
    for step in range(version, current):
        payload = upcasters[type_name, step](payload)
    return payload
