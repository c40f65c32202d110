"""What stands in for the parts of a session that a test has no need of."""

from __future__ import annotations

from typing import Any


class Anything:
    """Has every attribute and takes every call; both lead here again. Nothing is in it."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __contains__(self, _item: object) -> bool:
        return False

    def __call__(self, *_words: Any, **_named: Any) -> Any:
        return self


def session_of(**parts: Any) -> Any:
    """A session with these parts; each other part is anything."""
    session = Anything()
    vars(session).update(parts)
    return session
