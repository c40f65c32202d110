"""The policy of a session, as it is found now: a shipped one, or the file that it was in."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sigwrap.errors import PolicyError, SessionError
from sigwrap.events import Payload, text
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.variables import BUILT_IN
from sigwrap.report.check.recorded_policy import (
    NoPolicy,
    recorded_policy,
    recorded_sources,
    recorded_variables,
)
from sigwrap.start.policy_files import SHIPPED, read_source
from sigwrap.store.reader import Session


def started_of(session: Session) -> Payload:
    first = session.first()
    if first is None or first.type != "session_started":
        raise SessionError(f"the log of {session.id} has no start", "run sigwrap verify")
    return first.payload


def policy_then(session: Session, variables: Mapping[str, str]) -> Policy:
    """From the log alone: a file that it extends is another one by now."""
    try:
        return recorded_policy(started_of(session), variables)
    except NoPolicy as why:
        raise SessionError(f"{session.id}: {why}") from why


def selector_of(started: Payload, session_id: str) -> str:
    """By which the policy is found now: a shipped one's name, or the path of a file."""
    try:
        first = recorded_sources(started)[0]
    except NoPolicy as why:
        raise SessionError(f"{session_id}: {why}", "--extends names the one to begin with") from why
    name = first.name.removesuffix(".yaml")
    if name in SHIPPED and read_source(name).text == first.text:
        return name
    path = os.path.normpath(os.path.join(text(started.get("cwd")) or "/", first.name))
    if os.path.isfile(path):
        return path
    if name in SHIPPED:  # of another version
        return name
    raise PolicyError(
        f"the policy of {session_id} is not there any more: {path}",
        "--extends names the one to begin with",
    )


def variables_of(started: Payload, others: Mapping[str, str]) -> dict[str, str]:
    """Those of the run, where the log has them: a path in its policy means what it meant then."""
    found = recorded_variables(started)
    return {name: found.get(name) or others.get(name, "") for name in BUILT_IN}
