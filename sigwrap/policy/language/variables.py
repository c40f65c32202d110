"""${NAME} and ${NAME:-default} in a policy's text. The caller hands in the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

MAX_SUBSTITUTED = 1 << 20  # characters

BUILT_IN = ("PROJECT_ROOT", "GIT_COMMON_DIR", "HOME", "USER", "TMPDIR", "USERS_PROC")

# ${SIGWRAP_HOST:NAME} stays in the text: sigwrap shows and logs policies, but no secrets.
_HOST = "SIGWRAP_HOST"


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
    """The length that all texts of a policy with variables may have together.

    Without it, variables that each contain another one twice would grow exponentially.
    """

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
    """Fill in variables. `escape` quotes a value for a regex or a glob, but no default."""
    if "${" not in text:
        return text
    room.take(len(text))
    filled, rest = "", text
    while "${" in rest:
        before, _, rest = rest.partition("${")
        inside, closed, rest = rest.partition("}")
        reference = f"${{{inside}{closed}"
        is_left = host_allowed and closed and _is_of_the_host(inside)
        value = reference if is_left else _value(reference, inside, closed, values, room, escape)
        filled += before + value
    return filled + rest


def _value(
    reference: str,
    inside: str,
    closed: str,
    values: Mapping[str, str],
    room: Room,
    escape: Callable[[str], str],
) -> str:
    name, has_default, default = inside.partition(":-")
    if not closed or not _is_name(name) or "{" in default:
        raise UnknownVariable(reference)
    value = values.get(name)
    if has_default and not value:
        return default
    if value is None:
        raise UnknownVariable(reference)
    room.take(len(value))
    return escape(value)


def _is_of_the_host(inside: str) -> bool:
    prefix, _, name = inside.partition(":")
    return prefix == _HOST and _is_name(name)


def _is_name(word: str) -> bool:
    return word.isascii() and word.isidentifier()
