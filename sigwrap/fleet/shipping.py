"""Deliver each segment of a log once, or its events to a collector, and remember how far.

The cursor of a session, `sessions/<id>.shipped`, says for each destination how far the log was
delivered. It says where a segment ends before the segment is sent. So after a kill, the same
segment is sent again under the same key, and the store has it once.

Any process of the user can write a cursor. So it counts only if the log has its event with its
hash, and if no session of the store was running when it changed: a session can't say that events
were delivered. Otherwise everything is sent again, to the same keys.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from math import inf
from typing import NamedTuple

from sigwrap.errors import StoreError
from sigwrap.events import HOOK_LOG
from sigwrap.fleet.objects import Objects
from sigwrap.fleet.rows import Segment, segments
from sigwrap.log.chain import ChainWalk
from sigwrap.log.folder import CURSOR_SUFFIX, DATABASE_SUFFIX, SHIPPED_MARK, HeldFolder
from sigwrap.log.reader import Session

_GZIP = 31  # zlib's wbits; its header has no time
_LONGEST_CURSOR = 1 << 16
_MOST_DESTINATIONS = 20
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_HASH = re.compile(r"[0-9a-f]{64}")
_UNREADABLE = (ValueError, TypeError, AttributeError, RecursionError)
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Cursor(NamedTuple):
    seq: int = 0  # the last event that was delivered
    next: int = 0  # the end of the segment that may have been delivered since; else seq
    head: str = ""  # the hash of event `seq`
    complete: bool = False  # the log had no more, as of then


class Shipped(NamedTuple):
    events: int  # delivered now
    notes: list[str]
    is_whole: bool  # everything that the log has is there
    head: str = ""  # the hash of the last event that was put into a store


def ship(
    session: Session,
    folder: HeldFolder,
    objects: Objects,
    live: Cursor | None = None,
    walk: ChainWalk | None = None,
) -> Shipped:
    """Deliver what is not there yet; `folder` has the session's files.

    `live`: what was delivered while the session ran, instead of the cursor; it counts if the log
    still has it. `walk` checks the log's hash chain. Raise ObjectsError if the destination can't be
    used now, StoreError if the cursor can't be kept.
    """
    progress = _Progress(session, folder, objects.name)
    if live is not None:
        progress.cursor = live if _fits(session, live) else Cursor()
    elif progress.is_whole:
        return Shipped(0, [], True)
    begun, notes = progress.cursor, progress.notes
    events, damage = 0, ""
    ends = begun.seq, begun.next
    rest = segments(session, ends=ends, after=begun.seq, apart=live is not None, walk=walk)

    def following() -> Segment | None:
        nonlocal damage
        try:
            return next(rest, None)
        except StoreError as error:
            damage = str(error)
            return None

    later = following()
    while (segment := later) is not None:
        later = following()
        if segment.first <= segment.last <= progress.cursor.seq:
            continue
        progress.save(progress.cursor._replace(next=segment.last))
        put(segment, objects)
        is_last = later is None and not damage
        progress.save(Cursor(segment.last, segment.last, segment.head, is_last))
        events += max(0, segment.last - segment.first + 1)
    cursor = progress.cursor
    if cursor.seq and not (damage or cursor.complete):  # all of it was there
        progress.save(cursor._replace(complete=True))
    if damage:
        notes.append(f"{session.id}: shipped only its start: {damage}")
    elif not cursor.seq:
        notes.append(f"{session.id}: nothing was recorded")
    return Shipped(events, notes, bool(cursor.seq) and not damage, cursor.head)


def send(
    session: Session,
    folder: HeldFolder,
    url: str,
    environment: Mapping[str, str],
    timeout_s: float,
) -> Shipped:
    """Send what a collector has not got yet: each event at least once."""
    from sigwrap.fleet.otlp_sender import destination, ship_otlp

    progress = _Progress(session, folder, destination(url, environment))
    if progress.is_whole:
        return Shipped(0, [], True)
    notes, sent_before = progress.notes, progress.cursor.seq

    def delivered(seq: int) -> None:
        head = next(row.hash for row in session.rows(seq - 1))
        progress.save(Cursor(seq, seq, head))

    ship_otlp(session, url, environment, timeout_s, after_seq=sent_before, delivered=delivered)
    if not progress.cursor.seq:
        return Shipped(0, [*notes, f"{session.id}: nothing was recorded"], False)
    progress.save(progress.cursor._replace(complete=True))
    return Shipped(progress.cursor.seq - sent_before, notes, True)


def is_shipped(session: Session, folder: HeldFolder) -> bool:
    """Return whether the whole log was delivered to some destination."""
    cursors, _ = _cursors(session, folder)
    return any(_is_whole(session, each) for each in cursors.values())


def _is_whole(session: Session, cursor: Cursor) -> bool:
    if not cursor.complete:
        return False
    with suppress(StoreError):
        last = session.last()
        return last is not None and last.seq == cursor.seq
    return False


def put(segment: Segment, objects: Objects) -> None:
    objects.put_new(_key(segment), _body(segment))


def _key(segment: Segment) -> str:
    """Return the key; a hostile log or file name can't lead out of its folder."""
    name = segment.session
    if not _PLAIN_ID.fullmatch(name):
        name = "id-" + _digest(name)[:32]
    date = segment.date if _DATE.fullmatch(segment.date) else "1970-01-01"
    head = segment.head if _HASH.fullmatch(segment.head) else _digest(segment.head)
    return f"rows/v1/date={date}/{name}/{segment._replace(head=head).name}.ndjson.gz"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _body(segment: Segment) -> bytes:
    text = "\n".join([*segment.lines, ""])
    return zlib.compress(text.encode("ascii"), 6, wbits=_GZIP)


# The cursor


class _Progress:
    """How far a log was delivered to one destination."""

    def __init__(self, session: Session, folder: HeldFolder, destination: str) -> None:
        self._session, self._folder, self._destination = session, folder, destination
        self._others, problem = _cursors(session, folder)
        self.cursor = self._others.pop(destination, Cursor())
        self.notes = [f"{problem}: the log is shipped again from its start"] if problem else []

    @property
    def is_whole(self) -> bool:
        return _is_whole(self._session, self.cursor)

    def save(self, cursor: Cursor) -> None:
        _save(self._session.id, self._folder, {**self._others, self._destination: cursor})
        self.cursor = cursor


def _cursors(session: Session, folder: HeldFolder) -> tuple[dict[str, Cursor], str]:
    """Return the cursor of each destination. If they don't fit the log: none, and why."""
    name = session.id + CURSOR_SUFFIX
    try:
        found, changed_ns = _read(name, folder)
    except FileNotFoundError:
        return {}, ""
    except (OSError, *_UNREADABLE) as error:
        what = error.strerror if isinstance(error, OSError) else "not a cursor"
        return {}, f"{folder.path_of(name)} can't be read ({what})"
    if _runs(folder.path).cover(changed_ns):
        return {}, f"{folder.path_of(name)} changed while a session ran"
    if not all(_fits(session, each) for each in found.values()):
        return {}, f"{folder.path_of(name)} does not fit the log"
    return found, ""


def _read(name: str, folder: HeldFolder) -> tuple[dict[str, Cursor], int]:
    with open(os.open(name, _READ_FLAGS, dir_fd=folder.fd), "rb") as file:
        status = os.fstat(file.fileno())
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        data = file.read(_LONGEST_CURSOR + 1) if is_ours else b""
    if len(data) > _LONGEST_CURSOR:
        raise ValueError("too long")
    found = {each: Cursor(**members) for each, members in json.loads(data).items()}
    for each in found.values():
        if not (type(each.seq) is type(each.next) is int and isinstance(each.head, str)):
            raise ValueError("not a cursor")
    return found, status.st_ctime_ns


def _fits(session: Session, cursor: Cursor) -> bool:
    if not 0 <= cursor.seq <= cursor.next < 1 << 62:
        return False
    if not cursor.seq:
        return True
    with suppress(StoreError):
        row = next(iter(session.rows(cursor.seq - 1)), None)
        return row is not None and (row.seq, row.hash) == (cursor.seq, cursor.head)
    return False


class _Runs:
    """When the sessions of a store ran: their processes may have changed files then."""

    def __init__(self, folder: str) -> None:
        self._started_ns: dict[str, int] = {}
        self._until_ns: dict[str, float] = {}
        for name in os.listdir(folder):
            session_id = name.removesuffix(DATABASE_SUFFIX)
            if name == session_id or session_id.startswith(HOOK_LOG):
                continue
            session = Session(session_id, os.path.join(folder, name))
            until_ns: float = inf if session.running else 0
            for each in session.files:  # a killed one has a journal, which is later
                with suppress(OSError):  # it is not there; no process can set its time
                    until_ns = max(until_ns, os.lstat(each).st_ctime_ns)
            self._until_ns[session.path] = until_ns

    def cover(self, time_ns: int) -> bool:
        later = (path for path, until_ns in self._until_ns.items() if until_ns >= time_ns)
        return any(self._start(path) <= time_ns for path in later)

    def _start(self, path: str) -> int:
        if path not in self._started_ns:
            first = None
            with suppress(StoreError):
                first = Session(os.path.basename(path), path).first()
            self._started_ns[path] = 0 if first is None else first.time_ns
        return self._started_ns[path]


@lru_cache(maxsize=1)
def _runs(folder: str) -> _Runs:
    return _Runs(folder)


def _save(session_id: str, folder: HeldFolder, cursors: dict[str, Cursor]) -> None:
    kept = list(cursors.items())[-_MOST_DESTINATIONS:]
    data = json.dumps({name: each._asdict() for name, each in kept}).encode()

    def write(fd: int) -> None:
        os.write(fd, data)
        os.fsync(fd)

    name = session_id + CURSOR_SUFFIX
    try:
        if folder.status(SHIPPED_MARK) is None:
            with suppress(FileExistsError):
                os.close(folder.create(SHIPPED_MARK))
        os.close(folder.put_new(name, write))
    except OSError as error:
        raise StoreError(
            f"can't write {folder.path_of(name)}: {error.strerror}",
            "without it no event is shipped: check the store",
        ) from error
