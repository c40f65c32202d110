"""Read what an approval request about an exec needs besides its facts."""

from __future__ import annotations

import os

from sigwrap.linux.execs.executable import Executable
from sigwrap.linux.execs.tracing import tracer_of
from sigwrap.mediate.effects import (
    ReadContent,
    ReadEnvironment,
    ReadLoaded,
    ReadWhereabouts,
    Whereabouts,
)
from sigwrap.run.perform import Handler, Scope


def readings() -> dict[type, Handler]:
    return {
        ReadContent: _content,
        ReadEnvironment: _environment,
        ReadLoaded: _loaded,
        ReadWhereabouts: _whereabouts,
    }


def _content(scope: Scope, effect: ReadContent) -> tuple[str, ...]:
    return _executable(scope).read_content(effect.besides)


def _environment(scope: Scope, effect: ReadEnvironment) -> str:
    environment = _executable(scope).environment
    return "" if environment is None else environment.digest(stays=effect.stays)


def _loaded(scope: Scope, effect: ReadLoaded) -> tuple[str, ...] | None:
    environment = _executable(scope).environment
    return None if environment is None else environment.loaded(effect.names)


def _whereabouts(scope: Scope, effect: ReadWhereabouts) -> Whereabouts:
    del effect
    is_traced = tracer_of(scope.tid) not in (0, os.getpid())
    return _executable(scope).where.read()._replace(traced=is_traced)


def _executable(scope: Scope) -> Executable:
    executable: Executable | None = scope.holdings.executable
    assert executable is not None, "judged before"
    return executable
