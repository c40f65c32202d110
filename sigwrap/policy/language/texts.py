"""The texts and variables of a policy, for session_started: a reader can load the policy again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sigwrap.bare import json
from sigwrap.events import Payload
from sigwrap.policy.language.document import Source, digest_of


def policy_texts(sources: Sequence[Source], variables: Mapping[str, str]) -> Payload:
    """Return them for the event; `sources` are the policy and then its bases."""
    texts: Payload = {
        "policy_sources": [
            {"name": each.name, "text": each.text, **({"shipped": True} if each.shipped else {})}
            for each in sources
        ],
        "policy_variables": dict(variables),
    }
    return {**texts, "policy_digest": digest_of_texts(texts)}


def digest_of_texts(payload: Payload) -> str:
    texts = {name: payload.get(name) for name in ("policy_sources", "policy_variables")}
    return digest_of(json.dumps_sorted(texts))
