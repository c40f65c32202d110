"""The sessions of a store, their files, and the session that the user means."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sigwrap.bare import NamedTuple
from sigwrap.errors import SessionError, StoreError
from sigwrap.events import HOOK_KIND, HOOK_LOG, LEFT_TO_ANOTHER, number, text, texts
from sigwrap.log.folder import (
    CHECKPOINTS_FOLDER,
    DATABASE_SUFFIX,
    JOURNAL_SUFFIX,
    SESSIONS_FOLDER,
    database_path,
    sessions_folder,
)
from sigwrap.log.reader import Session, is_database
from sigwrap.text import nearest_word, printable, shell_words

_UNFINISHED = r"\.new-[0-9a-f]{12}"
_SESSION_FILE = re.compile(
    rf"(?s)(.+)(?:\.db(?:-wal|-shm|-journal|{_UNFINISHED})?|\.journal(?:{_UNFINISHED})?)"
)
_CHECKPOINT_FILE = re.compile(rf"(?s)(.+)-\d+\.db(?:{_UNFINISHED})?")
_PATTERNS = {SESSIONS_FOLDER: _SESSION_FILE, CHECKPOINTS_FOLDER: _CHECKPOINT_FILE}

_CANDIDATES_SHOWN = 5
_COMPARED = 400  # each is compared letter by letter
_COMMAND_CHARACTERS_SHOWN = 40
_POLICY_SUFFIXES = (".yaml", ".yml")


class StoredFile(NamedTuple):
    folder: str
    name: str
    session_id: str
    is_ours: bool  # a plain file of this user
    size: int
    changed_s: float


def stored_files(store: str) -> list[StoredFile]:
    """Return the files of all sessions; a directory that can't be read has none."""
    return [each for folder in _PATTERNS for each in _files_in(store, folder)]


def _files_in(store: str, folder: str) -> Iterator[StoredFile]:
    try:
        entries = os.scandir(os.path.join(store, folder))
    except OSError:
        return
    with entries:
        for entry in entries:
            named = _PATTERNS[folder].fullmatch(entry.name)
            if named is None:
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it was removed meanwhile
            is_plain = stat.S_ISREG(found.st_mode)
            yield StoredFile(
                folder,
                entry.name,
                named[1],
                is_plain and found.st_uid == os.geteuid(),
                found.st_size if is_plain else 0,
                found.st_mtime,
            )


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
        """Return the size of all its files in bytes."""
        return sum(each.size for each in self.files)

    @property
    def changed_ns(self) -> int:
        """Return when its files last changed; 0 if there is none."""
        return int(max((each.changed_s for each in self.files), default=0.0) * 1e9)

    @property
    def is_in_several_files(self) -> bool:
        """Return whether a killed writer left a journal or an unfinished file."""
        names = (each.name for each in self.files if each.folder == SESSIONS_FOLDER)
        journal = self.id + JOURNAL_SUFFIX
        is_over = not (self.running or self.is_of_hooks)
        return is_over and any(name == journal or is_unfinished(name) for name in names)


def list_sessions(store: str) -> list[SessionFile]:
    """Return all sessions, oldest first."""
    files: dict[str, list[StoredFile]] = {}
    for each in stored_files(store):
        files.setdefault(each.session_id, []).append(each)
    sessions = [
        replace(inspected(session_id, store), files=tuple(files.get(session_id, ())))
        for session_id in session_ids(store)
    ]
    return sorted(sessions, key=lambda file: (file.started_ns, file.id))


def recent_sessions(store: str, most: int) -> list[SessionFile]:
    """Return at most so many sessions, latest first, and inspect only those that changed last."""
    changed: dict[str, float] = {}
    for each in stored_files(store):
        if each.folder == SESSIONS_FOLDER:
            latest = max(changed.get(each.session_id, 0.0), each.changed_s)
            changed[each.session_id] = latest
    ids = sorted(changed, key=lambda session_id: changed[session_id], reverse=True)[:most]
    sessions = [inspected(session_id, store) for session_id in ids]
    return sorted(sessions, key=lambda file: (file.started_ns, file.id), reverse=True)


def open_session(store: str, selector: str, *, even_damaged: bool = False) -> Session:
    """Open the session that `selector` names.

    It is an id, a unique start or end of one, a --name (the newest), a file, or "" (the latest).
    `even_damaged` accepts a file in which nothing can be read.
    """
    if is_path(selector):
        return _open_file(selector, even_damaged=even_damaged)
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
    runs = [file for file in sessions if not file.id.startswith(HOOK_LOG)] or sessions
    named = that_joined_no_other(
        [file for file in (sessions if selector else runs) if file.name == selector or not selector]
    )
    if named:
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
    command = shell_words(file.command)
    if len(command) > _COMMAND_CHARACTERS_SHOWN:
        command = command[:_COMMAND_CHARACTERS_SHOWN] + "…"
    return f"{file.id} ({command})" if command else file.id


def that_joined_no_other(sessions: list[SessionFile]) -> list[SessionFile]:
    """Return the sessions that joined no other, or all if every one did.

    The log of the other session has the events, and the joining command chooses its name.
    """
    return [file for file in sessions if not file.is_joined] or sessions


def _is_policy(file: str) -> SessionError:
    return SessionError(
        f"no session is called {file!r}, which looks like a policy",
        f"to check it: sigwrap policy check {file}; to run under it: sigwrap -p {file} -- COMMAND",
    )


def _open_file(path: str, *, even_damaged: bool) -> Session:
    if path.endswith(_POLICY_SUFFIXES):
        raise _is_policy(path)
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        is_file = False
    except OSError as error:
        raise SessionError(f"can't read {path}: {error.strerror}") from error
    if not is_file:
        raise SessionError(f"there is no event log {path}")
    # A downloaded file may have any name, so the log says which session it is.
    session = Session(os.path.basename(path).removesuffix(DATABASE_SUFFIX), path)
    try:
        started = session.first()
    except StoreError:
        if not (even_damaged and is_database(path)):
            raise
        return session
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
    try:
        first, last = session.ends()
    except StoreError as error:
        return SessionFile(id=session_id, path=session.path, running=running, problem=error.message)
    if first is None or last is None:
        return SessionFile(
            id=session_id, path=session.path, running=running, problem="nothing was recorded"
        )
    ended = last.payload if last.type == "session_ended" else {}
    command, exit_status = first.payload.get("command"), ended.get("exit_status")
    is_of_hooks = first.payload.get("kind") == HOOK_KIND
    running = running and not is_of_hooks  # a hook holds its lock for a moment
    return SessionFile(
        id=session_id,
        path=session.path,
        running=running,
        is_of_hooks=is_of_hooks,
        is_stopped=running and session.is_stopped,
        name=str(first.payload.get("name") or ""),
        is_joined=any(
            each.startswith(LEFT_TO_ANOTHER) for each in texts(first.payload.get("missing"))
        ),
        inside=text(first.payload.get("inside")),
        command=tuple(texts(command)),
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
