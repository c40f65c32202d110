"""The limits that the caller set (`ulimit`), which are meant for the command.

sigwrap lifts them for itself as far as the kernel permits, and the command gets them unchanged.
"""

from __future__ import annotations

import resource
from collections.abc import Iterable

from sigwrap.bare import NamedTuple, suppress

LIMIT_US_TOO = "applies to sigwrap as well (a soft limit, ulimit -S, applies to the command only)"
_NO_LIMIT = resource.RLIM_INFINITY
_SIGPENDING = 11
_RTTIME = 15


class Limit(NamedTuple):
    resource: int
    soft: int
    hard: int


class _Kind(NamedTuple):
    """`enough`: what no supervisor ever reaches."""

    shown: str  # the option of ulimit
    unit: int
    enough: int


_KINDS = {
    resource.RLIMIT_CPU: _Kind("-t", 1, 3600),
    resource.RLIMIT_FSIZE: _Kind("-f", 1024, 1 << 30),
    resource.RLIMIT_DATA: _Kind("-d", 1024, 1 << 28),
    resource.RLIMIT_STACK: _Kind("-s", 1024, 1 << 18),
    resource.RLIMIT_AS: _Kind("-v", 1024, 1 << 29),
}
# Limits that can end sigwrap or make its calls fail. Not RLIMIT_CORE: it needs no core.
_LIFTED = (*_KINDS, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, _SIGPENDING, _RTTIME)


def of_the_caller() -> tuple[Limit, ...]:
    return tuple(Limit(each, *resource.getrlimit(each)) for each in _LIFTED)


def lift(limits: Iterable[Limit]) -> None:
    for number, _soft, hard in limits:
        if hard != _NO_LIMIT and number in _KINDS and _is_set(number, _NO_LIMIT, _NO_LIMIT):
            continue  # with CAP_SYS_RESOURCE, the hard limit can be raised too
        _is_set(number, hard, hard)


def lift_open_files() -> None:
    """Raise the limit in this process, which starts no other."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def give_back(limits: Iterable[Limit]) -> None:
    for number, soft, hard in limits:
        resource.setrlimit(number, (soft, hard))


def not_lifted() -> list[str]:
    """Return the tight limits that apply to sigwrap as well, as shell commands."""
    found = []
    for number, kind in _KINDS.items():
        soft, _hard = resource.getrlimit(number)
        if soft != _NO_LIMIT and soft < kind.enough:
            found.append(f"ulimit {kind.shown} {soft // kind.unit}")
    return found


def way_to_room(otherwise: str) -> str:
    """Return what to do if a file cannot be written."""
    tight = [words for words in not_lifted() if words.startswith("ulimit -f ")]
    return f"raise the file size limit, {tight[0]}" if tight else otherwise


def _is_set(number: int, soft: int, hard: int) -> bool:
    try:
        resource.setrlimit(number, (soft, hard))
    except (OSError, ValueError):  # Python raises ValueError for EPERM
        return False
    return True
