"""All that run are asked, and those that should answer and don't are named: whoever is inside can
take a session's socket away, which puts another one there within half a second."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sigwrap.protocols.control_client import Answered, Unreachable, ask_everybody
from sigwrap.store.journal import writer_lives
from sigwrap.store.location import JOURNAL_SUFFIX, database_path, journal_path, sessions_folder

_LIST = {"do": "list"}
_AGAIN_AFTER_S = 0.6
_LOOKS_FOR_S = 1.0


@contextmanager
def listed_by_all(store: str) -> Iterator[tuple[list[Answered], list[Unreachable]]]:
    with ask_everybody(store, _LIST) as (answered, failures):
        if not _silent(store, answered, failures):
            yield answered, failures
            return
    time.sleep(_AGAIN_AFTER_S)
    with ask_everybody(store, _LIST) as (answered, failures):
        failures += [
            Unreachable(f"session {each} is running but does not answer", each)
            for each in _silent(store, answered, failures)
        ]
        yield answered, failures


def _silent(store: str, answered: list[Answered], failures: list[Unreachable]) -> list[str]:
    known = {each.client.session_id for each in answered} | {each.session_id for each in failures}
    try:
        names = os.listdir(sessions_folder(store))
    except OSError:
        return []
    ids = [each.removesuffix(JOURNAL_SUFFIX) for each in names if each.endswith(JOURNAL_SUFFIX)]
    until_s = time.monotonic() + _LOOKS_FOR_S
    return sorted(
        each
        for each in ids
        if each not in known
        and time.monotonic() < until_s
        and writer_lives(journal_path(database_path(store, each)))
    )
