"""The policy of a session: from its log, and what it is now."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sigwrap.errors import PolicyError, SessionError
from sigwrap.events import Payload, text
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.variables import BUILT_IN
from sigwrap.report.check.recorded_policy import (
    NoPolicy,
    recorded_policy,
    recorded_sources,
    recorded_variables,
)
from sigwrap.start.policy_files import SHIPPED, load_with_sources, read_source
from sigwrap.store.reader import Session


def started_of(session: Session) -> Payload:
    first = session.first()
    if first is None or first.type != "session_started":
        raise SessionError(f"the log of {session.id} has no start", "to check it: sigwrap verify")
    return first.payload


def policy_then(session: Session, variables: Mapping[str, str]) -> Policy:
    """Load the policy from the log alone, because the files that it extends may have changed."""
    try:
        return recorded_policy(started_of(session), variables)
    except NoPolicy as why:
        raise SessionError(f"{session.id}: {why}") from why


def selector_of(session: Session) -> str:
    """Return the name of a shipped policy, or the path of a file, which may no longer exist."""
    source = _sources(session)[0]
    shipped = source.name.removesuffix(".yaml")
    if shipped in SHIPPED and read_source(shipped).text == source.text:
        return shipped
    cwd = text(started_of(session).get("cwd")) or "/"
    path = os.path.normpath(os.path.join(cwd, source.name))
    # The shipped policy of another version has another text.
    return shipped if shipped in SHIPPED and not os.path.isfile(path) else path


def what_it_is_now(selector: str, session: Session, variables: Mapping[str, str]) -> str:
    """Return how the policy differs from the recorded one, or "".

    The answer holds nothing of the file: a log can name any file of this machine.
    """
    if selector not in SHIPPED and not os.path.isfile(selector):
        return "no longer exists"
    try:
        _, now = load_with_sources(selector, variables=variables)
    except PolicyError:
        return "no longer loads"
    then = _sources(session)
    is_same = len(then) == len(now) and all(map(_is_same, now, then))
    return "" if is_same else "has changed"


def _is_same(now: Source, then: Source) -> bool:
    """Compare texts, but for shipped policies, which may be of another version."""
    return now.text == then.text or (now.shipped and now.name == then.name)


def _sources(session: Session) -> list[Source]:
    try:
        return recorded_sources(started_of(session))
    except NoPolicy as why:
        raise SessionError(f"{session.id}: {why}", "name the base with --extends") from why


def variables_of(session: Session, others: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the run, so that a path in its policy means the same as then."""
    found = recorded_variables(started_of(session))
    return {name: found.get(name) or others.get(name, "") for name in BUILT_IN}
