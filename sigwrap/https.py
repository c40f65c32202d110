"""Web servers: their addresses, and a client that asks one of them for one short text.

The client of a kill switch asks while the command runs, which may be able to change files. So it
imports nothing and reads no certificates once it is made.
"""

from __future__ import annotations

import os
import re
import socket
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import unquote_to_bytes, urlsplit

import sigwrap
from sigwrap.bare import IO, TYPE_CHECKING, Any, NamedTuple
from sigwrap.errors import SessionError, SigwrapError, UsageError
from sigwrap.kernel.peer import ListenerCheck
from sigwrap.text import printable

if TYPE_CHECKING:
    import ssl

WITHIN_S = 5.0  # for each wait
# http elsewhere could show a password, and an attacker could change or withhold the response.
ALLOWED = "https://…, or http:// to this machine (localhost, 127.0.0.1, [::1])"
_URL_CHARACTERS = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f.]*:[0-9a-f:.]+")
_LOOPBACK = re.compile(r"localhost|::1|127(\.[0-9]{1,3}){3}")
_BUNDLES = ("ca-certificates.crt", "ca-bundle.crt")
# A name server that is down must not use up the time of a whole request.
_RESOLVER = "timeout:1 attempts:2"


class NoAnswer(SigwrapError):
    """There is no usable response; the message says why."""


class Address(NamedTuple):
    is_secure: bool
    host: str
    port: int | None = None  # None: the usual one
    path: str = ""
    query: str = ""
    authorization: str = ""  # the value of a header

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def place(self) -> tuple[Any, int]:
        """Return host and port for a socket.

        As bytes: for a str, Python would import the codec for international names, which one-file
        sigwrap lacks.
        """
        return self.host.encode(), self.port or (443 if self.is_secure else 80)

    @property
    def target(self) -> str:
        return (self.path or "/") + (f"?{self.query}" if self.query else "")

    def __str__(self) -> str:
        """Return the URL without user, password, query and fragment."""
        return f"http{'s' * self.is_secure}://{self.authority}{self.path}"


def read_address(url: str, where: str, allowed: str = ALLOWED) -> Address:
    """Parse the URL of the option or variable `where`. Raises UsageError, without the URL: what is
    mistyped may be a password."""
    try:
        address = parsed(url)
        if not address.is_secure and not _LOOPBACK.fullmatch(address.host):
            raise ValueError("http is allowed to this machine only: use https, which is verified")
    except ValueError as wrong:
        raise UsageError(f"{where}: {wrong}", allowed) from None
    return address


def parsed(url: str) -> Address:
    """Raises ValueError, whose text has no part of the URL."""
    scheme = url.partition("://")[0].lower()
    if scheme not in ("http", "https"):
        raise ValueError("not a supported URL")
    with suppress(ValueError):
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if _URL_CHARACTERS.fullmatch(url) and _HOST.fullmatch(host) and port != 0:
            user, at, _ = parts.netloc.rpartition("@")
            login = unquote_to_bytes(user if ":" in user else f"{user}:")
            basic = f"Basic {b64encode(login).decode()}" if at else ""
            return Address(scheme == "https", host, port, parts.path, parts.query, basic)
    raise ValueError("no host, not a port number, or a character that must be written as %XX")


def proxy_for(address: Address, environment: Mapping[str, str]) -> Address | None:
    """Return the proxy that the environment names for an https server. Raises UsageError."""
    name = "https_proxy" if environment.get("https_proxy") else "HTTPS_PROXY"
    given = environment.get(name)
    excepted = environment.get("no_proxy") or environment.get("NO_PROXY", "")
    listed = excepted.lower().replace(" ", "").split(",")
    ends = tuple(f".{each.lstrip('.')}" for each in listed if each)
    hosts = (f".{address.host}", f".{address.host}:{address.place[1]}")
    is_excepted = "*" in listed or any(each.endswith(ends) for each in hosts)
    if not given or is_excepted or _LOOPBACK.fullmatch(address.host):
        return None
    with suppress(ValueError):
        proxy = parsed(given if "://" in given else f"http://{given}")
        if not proxy.is_secure:
            return proxy
    raise UsageError(f"${name}: not an http:// proxy", "set it to http://HOST:PORT, or unset it")


def verifying_context(environment: Mapping[str, str]) -> ssl.SSLContext:
    """Return a context that trusts the CA certificates of this moment. Raises SessionError.

    OpenSSL would read a folder of certificates again at each handshake, and the command may be able
    to write there.
    """
    try:
        import ssl
    except ImportError as missing:
        raise SessionError(
            f"https needs OpenSSL, which cannot be loaded: {missing}",
            "install libssl3, or use http:// to this machine",
        ) from missing
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies chain and name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    file, folders = environment.get("SSL_CERT_FILE", ""), environment.get("SSL_CERT_DIR", "")
    if not file and not folders:
        usual = ssl.get_default_verify_paths()
        folders = usual.openssl_capath
        bundles = (usual.openssl_cafile, *(os.path.join(folders, each) for each in _BUNDLES))
        if file := next(filter(os.path.exists, bundles), ""):
            folders = ""  # it has the same certificates, and is read in a third of the time
    names = [file]
    for folder in folders.split(":"):
        with suppress(OSError):
            names += [os.path.join(folder, each) for each in os.listdir(folder)]
    # Many names in a folder are links to one file.
    for each in filter(os.path.isfile, set(map(os.path.realpath, names))):
        with suppress(OSError):  # others hold no certificate
            context.load_verify_locations(each)
    if not context.cert_store_stats()["x509_ca"]:
        looked_at = printable(" and ".join(filter(None, (file, folders))))
        raise SessionError(
            f"cannot verify https servers: no CA certificates in {looked_at}",
            "install ca-certificates, or set $SSL_CERT_FILE",
        )
    return context


class Client:
    def __init__(self, address: Address, environment: Mapping[str, str], longest: int) -> None:
        """`longest`: the bytes of a response. Raises SigwrapError if no request could ever
        succeed."""
        self._address, self._longest = address, longest
        self._listeners = None if address.is_secure else ListenerCheck()
        self._proxy = proxy_for(address, environment) if address.is_secure else None
        self._context = verifying_context(environment) if address.is_secure else None
        os.environ.setdefault("RES_OPTIONS", _RESOLVER)

    def get(self) -> bytes:
        """Return the body of the response. Raises NoAnswer."""
        try:
            return self._get()
        except TimeoutError as failure:
            raise NoAnswer(f"no response within {WITHIN_S:.0f} s") from failure
        except (HTTPException, OSError) as failure:
            raise NoAnswer(why(failure)) from failure

    def _get(self) -> bytes:
        address = self._address
        with _connect(self._proxy or address, self._listeners) as connection:
            if self._proxy is not None:
                self._tunnel(connection, self._proxy)
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_hostname=address.place[0])
            with connection:
                headers = {"Host": address.authority, "Accept": "application/json, */*"}
                headers["Authorization"] = address.authorization
                response = _response(connection, "GET", address.target, headers)
                if response.status != 200:
                    is_redirect = 300 <= response.status < 400
                    followed = " (sigwrap does not follow redirects)" if is_redirect else ""
                    raise NoAnswer(f"status {response.status}{followed}")
                body = whole(response, self._longest)
                if response.length:  # of what the server announced, this did not arrive
                    raise NoAnswer("the response is incomplete")
                return body

    def _tunnel(self, connection: socket.socket, proxy: Address) -> None:
        """Make the proxy pass on what follows."""
        host = self._address._replace(port=self._address.place[1]).authority
        headers = {"Host": host, "Proxy-Authorization": proxy.authorization}
        # A duplicate: HTTPConnection closes what it gets.
        accepted = _response(connection.dup(), "CONNECT", host, headers)
        if accepted.status != 200:
            raise NoAnswer(f"the proxy refused the connection: status {accepted.status}")


def why(failure: HTTPException | OSError) -> str:
    if isinstance(failure, HTTPException):
        return f"not a complete HTTP response ({type(failure).__name__})"
    if verified := getattr(failure, "verify_message", ""):
        return f"cannot verify its certificate: {verified}"
    if reason := getattr(failure, "reason", ""):  # of an SSLError
        return f"TLS: {reason}"
    return failure.strerror or type(failure).__name__


def whole(source: IO[bytes] | HTTPResponse, longest: int) -> bytes:
    """Return the content. Raises NoAnswer if it is longer."""
    content = source.read(longest + 1)
    if len(content) > longest:
        raise NoAnswer(f"larger than {longest // 1024} KiB")
    return content


def _response(
    connection: socket.socket, method: str, target: str, headers: dict[str, str]
) -> HTTPResponse:
    given = {name: value for name, value in headers.items() if value}
    http = HTTPConnection(headers["Host"])
    http.sock = connection
    agent = {"User-Agent": f"sigwrap/{sigwrap.__version__}"}
    http.request(method, target, headers=given | agent)
    return http.getresponse()


def _connect(server: Address, listeners: ListenerCheck | None) -> socket.socket:
    """Connect to the first address that may answer. A silent one leaves time for the others.

    With `listeners`, for http, a supervised process that has taken the port is not asked.
    """
    host, port = server.place
    hosts = (b"127.0.0.1", b"::1") if host == b"localhost" else (host,)
    flags = socket.AI_NUMERICHOST if listeners else 0  # http: a name could be another machine
    places = []
    for each in hosts:
        places += socket.getaddrinfo(each, port, type=socket.SOCK_STREAM, flags=flags)
    failures: list[OSError | NoAnswer] = []
    for family, _, _, _, place in places:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(WITHIN_S / len(places))
            connection.connect(place)
            connection.settimeout(WITHIN_S)
            until_s = time.monotonic() + WITHIN_S
            objection = listeners and listeners.objection(str(place[0]), port, until_s)
            if not objection:
                return connection
            failures.insert(0, NoAnswer(f"response not trusted: {objection}"))
        except OSError as failure:
            failures.append(failure)
        connection.close()
    raise failures[0]
