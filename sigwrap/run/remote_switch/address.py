"""The URL of a remote kill switch. It may hold a token: what is shown of it has none.

Read here, and not by urllib.parse, which needs the table of all of Unicode for it.
"""

from __future__ import annotations

import re
import socket
from binascii import b2a_base64

from sigwrap.errors import UsageError
from sigwrap.escape import printable
from sigwrap.tuples import NamedTuple

_PORTS = {"https": 443, "http": 80}
_ALLOWED = "https://…, file:///PATH, or http:// to this machine (localhost, 127.0.0.1, [::1])"
_HOST_NAME = re.compile(r"[A-Za-z0-9_-]([A-Za-z0-9._-]{0,253}[A-Za-z0-9_.-])?")
_BEFORE_AT = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*:/+)?.*@", re.DOTALL)
_SHOWN_CHARACTERS = 200


class Web(NamedTuple):
    is_secure: bool
    host: str
    port: int
    target: str  # path and query
    authorization: str  # a header's value, or empty
    shown: str

    @property
    def origin(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = _PORTS["https" if self.is_secure else "http"]
        return host if self.port == usual else f"{host}:{self.port}"


class File(NamedTuple):
    path: bytes
    shown: str


Address = Web | File


def read_address(url: str, where: str) -> Address:
    """`where`: the option or variable that had it. Raises UsageError."""
    shown = without_secrets(url)
    scheme, colon, rest = url.partition("://")
    try:
        match scheme.lower() if colon else "":
            case "file":
                return _file(rest, shown)
            case ("https" | "http") as known:
                return _web(known, rest, shown)
        raise ValueError("not a supported URL")
    except ValueError as wrong:
        raise UsageError(f"{where} {_mistyped(url)}: {wrong}", _ALLOWED) from None


def without_secrets(url: str) -> str:
    """Without user, password, query and fragment."""
    bare = re.split("[?#]", url, maxsplit=1)[0]
    scheme, slashes, rest = bare.partition("://")
    if not slashes:
        scheme, rest = "", bare
    authority, slash, path = rest.partition("/")
    return _shown(f"{scheme}{slashes}{authority.rpartition('@')[2]}{slash}{path}")


def _mistyped(url: str) -> str:
    """What is before an @ may be a password, wherever that stands."""
    return _shown(re.split("[?#]", _BEFORE_AT.sub(r"\1…@", url), maxsplit=1)[0])


def _shown(text: str) -> str:
    return printable(text[:_SHOWN_CHARACTERS] + ("…" if len(text) > _SHOWN_CHARACTERS else ""))


def _file(rest: str, shown: str) -> File:
    host, slash, path = re.split("[?#]", rest, maxsplit=1)[0].partition("/")
    if host not in ("", "localhost") or not path:
        raise ValueError("a file needs its absolute path, file:///PATH")
    found = _unquoted(slash + path)
    if b"\0" in found:
        raise ValueError("a path cannot have a NUL byte")
    return File(found, shown)


def _web(scheme: str, rest: str, shown: str) -> Web:
    if not all("!" <= char <= "~" and char not in '\\"<>^`{|}' for char in rest):
        raise ValueError("it has a space or another character that must be written as %XX")
    rest = rest.partition("#")[0]
    authority = re.split("[/?]", rest, maxsplit=1)[0]
    target = rest[len(authority) :]
    user, at, place = authority.rpartition("@")
    host, port = host_and_port(place, _PORTS[scheme])
    if scheme == "http" and not is_loopback(host):
        raise ValueError(
            "http is allowed to this machine only: use https, whose response can be verified"
        )
    return Web(
        is_secure=scheme == "https",
        host=host,
        port=port,
        target=target if target.startswith("/") else f"/{target}",
        authorization=basic(user) if at else "",
        shown=shown,
    )


def host_and_port(place: str, usual_port: int) -> tuple[str, int]:
    """ValueError where it is neither a name nor an address."""
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:]*)(?::([0-9]*))?", place)
    if found is None or not found[1]:
        raise ValueError("no host")
    host = found[1].strip("[]")
    if host != found[1]:
        if _packed(socket.AF_INET6, host) is None:
            raise ValueError("no host")
    elif not _HOST_NAME.fullmatch(host):
        raise ValueError("not a host name (write one with other letters as xn--…)")
    port = int(found[2][:6]) if found[2] else usual_port
    if not 0 < port < 1 << 16:
        raise ValueError("not a port number")
    return host, port


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    packed = _packed(socket.AF_INET, host) or _packed(socket.AF_INET6, host) or b""
    return (len(packed) == 4 and packed[0] == 127) or packed == bytes(15) + b"\1"


def basic(user_and_password: str) -> str:
    """Of an Authorization header."""
    user, _, password = user_and_password.partition(":")
    both = _unquoted(user) + b":" + _unquoted(password)
    return "Basic " + b2a_base64(both, newline=False).decode("ascii")


def _unquoted(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), data)


def _packed(family: int, host: str) -> bytes | None:
    try:
        return socket.inet_pton(family, host)
    except OSError:
        return None
