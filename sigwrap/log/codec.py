r"""How an event becomes a row and back, how large it may be, and the chain of hashes.

The canonical row, which the chain hashes, is one line of ASCII:

    seq TAB time_ns TAB type TAB pid TAB payload

The payload is compact JSON whose first member "v" is the version of its type. ASCII-only JSON
escapes tabs and newlines, and carries bytes that are not UTF-8 as \udcXX, as Python reads them.

A process chooses how long its arguments, paths and names are, and could fill the disk with them. So
the longest fields of an event above EVENT_LIMIT are cut. Its field `cut` has the length and the
BLAKE2b of each field's JSON: enough to check a value that a reader has from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

from sigwrap.bare import Any, NamedTuple, blake2b, json, lru_cache
from sigwrap.errors import InternalError, StoreError
from sigwrap.events import EVENT_TYPES, UPCASTERS, Event, Payload

VERSION_KEY = "v"

EVENT_LIMIT = 8 * 1024  # characters of JSON
CUT = "cut"
MARK = "[...]"
# The policy and the recorded streams must be whole; their size is limited elsewhere.
WHOLE_TYPES = frozenset({"session_started", "io_recorded"})
_DIGEST_SIZE = 16
_CUT_ENTRY_SIZE = 100  # of JSON, beside the field's name
_LEAST_ROOM = 16
_MOST_FIELDS = 64


class Row(NamedTuple):
    """An event as it is stored; a tuple, because a million of them pass through a report."""

    seq: int
    time_ns: int
    type: str
    pid: int
    payload: str
    hash: str


_make = tuple.__new__  # takes half the time of a call of the class
_VERSION_MEMBER = {kind.name: f'{{"{VERSION_KEY}":{kind.version}' for kind in EVENT_TYPES.values()}
_encode_json = json.encoder(separators=(",", ":"), allow_nan=False)
_encode_any = json.encoder(separators=(",", ":"))  # a log from elsewhere can have 1e999

# Limits for what is read: a log from elsewhere may hold anything. sigwrap writes far less.
MAX_PAYLOAD_CHARACTERS = 32 << 20
_MAX_CHARACTERS_OF_MOST = 4 << 20
_MAX_MEMBERS = 1_000_000
_MAX_NESTING = 64
_INT64 = 1 << 63
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, StopIteration)


# Writing


def encode_payload(type_name: str, payload: Payload) -> str:
    text = encode_whole(type_name, payload)
    if len(text) > EVENT_LIMIT and type_name not in WHOLE_TYPES:
        return encode_whole(type_name, cut_payload(payload))
    return text


def encode_whole(type_name: str, payload: Payload) -> str:
    """Return the JSON of a payload, however long it is."""
    start = _VERSION_MEMBER.get(type_name)
    if start is None:
        raise InternalError(f"there is no event type {type_name!r}", "add it to EVENT_TYPES")
    members = _encode_json(payload)
    return f"{start},{members[1:]}" if payload else start + "}"


def canonical_row(seq: int, time_ns: int, type_name: str, pid: int, payload: str) -> bytes:
    return f"{seq}\t{time_ns}\t{type_name}\t{pid}\t{payload}".encode()


def journal_line(canonical: bytes, hash_hex: str) -> bytes:
    return b"".join((canonical, b"\t", hash_hex.encode(), b"\n"))


# Cutting


def cut_payload(payload: Payload, limit: int = EVENT_LIMIT) -> Payload:
    """Return the payload with its longest fields cut so that it fits; the same if it is short."""
    if len(payload) > _MOST_FIELDS:  # only in a log from elsewhere
        payload = dict(islice(payload.items(), _MOST_FIELDS))
    jsons = {name: _encode_any(value) for name, value in payload.items()}
    frame = sum(json_size(name) + _CUT_ENTRY_SIZE + len(name) for name in payload)
    room, fitted, cut = max(limit - frame, 0), Payload(), Payload()
    # The shortest field first: what it leaves of its share is the others'.
    by_size = sorted(jsons, key=lambda name: len(jsons[name]))
    for position, name in enumerate(by_size):
        size, share = len(jsons[name]), room // (len(by_size) - position)
        if size > share:
            fitted[name] = _fitted(payload[name], share)
            digest = blake2b(jsons[name].encode(), digest_size=_DIGEST_SIZE).hexdigest()
            cut[name] = {"json": size, "blake2b": digest}
        room -= min(size, share)
    return {**payload, **fitted, CUT: dict(sorted(cut.items()))} if cut else payload


def json_size(value: object) -> int:
    return len(_encode_any(value))


def _fitted(value: Any, room: int) -> Any:
    """Return as much of the value as fits into `room` characters of JSON, with MARK at the cut."""
    if isinstance(value, str):
        return _fitted_text(value, room)
    if isinstance(value, (list, tuple)):
        return _fitted_list(value, room)
    if isinstance(value, dict):
        each = room // max(len(value), 1)
        return {
            name: _fitted(item, each - json_size(name) - 2)
            for name, item in list(value.items())[: max(room // _LEAST_ROOM, 0)]
        }
    return value


def _fitted_text(text: str, room: int) -> str:
    if len(text) + 2 <= room and json_size(text) <= room:
        return text
    room = max(room - len(MARK) - 2, 0)
    kept = text[:room]
    while kept and (size := json_size(kept) - 2) > room:
        kept = kept[: min(len(kept) * room // size, len(kept) - 1)]
    return kept + MARK


def _fitted_list(values: list[Any] | tuple[Any, ...], room: int) -> list[Any]:
    kept: list[Any] = []
    room -= len(MARK) + 4
    for value in values:
        size = json_size(value) + 1
        if size > room:
            kept.append(_fitted(value, room - 1) if room >= _LEAST_ROOM + len(MARK) else MARK)
            break
        kept.append(value)
        room -= size
    return kept


# Reading


def parse_journal_line(line: bytes) -> Row:
    """Raise ValueError if the line is not a row."""
    seq, time_ns, type_name, pid, payload, hash_hex = line[:-1].decode("ascii").split("\t")
    row = Row(int(seq), int(time_ns), type_name, int(pid), payload, hash_hex)
    numbers = row.seq, row.time_ns, row.pid
    if not -_INT64 <= min(numbers) <= max(numbers) < _INT64:
        raise ValueError("a number out of SQLite's range")
    return row


def is_as_written(row: Row, event: Event) -> bool:
    """Return whether the row has the JSON that sigwrap writes for this event.

    A key that is there twice could mean something else to another reader. JSON of another version
    of its type cannot be checked.
    """
    start = _VERSION_MEMBER.get(row.type)
    if start is None or not row.payload.startswith(start):
        return True
    try:
        return encode_whole(row.type, event.payload) == row.payload
    except ValueError:  # sigwrap writes no 1e999
        return False


@lru_cache(maxsize=None)
def _json_scanner() -> Callable[[str, int], tuple[Any, int]]:
    """Return what raw_decode calls; it raises StopIteration if it finds no JSON."""
    from json import JSONDecoder

    return JSONDecoder(parse_constant=_refuse).scan_once  # type: ignore[attr-defined,no-any-return]


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def decode_row(row: Row) -> Event:
    seq, time_ns, type_name, pid, text, hash_hex = row
    try:
        length = len(text)
        if length > EVENT_LIMIT:  # it could take long to read, or much memory
            is_long = length > _MAX_CHARACTERS_OF_MOST and type_name not in WHOLE_TYPES
            if is_long or sum(map(text.count, "[{,")) > _MAX_MEMBERS:
                raise ValueError("too long")
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
            payload = cut_payload(payload)
        # An unknown type is from a newer or an old sigwrap: readers show its name.
        if version != _CURRENT_VERSION.get(type_name, version):
            payload = _upcast(seq, type_name, payload, version)
    except _UNREADABLE as error:
        raise StoreError(f"row {seq} can't be read", "run sigwrap verify") from error
    return _make(Event, (seq, time_ns, type_name, pid, payload, hash_hex))


def _check_nesting(value: object) -> None:
    """Raise ValueError for a payload that could not be written again: its recursion is too deep."""
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


def _upcast(seq: int, type_name: str, payload: Payload, version: int) -> Payload:
    current = _CURRENT_VERSION[type_name]
    if version > current:
        raise StoreError(
            f"row {seq}: {type_name} has version {version}, this sigwrap knows {current}",
            "read it with the sigwrap that wrote it, or a newer one",
        )
    for step in range(version, current):
        payload = UPCASTERS[type_name, step](payload)
    return payload


# The hash chain: each row's hash covers the row and, through its predecessor, all before it.

DIGEST_SIZE = 32
KEY_VARIABLE = "SIGWRAP_KEY"


def key_from_environment(env: Mapping[bytes, bytes]) -> bytes | None:
    """Return the key from os.environb: a key is bytes."""
    return env.get(KEY_VARIABLE.encode()) or None


def chain_key(key: bytes | None) -> bytes:
    if key is None:
        return b""
    # BLAKE2b takes at most 64 bytes; a longer key is hashed, as in HMAC.
    return blake2b(key).digest() if len(key) > blake2b.MAX_KEY_SIZE else key


def genesis(session_id: str, key: bytes) -> bytes:
    """Return the hash before the first row; it ties the log to its session."""
    name = session_id.encode("utf-8", "surrogateescape")  # a file can have any name
    return blake2b(name, digest_size=DIGEST_SIZE, key=key).digest()


def hasher(key: bytes) -> blake2b:
    """Return an empty hasher; copying it takes a third less time than making another."""
    return blake2b(digest_size=DIGEST_SIZE, key=key)


def next_hash(previous: bytes, canonical: bytes, empty: blake2b) -> bytes:
    """Return the hash of the next row; `empty` is a hasher of the log's key."""
    digest = empty.copy()
    digest.update(previous)
    digest.update(canonical)
    return digest.digest()
