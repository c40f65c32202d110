"""The path of the store, and the names of a session's files."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sigwrap.bare import NamedTuple
from sigwrap.errors import StoreError

SESSIONS_FOLDER = "sessions"
CHECKPOINTS_FOLDER = "checkpoints"
DATABASE_SUFFIX = ".db"
JOURNAL_SUFFIX = ".journal"

# For the help text; $XDG_STATE_HOME, if set, replaces ~/.local/state.
DEFAULT_STORE = "$SIGWRAP_STORE or ~/.local/state/sigwrap"


def default_store(env: Mapping[str, str]) -> str:
    if env.get("SIGWRAP_STORE"):
        return env["SIGWRAP_STORE"]
    state_home = env.get("XDG_STATE_HOME", "")
    # The XDG specification tells programs to ignore a relative path there.
    if not os.path.isabs(state_home):
        home = env["HOME"] if "HOME" in env else os.path.expanduser("~")
        if not os.path.isabs(home):
            raise StoreError(
                "there is no home directory for the event log", "choose a directory with --store"
            )
        state_home = os.path.join(home, ".local", "state")
    return os.path.join(state_home, "sigwrap")


def sessions_folder(store: str) -> str:
    return os.path.join(store, SESSIONS_FOLDER)


def database_path(store: str, session_id: str) -> str:
    return os.path.join(sessions_folder(store), session_id + DATABASE_SUFFIX)


def journal_path(database: str) -> str:
    return database.removesuffix(DATABASE_SUFFIX) + JOURNAL_SUFFIX


class FileNames(NamedTuple):
    """The names of a session's files."""

    session_id: str

    @property
    def database(self) -> str:
        return self.session_id + DATABASE_SUFFIX

    @property
    def journal(self) -> str:
        return self.session_id + JOURNAL_SUFFIX

    def checkpoint(self, number: int) -> str:
        """Return the name of a copy, which is in a directory of its own: it is no session."""
        return f"{self.session_id}-{number}{DATABASE_SUFFIX}"
