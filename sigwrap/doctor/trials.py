"""Every trial, in its order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from sigwrap.doctor import around, start
from sigwrap.doctor.aside import NotTold, aside, tidily
from sigwrap.doctor.items import (
    ACCELERATOR,
    CGROUP,
    ITEMS,
    KILL_SWITCH,
    LIBC,
    LIMITS,
    MACHINE,
    MEMORY_FILES,
    OPEN_FILES,
    PROC,
    PROCESSES,
    RUN,
    SESSION,
    STORE,
    TEMPORARY,
    TERMINAL,
    USER_NAMESPACES,
    Finding,
    Level,
    level_of,
    untold,
)
from sigwrap.doctor.rehearsal import Rehearsal
from sigwrap.doctor.temporary import try_temporary
from sigwrap.errors import KernelError, NoInterception, StoreError
from sigwrap.linux import limits
from sigwrap.linux.execs import repeated
from sigwrap.linux.peer import is_inside_a_session
from sigwrap.linux.seccomp import UNTRIED_VARIABLE, demand_known_calls
from sigwrap.machine import IS_AARCH64, IS_X86_64, PLATFORM
from sigwrap.store.location import default_store

_WITHIN_S = 15.0
_NO_PROC = "cannot be checked without /proc"
_NEED_PROC = (*start.OF_THE_START, CGROUP, TERMINAL, LIBC, STORE, RUN)


def all_findings(store: str | None, own_words: int) -> list[Finding]:
    """`store` as the caller names it; of this process's line, `own_words` are sigwrap's."""
    callers_limits = limits.of_the_caller()
    limits.lift(callers_limits)
    rehearsal = Rehearsal(own_words, _store_folder(store), callers_limits)
    with tidily():
        found = {each.item: each for each in _tried(store, rehearsal)}
    return [found[item.name] for item in ITEMS]


def _tried(store: str | None, rehearsal: Rehearsal) -> Iterator[Finding]:
    yield _machine()
    inside = is_inside_a_session()
    yield _session(inside)
    yield _accelerator()
    yield _one(PROCESSES, around.try_processes)
    proc = _one(PROC, around.try_proc)
    yield proc
    left_out: dict[str, str] = {}
    if level_of(proc) is Level.NO:
        left_out = dict.fromkeys(_NEED_PROC, _NO_PROC)
    elif inside:
        left_out = dict.fromkeys((CGROUP, RUN), start.INSIDE)
    trials: dict[str, Callable[[], Finding]] = {
        KILL_SWITCH: partial(around.try_kill_switch, store),
        OPEN_FILES: around.try_open_files,
        LIMITS: around.try_limits,
        CGROUP: around.try_cgroup,
        MEMORY_FILES: around.try_memory_files,
        TERMINAL: around.try_terminal,
        TEMPORARY: try_temporary,
        LIBC: around.try_libc,
        USER_NAMESPACES: around.try_user_namespaces,
        STORE: partial(around.try_store, store),
    }
    for item, trial in trials.items():
        yield untold(item, left_out[item]) if item in left_out else _one(item, trial)
    if start.OF_THE_START[0] in left_out:
        yield from (untold(item, _NO_PROC) for item in start.OF_THE_START)
    else:
        yield from _several(start.OF_THE_START, partial(start.try_start, inside=inside))
    yield untold(RUN, left_out[RUN]) if RUN in left_out else _rehearsed(rehearsal)


def _store_folder(named: str | None) -> str:
    """Empty where there is none."""
    try:
        return default_store(os.environ) if named is None else named
    except StoreError:
        return ""


def _one(item: str, trial: Callable[[], Finding]) -> Finding:
    (found,) = _several((item,), lambda: [trial()])
    return found


def _several(items: Iterable[str], trial: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return [Finding(*row) for row in aside(trial, within_s=_WITHIN_S)]
    except NotTold as why:
        return [untold(item, str(why)) for item in items]
    except KernelError as refusal:  # no process could be made
        return [_without_process(item, refusal) for item in items]


def _without_process(item: str, refusal: KernelError) -> Finding:
    if item == PROCESSES:
        return Finding(item, refusal.message, "refused", f"sigwrap: {refusal}")
    return untold(item, refusal.message)


def _rehearsed(rehearsal: Rehearsal) -> Finding:
    try:
        return rehearsal.run()
    except NotTold as why:
        return untold(RUN, str(why))
    except KernelError as refusal:
        return untold(RUN, refusal.message)


def _session(inside: bool) -> Finding:
    if not inside:
        return Finding(SESSION, "not in a session")
    outer = os.environ.get("SIGWRAP_SESSION", "")
    return Finding(SESSION, f"in session {outer}" if outer else "in a session", "inside")


def _machine() -> Finding:
    try:
        demand_known_calls()
    except NoInterception as refusal:
        shortfall = "untried" if IS_AARCH64 else "unknown"
        return Finding(MACHINE, refusal.message, shortfall, f"sigwrap: {refusal}")
    if IS_X86_64:
        return Finding(MACHINE, PLATFORM)
    return Finding(MACHINE, f"{PLATFORM}, and {UNTRIED_VARIABLE} is set", "being tried")


def _accelerator() -> Finding:
    if repeated.is_wanted():
        return Finding(ACCELERATOR, "loaded")
    if os.environ.get(repeated.PURE_VARIABLE):
        return Finding(ACCELERATOR, f"{repeated.PURE_VARIABLE} is set", "off")
    return Finding(ACCELERATOR, "the extension was not compiled", "absent")
