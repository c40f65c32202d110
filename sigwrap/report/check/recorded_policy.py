"""The policy under which a session was recorded, from the texts in its log alone.

No file of this machine is looked at: a file that the policy extends is another one by now, or
somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping

from sigwrap.errors import PolicyError
from sigwrap.events import Payload, text
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.language.document import Source, is_shipped
from sigwrap.policy.language.parse import MAX_BASES, parse_policy
from sigwrap.policy.language.texts import digest_of_texts


class NoPolicy(Exception):
    """Says why it can't be had."""


def has_other_texts(started: Payload) -> bool:
    """Than those that its digest is of."""
    return "policy_sources" in started and started.get("policy_digest") != digest_of_texts(started)


def recorded_variables(started: Payload) -> dict[str, str]:
    recorded = started.get("policy_variables")
    items = recorded.items() if isinstance(recorded, dict) else ()
    return {name: value for name, value in items if isinstance(value, str)}


def recorded_policy(
    started: Payload, variables: Mapping[str, str] | None = None, *, longest: int = 0
) -> Policy:
    """`variables`: others than the run's. `longest`: of all texts that are not shipped, together;
    a text takes time to load, some seconds for a megabyte."""
    sources = recorded_sources(started)
    if longest and sum(len(each.text) for each in sources if not each.shipped) > longest:
        raise NoPolicy("the recorded policy is too long")
    rest = iter(sources[1:])
    try:
        # They were found in this order when it was loaded.
        return parse_policy(
            sources[0],
            variables=recorded_variables(started) if variables is None else variables,
            find_base=lambda _name, _source: next(rest, None),
        )
    except PolicyError as error:
        raise NoPolicy(f"cannot load the recorded policy: {_first_line(error)}") from error


def recorded_sources(started: Payload) -> list[Source]:
    """The texts as they were, the policy's own first; never empty."""
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
    # What is shipped is not checked again, and a log can say that of any text.
    is_ours = says_shipped and is_shipped(name, content)
    return Source(name, content, shipped=is_ours, for_a_run=is_ours)


def _first_line(error: PolicyError) -> str:
    lines = error.lines
    return (lines[1] if len(lines) > 1 else lines[0]).strip()
