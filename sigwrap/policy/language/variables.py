"""${NAME} and ${NAME:-default} in a policy's text.

The values are handed in: what PROJECT_ROOT and HOME are is for the caller to know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

MAX_SUBSTITUTED = 1 << 20  # characters

BUILT_IN = ("PROJECT_ROOT", "HOME", "USER", "TMPDIR")

# ${SIGWRAP_HOST:NAME} stays as it is: a policy is shown and logged, the host's secrets are not.
_HOST = re.compile(r"\$\{SIGWRAP_HOST:[A-Za-z_][A-Za-z0-9_]*\}")
_REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}")
_ANY = re.compile(r"\$\{[^}]*\}?")


class UnknownVariable(Exception):
    """Report `reference` at its place in the policy."""

    def __init__(self, reference: str) -> None:
        super().__init__(reference)
        self.reference = reference

    @property
    def name(self) -> str:
        return self.reference.removeprefix("${").removesuffix("}").partition(":")[0]


class TooLong(Exception):
    """Report it at its place in the policy."""


class Room:
    """For all texts of a policy with variables in them, together: each of some variables may be the
    one before it twice."""

    def __init__(self, characters: int = MAX_SUBSTITUTED) -> None:
        self._left = characters

    def take(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise TooLong


def substitute(
    text: str,
    values: Mapping[str, str],
    room: Room,
    *,
    escape: Callable[[str], str] = str,
    host_allowed: bool = False,
) -> str:
    """`escape` protects a value that lands in a regex or a glob; defaults are taken as written."""

    def replacement(found: re.Match[str]) -> str:
        reference = found.group()
        if host_allowed and _HOST.fullmatch(reference):
            return reference
        parts = _REFERENCE.fullmatch(reference)
        if parts is None:
            raise UnknownVariable(reference)
        value = values.get(parts["name"])
        if parts["default"] is not None and not value:
            return parts["default"]
        if value is None:
            raise UnknownVariable(reference)
        room.take(len(value))
        return escape(value)

    if "${" not in text:
        return text
    room.take(len(text))
    return _ANY.sub(replacement, text)
