"""The sessions of a store: list them, find the one that the user means, merge or remove its files.

Any process of the user can put files into a store. So a file counts by its whole name, no link is
followed, and only the user's own files in the user's own directories are removed.

A killed writer leaves a journal with every event, and a database that lags behind. To merge them, a
new database with all events is written under a name of its own and synced. It replaces the old one
by a rename, and only then the journal is removed. A kill in between loses nothing, and recovery can
start again.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice

from sigwrap.bare import NamedTuple
from sigwrap.errors import SessionError, StoreError
from sigwrap.events import HOOK_KIND, HOOK_LOG, LEFT_TO_ANOTHER, number, text, texts
from sigwrap.kernel.limits import way_to_room
from sigwrap.log.codec import Row
from sigwrap.log.database import PrivateDatabase
from sigwrap.log.folder import (
    CHECKPOINTS_FOLDER,
    CURSOR_SUFFIX,
    DATABASE_SUFFIX,
    JOURNAL_SUFFIX,
    SESSIONS_FOLDER,
    HeldFolder,
    database_path,
    sessions_folder,
)
from sigwrap.log.journal import JournalFile, lock
from sigwrap.log.reader import (
    Session,
    first_stray_row,
    is_database,
    is_end,
    last_row,
    opened,
    refuse_foreign_rows,
)
from sigwrap.text import nearest_word, printable, shell_words, shortened

_UNFINISHED = r"\.new-[0-9a-f]{12}"
_SESSION_FILE = re.compile(
    rf"(?s)(.+)(?:\.db(?:-wal|-shm|-journal|{_UNFINISHED})?|\.(?:journal|shipped)(?:{_UNFINISHED})?)"
)
_CHECKPOINT_FILE = re.compile(rf"(?s)(.+)-\d+\.db(?:{_UNFINISHED})?")
_PATTERNS = {SESSIONS_FOLDER: _SESSION_FILE, CHECKPOINTS_FOLDER: _CHECKPOINT_FILE}

_CANDIDATES_SHOWN = 5
_COMPARED = 400  # each is compared letter by letter
_COMMAND_CHARACTERS_SHOWN = 40
_POLICY_SUFFIXES = (".yaml", ".yml")
_STARTS_WITHIN_S = 5.0  # from the file of its journal to its first event
_MERGED_AT_ONCE = 256
_VERIFY = "one of the two was changed: run sigwrap verify"


class StoredFile(NamedTuple):
    folder: str
    name: str
    session_id: str
    is_ours: bool  # a plain file of this user
    size: int
    changed_s: float


def stored_files(store: str) -> list[StoredFile]:
    """Return the files of all sessions; a directory that can't be read has none."""
    found = []
    for folder, pattern in _PATTERNS.items():
        try:
            names = os.listdir(os.path.join(store, folder))
        except OSError:
            continue
        for name in names:
            if named := pattern.fullmatch(name):
                with suppress(OSError):  # it was removed meanwhile
                    status = os.lstat(os.path.join(store, folder, name))
                    is_plain = stat.S_ISREG(status.st_mode)
                    is_ours = is_plain and status.st_uid == os.geteuid()
                    size = status.st_size if is_plain else 0
                    found.append(StoredFile(folder, name, named[1], is_ours, size, status.st_mtime))
    return found


def is_unfinished(name: str) -> bool:
    """Return whether a killed writer left the file before it had its final name."""
    return re.search(rf"{_UNFINISHED}\Z", name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    """A session in a list; if it can't be read, `problem` says why."""

    id: str
    path: str
    running: bool
    name: str = ""
    is_stopped: bool = False  # as a whole, while it is running
    is_joined: bool = False
    inside: str = ""  # the session that it joined, as the caller's environment had it
    command: tuple[str, ...] = ()
    user: str = ""
    host: str = ""
    started_ns: int = 0
    last_event_ns: int = 0
    events: int = 0
    exit_status: int | None = None
    denied: int | None = None  # actions; None: not known before the end
    reason: str = ""
    problem: str = ""
    is_of_hooks: bool = False  # such a log has no end
    files: tuple[StoredFile, ...] = ()

    @property
    def ended_cleanly(self) -> bool:
        return self.exit_status is not None

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files)

    @property
    def changed_ns(self) -> int:
        """Return when its files last changed; 0 if there is none."""
        return int(max((each.changed_s for each in self.files), default=0.0) * 1e9)

    @property
    def is_in_several_files(self) -> bool:
        """Return whether a killed writer left a journal or an unfinished file."""
        names = [each.name for each in self.files if each.folder == SESSIONS_FOLDER]
        journal = self.id + JOURNAL_SUFFIX
        is_over = not (self.running or self.is_of_hooks)
        of_log = [name for name in names if not name.startswith(self.id + CURSOR_SUFFIX)]
        return is_over and any(name == journal or is_unfinished(name) for name in of_log)


def list_sessions(store: str) -> list[SessionFile]:
    """Return all sessions, oldest first."""
    files: dict[str, list[StoredFile]] = {each: [] for each in session_ids(store)}
    for file in stored_files(store):
        if file.session_id in files:
            files[file.session_id].append(file)
    sessions = [replace(inspected(each, store), files=tuple(files[each])) for each in files]
    return sorted(sessions, key=lambda file: (file.started_ns, file.id))


def recent_sessions(store: str, most: int) -> list[SessionFile]:
    """Return at most so many sessions, latest first, and inspect only those that changed last."""
    files = sorted(stored_files(store), key=lambda file: file.changed_s, reverse=True)
    changed = dict.fromkeys(each.session_id for each in files if each.folder == SESSIONS_FOLDER)
    sessions = [inspected(session_id, store) for session_id in islice(changed, most)]
    return sorted(sessions, key=lambda file: (file.started_ns, file.id), reverse=True)


def open_session(store: str, selector: str) -> Session:
    """Open the session that `selector` names.

    It is an id, a unique start or end of one, a --name (the newest), a file, or "" (the latest).
    """
    if is_path(selector):
        return _open_file(selector)
    ids = session_ids(store)
    if not ids:
        raise SessionError(f"there are no sessions in {store}", "choose another with --store")
    if selector in ids:
        return Session(selector, database_path(store, selector))
    by_prefix = [session_id for session_id in ids if session_id.startswith(selector)]
    if selector and len(by_prefix) == 1:
        return Session(by_prefix[0], database_path(store, by_prefix[0]))
    found = chosen(list_sessions(store), selector)
    if found is not None:
        return Session(found.id, found.path)
    if selector.endswith(_POLICY_SUFFIXES):
        raise _is_policy(selector)
    raise SessionError(f"no session is called {selector!r} in {store}", meant(store, selector))


def is_path(selector: str) -> bool:
    return os.sep in selector or selector.endswith(DATABASE_SUFFIX)


def chosen(sessions: list[SessionFile], selector: str) -> SessionFile | None:
    """Return the session that the selector names; SessionError if several match."""
    for file in sessions:
        if file.id == selector:
            return file
    by_start = [file for file in sessions if selector and file.id.startswith(selector)]
    if len(by_start) == 1:
        return by_start[0]
    if selector:
        named = [file for file in sessions if file.name == selector]
    else:
        named = [file for file in sessions if not file.id.startswith(HOOK_LOG)] or sessions
    # A session that joined another has its events in that one's log, and chooses its name.
    if named := [file for file in named if not file.is_joined] or named:
        return named[-1]
    # An id begins with the date, so people type its end.
    by_end = [file for file in sessions if file.id.endswith(selector) and file not in by_start]
    candidates = by_start + by_end
    if len(candidates) > 1:
        several = _enumerate([_with_command(file) for file in candidates])
        raise SessionError(
            f"{selector!r} matches several sessions: {several}", "type more of the id"
        )
    return candidates[0] if candidates else None


def meant(store: str, selector: str) -> str:
    """Return a hint for a selector that names no session."""
    latest_first = list_sessions(store)[::-1]
    words = [word for file in latest_first for word in (file.name, file.id) if word]
    near = nearest_word(selector, words[:_COMPARED])
    if near:
        return f'did you mean "{printable(near)}"?'
    called = dict.fromkeys(printable(file.name) or file.id for file in latest_first)
    return f"sessions: {_enumerate(list(called))}"


def _with_command(file: SessionFile) -> str:
    command = shortened(shell_words(file.command), _COMMAND_CHARACTERS_SHOWN)
    return f"{file.id} ({command})" if command else file.id


def _is_policy(file: str) -> SessionError:
    return SessionError(
        f"no session is called {file!r}, which looks like a policy",
        f"to check it: sigwrap policy check {file}; to run under it: sigwrap -p {file} -- COMMAND",
    )


def _open_file(path: str) -> Session:
    if path.endswith(_POLICY_SUFFIXES):
        raise _is_policy(path)
    # A downloaded file may have any name, so the log says which session it is.
    session = Session(os.path.basename(path).removesuffix(DATABASE_SUFFIX), path)
    try:
        started = session.first()
    except StoreError:
        if not is_database(path):
            raise
        return session  # a damaged one
    if started is not None and (session_id := text(started.payload.get("session_id"))):
        session.id = session_id
    return session


def session_ids(store: str) -> list[str]:
    folder = sessions_folder(store)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"can't read the store {folder}: {error.strerror}") from error
    suffixes = (DATABASE_SUFFIX, JOURNAL_SUFFIX)  # one of them may be missing
    return sorted({os.path.splitext(name)[0] for name in names if name.endswith(suffixes)})


def inspected(session_id: str, store: str) -> SessionFile:
    session = Session(session_id, database_path(store, session_id))
    running = session.running
    first, last, problem = None, None, "nothing was recorded"
    try:
        first, last = session.ends()
    except StoreError as error:
        problem = error.message
    if first is None or last is None:
        return SessionFile(id=session_id, path=session.path, running=running, problem=problem)
    ended = last.payload if last.type == "session_ended" else {}
    missing, exit_status = texts(first.payload.get("missing")), ended.get("exit_status")
    is_of_hooks = first.payload.get("kind") == HOOK_KIND
    running = running and not is_of_hooks  # a hook holds its lock for a moment
    return SessionFile(
        id=session_id,
        path=session.path,
        running=running,
        is_of_hooks=is_of_hooks,
        is_stopped=running and session.is_stopped,
        name=str(first.payload.get("name") or ""),
        is_joined=any(each.startswith(LEFT_TO_ANOTHER) for each in missing),
        inside=text(first.payload.get("inside")),
        command=tuple(texts(first.payload.get("command"))),
        user=text(first.payload.get("user")),
        host=text(first.payload.get("host")),
        started_ns=first.time_ns,
        last_event_ns=last.time_ns,
        events=last.seq,
        exit_status=exit_status if isinstance(exit_status, int) else None,
        denied=number(ended["denied"]) if "denied" in ended else None,
        reason=str(ended.get("reason") or ""),
    )


def _enumerate(names: list[str]) -> str:
    shown = ", ".join(names[:_CANDIDATES_SHOWN])
    rest = len(names) - _CANDIDATES_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def recover(store: str, session_id: str, files: Iterable[StoredFile]) -> int:
    """Merge the files of this session, and return how many events its database has.

    Raise SessionError if it is running. Raise StoreError if its journal is damaged, and change
    nothing.
    """
    database, journal_name = session_id + DATABASE_SUFFIX, session_id + JOURNAL_SUFFIX
    with held(store, SESSIONS_FOLDER) as folder, _without_writer(folder, session_id) as journal_fd:
        path = folder.path_of(database)
        if journal_fd is not None:
            with open(journal_fd, "rb", closefd=False) as file:
                journal = JournalFile(folder.path_of(journal_name), file)
                events = _merge(folder, database, journal)
            os.fsync(folder.fd)
            folder.remove(journal_name)
        elif folder.status(journal_name) is None:
            events = _event_count(path)
        else:
            raise StoreError(
                f"the journal of {path} is a link or a file of another user",
                "check it and remove it by hand",
            )
        for each in files:
            if each.is_ours and each.folder == SESSIONS_FOLDER and is_unfinished(each.name):
                folder.remove(each.name)
    return events


def _event_count(path: str) -> int:
    with opened(path) as database:
        last = database.last()
    return 0 if last is None else last.seq


def _merge(folder: HeldFolder, name: str, journal: JournalFile) -> int:
    path = folder.path_of(name)
    if journal.is_empty:
        return _event_count(path)
    before = last_row(path)  # None: the journal has everything
    if before is not None and is_end(before):
        if first_stray_row(journal, path):
            raise StoreError(
                f"can't merge {path}: it is complete, and its journal has other rows", _VERIFY
            )
        return before.seq
    refuse_foreign_rows(path)
    try:
        with closing(PrivateDatabase(folder, name)) as merged:
            events = _insert(merged, journal, before, path)
            merged.add_views()
            merged.copy_to(folder, name, sync=True)
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StoreError(
            f"can't rewrite {path}: {reason}", way_to_room("its journal is complete")
        ) from error
    return events


def _insert(merged: PrivateDatabase, journal: JournalFile, before: Row | None, path: str) -> int:
    count, is_continued = 0, before is None
    rows = journal.rows()
    while batch := list(islice(rows, _MERGED_AT_ONCE)):
        for row in batch:
            is_continued = is_continued or row == before
            count += 1
            if row.seq != count:
                raise StoreError(f"line {count} of the journal of {path} is out of order", _VERIFY)
        merged.insert(batch)
    if not is_continued:
        raise StoreError(f"can't merge {path}: it has rows that its journal lacks", _VERIFY)
    return count


def surplus(
    sessions: list[SessionFile],
    now_ns: int,
    *,
    older_than_s: float | None = None,
    keep: int | None = None,
    max_size: int | None = None,
) -> list[SessionFile]:
    """Return the sessions to remove, oldest first: none that runs, and never the `keep` latest.

    These are those that ended so long ago, or that no longer fit into `max_size` if the latest are
    kept first; all if neither is given.
    """
    found = []
    size = sum(file.size for file in sessions if file.running)
    for place, file in enumerate(sorted(sessions, key=_ended_ns, reverse=True)):
        if file.running:
            continue
        size += file.size
        is_old = older_than_s is not None and now_ns - _ended_ns(file) > older_than_s * 1e9
        is_too_much = max_size is not None and size > max_size
        only_keep = older_than_s is None and max_size is None
        if place >= (keep or 0) and (is_old or is_too_much or only_keep):
            found.append(file)
    return found[::-1]


def _ended_ns(file: SessionFile) -> int:
    return file.last_event_ns if file.events else file.changed_ns


def remove(store: str, session_id: str, files: Iterable[StoredFile]) -> tuple[int, list[str]]:
    """Remove the files of this session; raise SessionError if it is running.

    Return how many bytes that freed, and which paths are left: they have the name of a session's
    file, but are no file of the user's. The journal goes last, because until then a session that
    did not end has all its events.
    """
    with held(store, SESSIONS_FOLDER) as sessions, _without_writer(sessions, session_id):
        journal = session_id + JOURNAL_SUFFIX
        size, left = 0, list[str]()
        for each in sorted(files, key=lambda each: each.name == journal):
            if not each.is_ours:
                left.append(os.path.join(store, each.folder, each.name))
            elif each.folder == SESSIONS_FOLDER:
                size += _remove(sessions, each)
            else:
                with held(store, each.folder) as other:
                    size += _remove(other, each)
    return size, left


def _remove(folder: HeldFolder, file: StoredFile) -> int:
    try:
        os.unlink(file.name, dir_fd=folder.fd)
    except FileNotFoundError:
        return 0
    except OSError as error:
        path = folder.path_of(file.name)
        raise StoreError(f"can't remove {path}: {error.strerror}") from error
    return file.size


@contextmanager
def held(store: str, folder: str) -> Iterator[HeldFolder]:
    """Hold a directory of the store; raise StoreError if it is not this user's."""
    path = os.path.join(store, folder)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags)
    except OSError as error:
        raise StoreError(f"can't open the directory {path}: {error.strerror}") from error
    try:
        if os.fstat(fd).st_uid != os.geteuid():
            raise StoreError(
                f"the directory {path} belongs to another user", "choose another with --store"
            )
        yield HeldFolder(path, fd)
    finally:
        os.close(fd)


@contextmanager
def _without_writer(sessions: HeldFolder, session_id: str) -> Iterator[int | None]:
    """Lock the session's journal against writers; yield None if it has none.

    Raise SessionError if its writer is running.
    """
    name = session_id + JOURNAL_SUFFIX
    found = sessions.status(name)
    if found is None or not stat.S_ISREG(found.st_mode):
        yield None
        return
    flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=sessions.fd)
    except OSError as error:
        raise StoreError(
            f"can't open the journal of session {session_id}: {error.strerror}",
            "it shows whether the session is running",
        ) from error
    try:
        try:
            lock(fd)
        except OSError as error:
            raise is_running(session_id) from error
        found = os.fstat(fd)
        if not found.st_size and time.time() - found.st_ctime < _STARTS_WITHIN_S:
            raise is_running(session_id)  # a writer may be about to lock the file it has just made
        yield fd
    finally:
        os.close(fd)


def is_running(session_id: str) -> SessionError:
    shown = printable(session_id)
    return SessionError(f"session {shown} is running", f"to end it: sigwrap stop {shown}")
