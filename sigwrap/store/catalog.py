"""Which sessions a store holds, and which one the user means."""

from __future__ import annotations

import os
from dataclasses import dataclass

from sigwrap.errors import SessionError, StoreError
from sigwrap.events import LEFT_TO_ANOTHER, text, texts
from sigwrap.store.location import (
    DATABASE_SUFFIX,
    JOURNAL_SUFFIX,
    database_path,
    sessions_folder,
)
from sigwrap.store.reader import Session

_CANDIDATES_SHOWN = 5
_POLICY_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    """`problem` says why a file can't be read; then the rest is unknown."""

    id: str
    path: str
    running: bool
    name: str = ""
    is_stopped: bool = False  # as a whole, while it is running
    is_joined: bool = False
    inside: str = ""  # the session that it joined, as the caller's environment had it
    command: tuple[str, ...] = ()
    started_ns: int = 0
    last_event_ns: int = 0
    events: int = 0
    exit_status: int | None = None
    reason: str = ""
    problem: str = ""

    @property
    def ended_cleanly(self) -> bool:
        return self.exit_status is not None


def list_sessions(store: str) -> list[SessionFile]:
    """Oldest first."""
    files = [_inspect(session_id, store) for session_id in _session_ids(store)]
    return sorted(files, key=lambda file: (file.started_ns, file.id))


def open_session(store: str, selector: str) -> Session:
    """`selector`: an id, a unique prefix of one, a --name (its newest), a file, or "" (latest)."""
    if os.sep in selector or selector.endswith(DATABASE_SUFFIX):
        return _open_file(selector)
    ids = _session_ids(store)
    if not ids:
        raise SessionError(f"there are no sessions in {store}", "choose another with --store")
    if selector in ids:
        return Session(selector, database_path(store, selector))
    by_prefix = [session_id for session_id in ids if session_id.startswith(selector)]
    if selector and len(by_prefix) == 1:
        return Session(by_prefix[0], database_path(store, by_prefix[0]))
    sessions = list_sessions(store)
    named = that_joined_no_other(
        [file for file in sessions if not selector or file.name == selector]
    )
    if named:
        return Session(named[-1].id, named[-1].path)
    if by_prefix:
        raise SessionError(f"{selector!r} could be {_enumerate(by_prefix)}", "use more of the id")
    if selector.endswith(_POLICY_SUFFIXES):
        raise _is_policy(selector)
    latest_first = [file.id for file in reversed(sessions)]
    raise SessionError(
        f"no session is called {selector!r} in {store}", f"there is {_enumerate(latest_first)}"
    )


def that_joined_no_other(sessions: list[SessionFile]) -> list[SessionFile]:
    """What happened to those that did is in the log of that other session. Whoever starts one can
    call that other session what he likes."""
    return [file for file in sessions if not file.is_joined] or sessions


def _is_policy(file: str) -> SessionError:
    return SessionError(
        f"no session is called {file!r}, which looks like a policy",
        f"to check it: sigwrap policy check {file}; to run under it: sigwrap -p {file} -- COMMAND",
    )


def _open_file(path: str) -> Session:
    if path.endswith(_POLICY_SUFFIXES):
        raise _is_policy(path)
    if not os.path.isfile(path):
        raise SessionError(f"there is no event log {path}")
    # A file that was downloaded may have any name: the log says whose it is.
    session = Session("", path)
    started = session.first()
    if started is not None:
        session.id = str(started.payload.get("session_id", ""))
    return session


def _session_ids(store: str) -> list[str]:
    folder = sessions_folder(store)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"can't read the store {folder}: {error.strerror}") from error
    suffixes = (DATABASE_SUFFIX, JOURNAL_SUFFIX)  # somebody may have removed one of them
    return sorted({os.path.splitext(name)[0] for name in names if name.endswith(suffixes)})


def _inspect(session_id: str, store: str) -> SessionFile:
    session = Session(session_id, database_path(store, session_id))
    running = session.running
    try:
        first, last = session.first(), session.last()
    except StoreError as error:
        return SessionFile(id=session_id, path=session.path, running=running, problem=error.message)
    if first is None or last is None:
        return SessionFile(
            id=session_id, path=session.path, running=running, problem="nothing was recorded"
        )
    ended = last.payload if last.type == "session_ended" else {}
    command, exit_status = first.payload.get("command"), ended.get("exit_status")
    return SessionFile(
        id=session_id,
        path=session.path,
        running=running,
        is_stopped=running and session.is_stopped,
        name=str(first.payload.get("name") or ""),
        is_joined=any(
            each.startswith(LEFT_TO_ANOTHER) for each in texts(first.payload.get("missing"))
        ),
        inside=text(first.payload.get("inside")),
        command=tuple(texts(command)),
        started_ns=first.time_ns,
        last_event_ns=last.time_ns,
        events=last.seq,
        exit_status=exit_status if isinstance(exit_status, int) else None,
        reason=str(ended.get("reason") or ""),
    )


def _enumerate(names: list[str]) -> str:
    shown = ", ".join(names[:_CANDIDATES_SHOWN])
    rest = len(names) - _CANDIDATES_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
