"""Reads a tool call, as the agent's program gives it to its hook: what it would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sigwrap.bare import Any, NamedTuple, re
from sigwrap.policy.judge.request import Operation

_DEFAULT_PORTS = {"http": 80, "https": 443, "ssh": 22, "git": 9418, "ftp": 21, "ws": 80, "wss": 443}
_LAST_PORT = 65535
_URL = re.compile(
    r"([a-zA-Z][a-zA-Z0-9+.-]*)://(?:[^/?#\\]*@)?(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(\d{0,5}))?(?:[/?#].*)?",
    re.DOTALL,
)
_ODD_SCHEME = re.compile(r"\s*[a-zA-Z][a-zA-Z0-9+.-]*:(?!//|\d)")  # `http:/a` is `http://a`
_NUMBERS = re.compile(r"(0x)?[0-9a-f]+(\.(0x)?[0-9a-f]+){0,3}")
_PATCH = {
    "*** Add File: ": Operation.CREATE,
    "*** Update File: ": Operation.WRITE,
    "*** Delete File: ": Operation.DELETE,
    "*** Move to: ": Operation.CREATE,
}


class BadCall(Exception):
    """The call is not what the program documents; says why. Deny it."""


class ShellCall(NamedTuple):
    line: str
    folder: str = ""  # beneath the call's own, or absolute


class FileCall(NamedTuple):
    operation: Operation | None  # None: a write, or a create if the file is missing
    path: str
    with_all_below: bool = False


class WebCall(NamedTuple):
    host: str
    port: int


Doing = ShellCall | FileCall | WebCall


class Call(NamedTuple):
    tool: str
    folder: str  # in which it happens
    doings: tuple[Doing, ...]  # empty: nothing that a policy has rules for
    cannot_ask: bool = False  # the program would not ask its user
    conversation: str = ""  # the agent's own id of it
    id: str = ""  # of the call, if the agent has one
    project: str = ""  # its directory, if the call names it


def text_in(given: Mapping[str, Any], *names: str) -> str:
    """Return the first text that is there."""
    for name in names:
        value = given.get(name)
        if isinstance(value, str) and value:
            return _plain(value)
    raise BadCall(f"the call has no text {' or '.join(map(repr, names))}")


def shell(given: Mapping[str, Any], *folder_names: str) -> tuple[Doing, ...]:
    command = given.get("command")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        return (ShellCall(_quoted(command), optional(given, *folder_names)),)
    if not isinstance(command, str):
        raise BadCall("the call has no text 'command'")
    return (ShellCall(command, optional(given, *folder_names)),)


def file(given: Mapping[str, Any], operation: Operation | None, *names: str) -> tuple[Doing, ...]:
    return (FileCall(operation, text_in(given, *names)),)


def search(given: Mapping[str, Any]) -> tuple[Doing, ...]:
    return (FileCall(Operation.READ, optional(given, "path") or ".", with_all_below=True),)


def web(given: Mapping[str, Any]) -> tuple[Doing, ...]:
    url = text_in(given, "url")
    if _ODD_SCHEME.match(url):
        raise BadCall("its URL is not valid")
    return (web_address(url if "://" in url else f"https://{url}"),)


def web_address(url: str) -> WebCall:
    """Raise BadCall for anything that programs could read in different ways."""
    found = _URL.fullmatch(url)
    if found is None:
        raise BadCall("its URL is not valid")
    port = int(found[3] or _DEFAULT_PORTS.get(found[1].lower(), 0))
    if not port or port > _LAST_PORT:
        raise BadCall("its URL has no valid port")
    return WebCall(address(found[2].strip("[]").lower()), port)


def patch(given: Mapping[str, Any]) -> tuple[Doing, ...]:
    """Return each file that a patch of apply_patch names."""
    found = tuple(_patched(text_in(given, "command", "input", "patch")))
    if not found:
        raise BadCall("its patch names no file")
    return found


def _patched(text: str) -> Iterator[Doing]:
    for line in text.splitlines():
        for mark, operation in _PATCH.items():
            if line.strip().startswith(mark):
                yield FileCall(operation, line.strip().removeprefix(mark).strip())


def optional(given: Mapping[str, Any], *names: str) -> str:
    found = (value for name in names if isinstance(value := given.get(name), str))
    return _plain(next(found, ""))


def _plain(text: str) -> str:
    if "\0" in text:
        raise BadCall("the call contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as failure:
        raise BadCall("the call contains a lone surrogate") from failure
    return text


def address(host: str) -> str:
    """Return the IPv4 address that programs read in a number, or in parts with other digits."""
    if not _NUMBERS.fullmatch(host.rstrip(".")):
        return host
    try:
        *first, last = (_number(part) for part in host.rstrip(".").split("."))
    except ValueError:
        return host
    room = 1 << 8 * (4 - len(first))  # the last part fills what the others leave
    if last >= room or any(each > 255 for each in first):
        return host
    value = last + sum(each << 8 * (3 - place) for place, each in enumerate(first))
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))


def _number(part: str) -> int:
    """Read a number as C does: 0 before it is octal, 0x hexadecimal."""
    is_octal = len(part) > 1 and part.startswith("0") and not part.startswith("0x")
    return int(part, 8 if is_octal else 0)


def _quoted(words: Sequence[str]) -> str:
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
