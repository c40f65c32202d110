"""Sends a session to an OpenTelemetry collector: OTLP over HTTP, as JSON.

The address is `otlp+https://HOST[:4318][/PATH]` or `otlp+http://…`, to which /v1/logs or /v1/traces
is added, or `otlp:` for the one in $OTEL_EXPORTER_OTLP_ENDPOINT. Credentials are in
$OTEL_EXPORTER_OTLP_HEADERS, and no error shows them.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse
from threading import Thread
from urllib.parse import SplitResult, unquote, urlsplit

import sigwrap
from sigwrap.bare import TYPE_CHECKING, Any
from sigwrap.errors import ObjectsError, UsageError
from sigwrap.fleet.otlp import LOGS, TRACES, Request, requests
from sigwrap.log.reader import Session
from sigwrap.text import printable

if TYPE_CHECKING:
    import ssl

_PREFIX = "OTEL_EXPORTER_OTLP_"
_PORT = 4318
_WITHIN_MS = 10_000  # for one request, as in OpenTelemetry's own SDKs
_GZIP = 16 + zlib.MAX_WBITS  # the format; the one-file binary has no gzip module
_LONGEST_ANSWER = 64 * 1024
_SHOWN_CHARACTERS = 200
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
_TRY_AGAIN = frozenset({429, 502, 503, 504})  # as the protocol says; no other status
_URL = re.compile("[!-~]+")
_HOST = re.compile("[a-z0-9_.-]+|[0-9a-f.]*:[0-9a-f:.]+")
_FORMS = "otlp+https://HOST[:PORT][/PATH], otlp+http://… or otlp: with $OTEL_EXPORTER_OTLP_ENDPOINT"
_HINTS = {
    401: f"set ${_PREFIX}HEADERS",
    403: f"check ${_PREFIX}HEADERS",
    404: "check the path; to send no traces: OTEL_TRACES_EXPORTER=none",
}


class NotDelivered(ObjectsError):
    """A collector did not take the records."""


def ship_otlp(
    session: Session,
    url: str,
    environment: Mapping[str, str],
    deadline_s: float,
    *,
    after_seq: int = 0,
    delivered: Callable[[int], None] = lambda seq: None,
) -> None:
    """Send the events after `after_seq` as logs, and the spans if the session has ended.

    `delivered` gets the last seq that need not be sent again. That of the last logs comes only
    when the spans are delivered too, so a failure between them sends both again.
    """
    until_s = time.monotonic() + deadline_s
    collectors = {
        signal: Collector(url, signal, environment, until_s)
        for signal in (LOGS, TRACES)
        if environment.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip() != "none"
    }
    is_over, seq = not session.running, after_seq
    try:
        for request in requests(LOGS, session.id, session.events(), after_seq):
            if seq > after_seq:
                delivered(seq)
            if LOGS in collectors:
                collectors[LOGS].send(request)
            seq = request.last_seq
        if seq == after_seq:
            return
        if is_over and TRACES in collectors:
            for request in requests(TRACES, session.id, session.events()):
                collectors[TRACES].send(request)
    finally:
        for collector in collectors.values():
            collector.close()
    delivered(seq)
    for collector in collectors.values():
        collector.complain_of_rejected()


class Collector:
    """Where requests of one signal go. Each is sent until the collector takes or refuses it."""

    def __init__(
        self, url: str, signal: str, environment: Mapping[str, str], until_s: float
    ) -> None:
        """`until_s`: when to give up, in time.monotonic(). Raises UsageError."""
        variables = _Variables(signal, environment)
        self._address = _address(url, signal, variables)
        self._headers = variables.headers()
        self._within_s = variables.within_s()
        self._context = variables.context() if self._address.scheme == "https" else None
        self._until_s = until_s
        self._connection: HTTPConnection | None = None
        self._sent = self._rejected = 0
        self._why_rejected = ""

    def send(self, request: Request) -> None:
        """Raises NotDelivered."""
        body = json.dumps(request.body, separators=(",", ":")).encode()
        zipper = zlib.compressobj(wbits=_GZIP)
        zipped = zipper.compress(body) + zipper.flush()
        pause_s = _FIRST_PAUSE_S
        while True:
            wait_s = pause_s * (0.5 + os.urandom(1)[0] / 512)
            try:
                status, asked_s, answer = self._post(zipped)
            except (OSError, HTTPException) as failure:
                if why := getattr(failure, "verify_message", ""):
                    raise self._failed(f"can't verify its certificate: {why}") from failure
                why = _reason(failure)
            else:
                if 200 <= status < 300:
                    self._take(request, answer)
                    return
                why = f"status {status}{_said(answer)}"
                if status not in _TRY_AGAIN:
                    raise self._failed(why, _HINTS.get(status, ""))
                wait_s = max(wait_s, asked_s)
            if time.monotonic() + wait_s >= self._until_s:
                raise self._failed(f"{why}; gave up", "try again later")
            time.sleep(wait_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def complain_of_rejected(self) -> None:
        """Raise NotDelivered if the collector dropped records; it does not want them again."""
        if self._rejected:
            why = self._why_rejected and f": {self._why_rejected}"
            raise self._failed(f"it rejected {self._rejected} of {self._sent} records{why}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _post(self, body: bytes) -> tuple[int, float, bytes]:
        """Return the status, the pause that the collector asks for, and the answer.

        A thread does it, because nothing else limits a name server and an answer that trickles.
        """
        found: list[tuple[int, float, bytes] | Exception] = []
        connection = self._connection or HTTPConnection(self._address.netloc)
        self._connection = None

        def exchange() -> None:
            try:
                if connection.sock is None:
                    connection.sock = self._connected()
                found.append(_exchange(connection, self._address.path, body, self._headers))
            except Exception as failure:
                connection.close()
                found.append(failure)

        thread = Thread(target=exchange, daemon=True)
        thread.start()
        thread.join(max(min(self._within_s, self._until_s - time.monotonic()), 0))
        if not found:
            with suppress(OSError, AttributeError):  # it has no socket yet, or no longer
                connection.sock.shutdown(socket.SHUT_RDWR)  # ends the thread
            raise TimeoutError
        if isinstance(result := found[0], Exception):
            raise result
        self._connection = connection
        return result

    def _connected(self) -> socket.socket:
        # As bytes: for a str, Python would import the codec for international names.
        host = (self._address.hostname or "").encode()
        place: Any = (host, self._address.port)
        connection = socket.create_connection(place, self._within_s)
        # http.client sends the head and the body apart, and the second would wait for 40 ms.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is None:
            return connection
        return self._context.wrap_socket(connection, server_hostname=host)

    def _take(self, request: Request, answer: bytes) -> None:
        """Raise NotDelivered for a page of another server: only JSON, or nothing, is an answer."""
        try:
            found = json.loads(answer or b"{}")
            partial = found.get("partialSuccess") or {}
            rejected = partial.get("rejectedLogRecords") or partial.get("rejectedSpans") or 0
            rejected, why = int(rejected), partial.get("errorMessage")
        except (ValueError, AttributeError, TypeError, RecursionError):
            raise self._failed("its answer is not that of an OTLP collector") from None
        self._sent += request.records
        if rejected:
            self._rejected += rejected
            self._why_rejected = _cut(str(why or ""))

    def _failed(self, why: str, hint: str = "") -> NotDelivered:
        return NotDelivered(f"can't send to {self._address.geturl()}: {why}", hint)


def _exchange(
    connection: HTTPConnection, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, float, bytes]:
    with suppress(BrokenPipeError, ConnectionResetError):  # it may answer before it read all
        connection.request("POST", path, body, headers)
    response = connection.getresponse()
    answer = response.read(_LONGEST_ANSWER)
    if not response.isclosed():  # a longer answer, or an incomplete one
        connection.close()
    return response.status, _asked_pause_s(response), answer


def _asked_pause_s(response: HTTPResponse) -> float:
    asked = response.headers.get("Retry-After", "")
    with suppress(ValueError, TypeError, OverflowError):
        if asked.isdecimal():
            return float(asked)
        return parsedate_to_datetime(asked).timestamp() - time.time()
    return 0


def _reason(failure: OSError | HTTPException) -> str:
    if isinstance(failure, TimeoutError):
        return "no answer in time"
    if isinstance(failure, HTTPException):
        return f"not a complete HTTP answer ({type(failure).__name__})"
    return failure.strerror or type(failure).__name__


def _said(answer: bytes) -> str:
    """Return the message of an error's body, which is JSON or text."""
    said = answer.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        found = json.loads(said)
        said = str(found.get("message", "")) if isinstance(found, dict) else ""
    return f": {_cut(said)}" if said.strip() and not said.lstrip().startswith("<") else ""


def _cut(line: str) -> str:
    return printable(" ".join(line[:_SHOWN_CHARACTERS].split()))


def _address(url: str, signal: str, variables: _Variables) -> SplitResult:
    """Return the whole URL. No error shows what is given, because it may have a password."""
    where, given, port, path = "--to", url.removeprefix("otlp+"), _PORT, f"/v1/{signal}"
    if url == "otlp:":
        where, given = variables.named("ENDPOINT")
        port = 443 if given.startswith("https:") else 80
        if where == f"${_PREFIX}{signal.upper()}_ENDPOINT":
            path = ""
    try:
        parts = urlsplit(given if _URL.fullmatch(given) else "")
        host, port = parts.hostname or "", parts.port or port
    except ValueError:
        host = ""
    if not _HOST.fullmatch(host) or parts.scheme not in ("http", "https"):
        raise UsageError(f"{where}: not the address of a collector", _FORMS)
    if "@" in parts.netloc or parts.query or parts.fragment:
        hint = f"credentials go into ${_PREFIX}HEADERS"
        raise UsageError(f"{where}: it has more than a host, a port and a path", hint)
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    path = parts.path.rstrip("/") + path if path else parts.path or "/"
    return parts._replace(netloc=place, path=path)


class _Variables:
    """OpenTelemetry's variables. One for the signal wins over the general one."""

    def __init__(self, signal: str, environment: Mapping[str, str]) -> None:
        self._of_signal = f"{_PREFIX}{signal.upper()}_"
        self._environment = environment

    def named(self, name: str) -> tuple[str, str]:
        """Return the variable that counts, and its value."""
        for variable in (self._of_signal + name, _PREFIX + name):
            if value := self._environment.get(variable, "").strip():
                return f"${variable}", value
        return f"${_PREFIX}{name}", ""

    def headers(self) -> dict[str, str]:
        """Return all headers of a request. Values are encoded as %XX."""
        where, given = self.named("HEADERS")
        found = {}
        for each in filter(None, map(str.strip, given.split(","))):
            name, equals, value = each.partition("=")
            name, value = name.strip(), unquote(value.strip())
            is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
            if not (equals and is_name and value.isascii() and value.isprintable()):
                raise UsageError(f"{where}: not NAME=VALUE,NAME=VALUE", "encode others as %XX")
            found[name] = value
        return {
            **found,
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "User-Agent": f"sigwrap/{sigwrap.__version__}",
        }

    def within_s(self) -> float:
        where, given = self.named("TIMEOUT")
        if given and not (given.isdecimal() and given.isascii() and int(given[:9]) > 0):
            raise UsageError(f"{where}: not a number of milliseconds: {printable(given)}")
        return int(given[:9] or _WITHIN_MS) / 1000

    def context(self) -> ssl.SSLContext:
        """Return a context that verifies the collector."""
        try:
            import ssl
        except ImportError as missing:
            needs = f"https needs OpenSSL, which cannot be loaded: {missing}"
            raise NotDelivered(needs, "install libssl3") from missing
        names = ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
        authorities, client, key = (self.named(name)[1] for name in names)
        try:
            context = ssl.create_default_context(cafile=authorities or None)
            if client:
                context.load_cert_chain(client, key or None, password="")  # else OpenSSL asks
        except (OSError, ValueError) as failure:
            raise UsageError(
                f"can't read the certificates in ${_PREFIX}CERTIFICATE, CLIENT_CERTIFICATE and "
                f"CLIENT_KEY: {getattr(failure, 'strerror', None) or type(failure).__name__}"
            ) from failure
        return context
