"""Sends a session to an OpenTelemetry collector: OTLP over HTTP, as JSON.

The address is `otlp+https://HOST[:4318][/PATH]` or `otlp+http://…`, to which /v1/logs or /v1/traces
is added, or `otlp:` for the one in $OTEL_EXPORTER_OTLP_ENDPOINT. Credentials are in
$OTEL_EXPORTER_OTLP_HEADERS, and no error shows them.
"""

from __future__ import annotations

import gzip
import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Thread
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import sigwrap
from sigwrap.errors import SigwrapError, UsageError
from sigwrap.fleet.otlp import LOGS, TRACES, Request, log_requests, trace_requests
from sigwrap.log.reader import Session
from sigwrap.text import printable

_PREFIX = "OTEL_EXPORTER_OTLP_"
_PORT = 4318
_WITHIN_MS = 10_000  # for one request, as in OpenTelemetry's own SDKs
_GZIP_LEVEL = 3  # half the time of level 6, and a tenth more bytes
_LONGEST_ANSWER = 64 * 1024
_SHOWN_CHARACTERS = 200
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
_TRY_AGAIN = frozenset({429, 502, 503, 504})  # as the protocol says; no other status
_FORMS = "otlp+https://HOST[:PORT][/PATH], otlp+http://… or otlp: with $OTEL_EXPORTER_OTLP_ENDPOINT"
_HINTS = {
    401: f"set ${_PREFIX}HEADERS",
    403: f"check ${_PREFIX}HEADERS",
    404: "check the path; to send no traces: OTEL_TRACES_EXPORTER=none",
}


class NotDelivered(SigwrapError):
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
    sends = {each: _is_wanted(each, environment) for each in (LOGS, TRACES)}
    collectors = {
        signal: Collector(url, signal, environment, until_s)
        for signal, is_wanted in sends.items()
        if is_wanted
    }
    is_over = not session.running
    seq = after_seq
    for request in log_requests(session.id, session.events(), after_seq):
        if seq > after_seq:
            delivered(seq)
        if LOGS in collectors:
            collectors[LOGS].send(request)
        seq = request.last_seq
    if seq == after_seq:
        return
    if is_over and TRACES in collectors:
        for request in trace_requests(session.id, session.events()):
            collectors[TRACES].send(request)
    delivered(seq)
    for collector in collectors.values():
        collector.complain_of_rejected()


def _is_wanted(signal: str, environment: Mapping[str, str]) -> bool:
    return environment.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip() != "none"


class _Endpoint(NamedTuple):
    shown: str
    host: str
    port: int
    path: str
    is_secure: bool


class Collector:
    """Where requests of one signal go. Each is sent until the collector takes or refuses it."""

    def __init__(
        self, url: str, signal: str, environment: Mapping[str, str], until_s: float
    ) -> None:
        """`until_s`: when to give up, in time.monotonic(). Raises UsageError."""
        variables = _Variables(signal, environment)
        self._endpoint = _endpoint(url, signal, variables)
        self._headers = variables.headers()
        self._within_s = variables.within_s()
        self._context = variables.context() if self._endpoint.is_secure else None
        self._until_s = until_s
        self._connection: HTTPConnection | None = None
        self._sent = self._rejected = 0
        self._why_rejected = ""

    def send(self, request: Request) -> None:
        """Raises NotDelivered."""
        body = json.dumps(request.body, separators=(",", ":")).encode()
        zipped = gzip.compress(body, _GZIP_LEVEL, mtime=0)
        pause_s = _FIRST_PAUSE_S
        while True:
            wait_s = pause_s * random.uniform(0.5, 1)
            try:
                status, asked_s, answer = self._post(zipped)
            except ssl.SSLCertVerificationError as failure:
                raise self._failed(f"its certificate: {failure.verify_message}") from failure
            except (OSError, HTTPException) as failure:
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

    def _post(self, body: bytes) -> tuple[int, float, bytes]:
        """Return the status, the pause that the collector asks for, and the answer.

        A thread does it, because nothing else limits a name server and an answer that trickles.
        """
        found: list[tuple[int, float, bytes] | BaseException] = []
        connection, self._connection = self._connection or self._connect(), None

        def exchange() -> None:
            try:
                found.append(_exchange(connection, self._endpoint.path, body, self._headers))
            except BaseException as failure:
                found.append(failure)

        thread = Thread(target=exchange, daemon=True)
        thread.start()
        thread.join(max(min(self._within_s, self._until_s - time.monotonic()), 0))
        if not found:
            raise TimeoutError
        if isinstance(result := found[0], BaseException):
            connection.close()
            raise result
        self._connection = connection
        return result

    def _connect(self) -> HTTPConnection:
        host, port = self._endpoint.host, self._endpoint.port
        if self._context is None:
            return HTTPConnection(host, port, timeout=self._within_s)
        return HTTPSConnection(host, port, timeout=self._within_s, context=self._context)

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
        return NotDelivered(f"can't send to {self._endpoint.shown}: {why}", hint)


def _exchange(
    connection: HTTPConnection, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, float, bytes]:
    if connection.sock is None:
        connection.connect()
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


def _endpoint(url: str, signal: str, variables: _Variables) -> _Endpoint:
    """Parse the address. No error shows it, because it may have a password."""
    where, address, port = "--to", url.removeprefix("otlp+"), _PORT
    path = f"/v1/{signal}"
    if url == "otlp:":
        where, address, port = variables.endpoint()
        path = "" if where.endswith(f"{signal.upper()}_ENDPOINT") else path
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or port
    except ValueError:
        raise UsageError(f"{where}: not a URL with a host and a port", _FORMS) from None
    is_secure = parts.scheme == "https"
    if parts.scheme not in ("http", "https") or not host or not address.isascii():
        raise UsageError(f"{where}: not the address of a collector", _FORMS)
    if "@" in parts.netloc or parts.query or parts.fragment or not address.isprintable():
        hint = f"credentials go into ${_PREFIX}HEADERS"
        raise UsageError(f"{where}: it has more than a host, a port and a path", hint)
    port = port or (443 if is_secure else 80)
    path = (parts.path.rstrip("/") if path else parts.path or "/") + path
    place = f"[{host}]" if ":" in host else host
    return _Endpoint(f"{parts.scheme}://{place}:{port}{path}", host, port, path, is_secure)


class _Variables:
    """OpenTelemetry's variables. One for the signal wins over the general one."""

    def __init__(self, signal: str, environment: Mapping[str, str]) -> None:
        self._of_signal = f"{_PREFIX}{signal.upper()}_"
        self._environment = environment

    def _named(self, name: str) -> tuple[str, str]:
        """Return the variable that counts, and its value."""
        for variable in (self._of_signal + name, _PREFIX + name):
            if value := self._environment.get(variable, "").strip():
                return f"${variable}", value
        return f"${_PREFIX}{name}", ""

    def endpoint(self) -> tuple[str, str, int]:
        """Return the variable, the URL, and 0 for the usual port of its scheme."""
        where, url = self._named("ENDPOINT")
        if not url:
            raise UsageError(f"--to otlp:, but {where} is not set", _FORMS)
        return where, url, 0

    def headers(self) -> dict[str, str]:
        """Return all headers of a request. Values are encoded as %XX."""
        where, given = self._named("HEADERS")
        found = {}
        for each in filter(None, map(str.strip, given.split(","))):
            name, equals, value = each.partition("=")
            name, value = name.strip(), unquote(value.strip(), errors="strict")
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
        where, given = self._named("TIMEOUT")
        if given and not (given.isdecimal() and given.isascii() and int(given[:9]) > 0):
            raise UsageError(f"{where}: not a number of milliseconds: {printable(given)}")
        return int(given[:9] or _WITHIN_MS) / 1000

    def context(self) -> ssl.SSLContext:
        """Return a context that verifies the collector."""
        names = ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
        authorities, client, key = (self._named(name)[1] for name in names)
        try:
            context = ssl.create_default_context(cafile=authorities or None)
            if client:
                context.load_cert_chain(client, key or None)
        except (OSError, ValueError) as failure:
            raise UsageError(
                f"can't read the certificates in ${_PREFIX}CERTIFICATE, CLIENT_CERTIFICATE and "
                f"CLIENT_KEY: {getattr(failure, 'strerror', None) or type(failure).__name__}"
            ) from failure
        return context
