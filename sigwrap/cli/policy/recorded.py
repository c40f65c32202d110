"""The policy of a session: as it is found now, a shipped one or its file, or as the log has it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from sigwrap.errors import PolicyError, SessionError
from sigwrap.escape import printable
from sigwrap.events import Payload, text
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.variables import BUILT_IN
from sigwrap.policy.tools.draft import COMMAND_RULES, NETWORK_RULES, SIGNAL_RULES
from sigwrap.policy.tools.inserted import CannotInsert, with_rules_first
from sigwrap.policy.tools.show import policy_text
from sigwrap.report.check.recorded_policy import (
    NoPolicy,
    recorded_policy,
    recorded_sources,
    recorded_variables,
)
from sigwrap.start.policy_files import SHIPPED, load_with_sources, read_source
from sigwrap.store.reader import Session

Load = Callable[[str], Policy]


def started_of(session: Session) -> Payload:
    first = session.first()
    if first is None or first.type != "session_started":
        raise SessionError(f"the log of {session.id} has no start", "to check it: sigwrap verify")
    return first.payload


def policy_then(session: Session, variables: Mapping[str, str]) -> Policy:
    """From the log alone: a file that it extends is another one by now."""
    try:
        return recorded_policy(started_of(session), variables)
    except NoPolicy as why:
        raise SessionError(f"{session.id}: {why}") from why


def selector_of(started: Payload, session_id: str) -> str:
    """A shipped one's name, or the path of the file, which may be gone by now."""
    name = _sources(started, session_id)[0].name
    shipped = name.removesuffix(".yaml")
    if shipped in SHIPPED and read_source(shipped).text == _sources(started, session_id)[0].text:
        return shipped
    path = os.path.normpath(os.path.join(text(started.get("cwd")) or "/", name))
    # Of a shipped one, the text may be that of another version.
    return shipped if shipped in SHIPPED and not os.path.isfile(path) else path


def what_it_is_now(
    selector: str, started: Payload, session_id: str, variables: Mapping[str, str]
) -> str:
    """Of the policy, where that isn't what was recorded: in words that hold nothing of its file. A
    log can name any file, and whose text it is may be no business of who reads the policy."""
    if selector not in SHIPPED and not os.path.isfile(selector):
        return "no longer exists"
    try:
        _, now = load_with_sources(selector, variables=variables)
    except PolicyError:
        return "no longer loads"
    then = _sources(started, session_id)
    is_same = len(then) == len(now) and all(map(_is_as_it_was, now, then))
    return "" if is_same else "has changed"


def _is_as_it_was(now: Source, then: Source) -> bool:
    """A file has its text; a shipped policy may be that of another version."""
    return now.text == then.text or (now.shipped and now.name == then.name)


def text_then(session: Session, variables: Mapping[str, str], load: Load) -> str:
    """One to put rules into that means now what it meant then: as it was written where that can
    be, else as it took effect."""
    then = policy_then(session, variables)
    written = _sources(started_of(session), session.id)[0].text
    try:
        sections = (COMMAND_RULES, SIGNAL_RULES, NETWORK_RULES)
        with_rules_first(written, then.name, dict.fromkeys(sections, ()))
        is_safe = all(printable(line) == line for line in written.split("\n"))
        if is_safe and policy_text(load(written)) == policy_text(then):
            return written
    except (CannotInsert, PolicyError):
        pass
    return policy_text(then)


def _sources(started: Payload, session_id: str) -> list[Source]:
    try:
        return recorded_sources(started)
    except NoPolicy as why:
        raise SessionError(f"{session_id}: {why}", "name the base with --extends") from why


def variables_of(started: Payload, others: Mapping[str, str]) -> dict[str, str]:
    """Those of the run, where the log has them: a path in its policy means what it meant then."""
    found = recorded_variables(started)
    return {name: found.get(name) or others.get(name, "") for name in BUILT_IN}
