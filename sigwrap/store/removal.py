"""Remove sessions with all their files, except running ones."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from sigwrap.errors import StoreError
from sigwrap.store.belongings import Belonging, held, without_writer
from sigwrap.store.catalog import SessionFile
from sigwrap.store.folder import HeldFolder
from sigwrap.store.location import SESSIONS_FOLDER, Names

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """`left`: paths that have the name of a session's file but are no file of the user's."""

    size: int
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surplus:
    """Which sessions are surplus; None sets no limit."""

    older_than_s: float | None = None
    keep: int | None = None
    max_size: int | None = None


def surplus(sessions: list[SessionFile], wanted: Surplus, now_ns: int) -> list[SessionFile]:
    """Return the surplus sessions that have ended, oldest first, but never the `keep` latest."""
    latest_first = sorted(sessions, key=_ended_ns, reverse=True)
    kept = {file.id for file in latest_first[: wanted.keep or 0]}
    too_large = _beyond(latest_first, wanted.max_size)
    found = []
    for file in reversed(latest_first):
        if file.running or file.id in kept:
            continue
        old = wanted.older_than_s is not None and (
            now_ns - _ended_ns(file) > wanted.older_than_s * _NS_PER_S
        )
        only_keep = wanted.older_than_s is None and wanted.max_size is None
        if old or only_keep or file.id in too_large:
            found.append(file)
    return found


def _beyond(latest_first: list[SessionFile], max_size: int | None) -> set[str]:
    """Return the ids of the sessions that no longer fit, counted from the latest."""
    if max_size is None:
        return set()
    size, found = sum(file.size for file in latest_first if file.running), set()
    for file in latest_first:
        if not file.running:
            size += file.size
            if size > max_size:
                found.add(file.id)
    return found


def _ended_ns(file: SessionFile) -> int:
    return file.last_event_ns if file.events else file.changed_ns


def remove(store: str, session_id: str, files: Iterable[Belonging]) -> Removed:
    """Remove the files of this session; raise SessionError if it is running.

    The journal goes last, because until then a session that did not end has all its events.
    """
    with held(store, SESSIONS_FOLDER) as sessions, without_writer(sessions, session_id):
        journal = Names(session_id).journal
        size, left = 0, []
        for each in sorted(files, key=lambda each: each.name == journal):
            folder = os.path.join(store, each.folder)
            if not each.is_ours:
                left.append(os.path.join(folder, each.name))
            elif each.folder == SESSIONS_FOLDER:
                size += _remove(sessions, each)
            else:
                with held(store, each.folder) as other:
                    size += _remove(other, each)
    return Removed(size=size, left=tuple(left))


def _remove(folder: HeldFolder, file: Belonging) -> int:
    try:
        os.unlink(file.name, dir_fd=folder.fd)
    except FileNotFoundError:
        return 0
    except OSError as error:
        path = os.path.join(folder.path, file.name)
        raise StoreError(f"can't remove {path}: {error.strerror}") from error
    return file.size
