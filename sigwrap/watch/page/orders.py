"""What a POST asks for, out of its JSON."""

from __future__ import annotations

import json
from typing import Any

from sigwrap.bare import re
from sigwrap.watch.orders import Approve, Deny, Interrupt, KillAll, Lift, Order

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
_LONGEST_TEXT = 1_000


class NotAsked(ValueError):
    """Answer with it."""


def order(path: str, body: bytes) -> Order | None:
    """None where nothing is to be had at that path; NotAsked where it isn't asked for rightly."""
    match path:
        case "/approve":
            asked = _read(body)
            return Approve(_id(asked, "session_id"), _id(asked, "id"), _truth(asked, "always"))
        case "/deny":
            asked = _read(body)
            return Deny(_id(asked, "session_id"), _id(asked, "id"), _text(asked, "message"))
        case "/interrupt":
            return Interrupt(_id(_read(body), "session_id"))
        case "/killswitch":
            asked = _read(body)
            return KillAll(_text(asked, "reason")) if _truth(asked, "on") else Lift()
        case _:
            return None


def _read(body: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotAsked("the body is not JSON") from error
    if not isinstance(asked, dict):
        raise NotAsked("the body is not a JSON object")
    return asked


def _id(asked: dict[str, Any], name: str) -> str:
    found = asked.get(name)
    if not is_id(found):
        raise NotAsked(f"{name} is missing or not an id")
    return str(found)


def is_id(found: object) -> bool:
    """One that leads nowhere but to its session, and is no option."""
    return isinstance(found, str) and _ID.fullmatch(found) is not None


def _truth(asked: dict[str, Any], name: str) -> bool:
    found = asked.get(name)
    if not isinstance(found, bool):
        raise NotAsked(f"{name} must be true or false")
    return found


def _text(asked: dict[str, Any], name: str) -> str:
    found = asked.get(name, "")
    if not isinstance(found, str) or len(found) > _LONGEST_TEXT:
        raise NotAsked(f"{name} must be text of at most {_LONGEST_TEXT} characters")
    return found
