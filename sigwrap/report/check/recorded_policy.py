"""Load the policy of a session from the texts in its log alone.

Files on this machine are not read: a file that the policy extends may have changed since.
"""

from __future__ import annotations

from collections.abc import Mapping

from sigwrap.errors import PolicyError
from sigwrap.events import Payload, text
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source, digest_of_texts, is_shipped
from sigwrap.policy.language.parse import MAX_BASES, parse_policy


class NoPolicy(Exception):
    """Says why a log has no usable policy."""


def has_other_texts(started: Payload) -> bool:
    """Return whether the recorded digest is that of other texts."""
    return "policy_sources" in started and started.get("policy_digest") != digest_of_texts(started)


def recorded_variables(started: Payload) -> dict[str, str]:
    recorded = started.get("policy_variables")
    items = recorded.items() if isinstance(recorded, dict) else ()
    return {name: value for name, value in items if isinstance(value, str)}


def recorded_policy(
    started: Payload, variables: Mapping[str, str] | None = None, *, longest: int = 0
) -> Policy:
    """Load the policy, with `variables` instead of the recorded ones if they are given.

    `longest` limits the texts that are not shipped, together: a megabyte takes seconds to load.
    """
    sources = recorded_sources(started)
    if longest and sum(len(each.text) for each in sources if not each.shipped) > longest:
        raise NoPolicy("the recorded policy is too long")
    rest = iter(sources[1:])
    try:
        # The texts are in the order in which they were loaded.
        return parse_policy(
            sources[0],
            variables=recorded_variables(started) if variables is None else variables,
            find_base=lambda _name, _source: next(rest, None),
        )
    except PolicyError as error:
        raise NoPolicy(f"cannot load the recorded policy: {_first_line(error)}") from error


def recorded_sources(started: Payload) -> list[Source]:
    """Return the recorded texts, the policy's own first; never empty."""
    recorded = started.get("policy_sources")
    sources = [
        _source(
            text(each.get("name")), text(each.get("text")), says_shipped=bool(each.get("shipped"))
        )
        for each in (recorded[: MAX_BASES + 1] if isinstance(recorded, list) else [])
        if isinstance(each, dict)
    ]
    if not sources:
        raise NoPolicy("the log has no policy")
    return sources


def _source(name: str, content: str, *, says_shipped: bool) -> Source:
    # A shipped text is not checked again, and a log can claim that of any text.
    is_ours = says_shipped and is_shipped(name, content)
    return Source(name, content, shipped=is_ours, for_a_run=is_ours)


def _first_line(error: PolicyError) -> str:
    lines = error.lines
    return (lines[1] if len(lines) > 1 else lines[0]).strip()
