"""Sends a session to an OpenTelemetry collector: OTLP over HTTP, as JSON.

The address is `otlp+https://HOST[:4318][/PATH]` or `otlp+http://…`, to which /v1/logs or /v1/traces
is added, or `otlp:` for the one in $OTEL_EXPORTER_OTLP_ENDPOINT. Credentials are in
$OTEL_EXPORTER_OTLP_HEADERS, and no error shows them.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, NoReturn
from urllib.parse import unquote

import sigwrap
from sigwrap.errors import ObjectsError, UsageError
from sigwrap.fleet import http
from sigwrap.fleet.otlp import LOGS, TRACES, Request, requests
from sigwrap.log.reader import Session
from sigwrap.text import MASK, printable

if TYPE_CHECKING:
    import ssl

_PREFIX = "OTEL_EXPORTER_OTLP_"
_PORT = 4318
_WITHIN_MS = 10_000  # for one request, as in OpenTelemetry's own SDKs
_GZIP = 31  # zlib's wbits; the one-file binary has no gzip module
_SHOWN_CHARACTERS = 200
# What reading the answer of another kind of server raises.
_NO_OTLP = (ValueError, AttributeError, TypeError, OverflowError, RecursionError)
_TRY_AGAIN = (429, 502, 503, 504)  # as the protocol says; no other status
_HINTS = {
    401: f"set ${_PREFIX}HEADERS",
    403: f"check ${_PREFIX}HEADERS",
    404: "check the path; to send no traces: OTEL_TRACES_EXPORTER=none",
}


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
    variables = _variables(environment)
    collectors = {each.signal: Collector(url, each, until_s) for each in variables}
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


def destination(url: str, environment: Mapping[str, str]) -> str:
    """Return where each signal goes, without credentials. Raises UsageError."""
    return " ".join(str(each.address(url)) for each in _variables(environment))


class Collector:
    """Where requests of one signal go. Each is sent until the collector takes or refuses it."""

    def __init__(self, url: str, variables: _Variables, until_s: float) -> None:
        """`until_s`: when to give up, in time.monotonic(). Raises UsageError."""
        self._address = variables.address(url)
        given = variables.headers()
        self._secrets = [part for value in given.values() for part in value.split()]
        self._headers = given | {
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "User-Agent": f"sigwrap/{sigwrap.__version__}",
        }
        context = variables.context() if self._address.is_secure else None
        self._server = http.Server(self._address, str(self._address), context)
        self._server.within_s = variables.within_s()
        self._until_s = until_s
        self._sent = self._rejected = 0
        self._why_rejected = ""

    def close(self) -> None:
        self._server.close()

    def send(self, request: Request) -> None:
        """Raises ObjectsError."""
        body = json.dumps(request.body, separators=(",", ":")).encode()
        zipped = zlib.compress(body, wbits=_GZIP)
        sent = http.Request("POST", self._address.path, zipped, self._headers)
        answer = self._server.ask(lambda: sent, self._why_again, self._until_s)
        try:
            partial = json.loads(answer.body or b"{}").get("partialSuccess") or {}
            rejected = int(partial.get("rejectedLogRecords") or partial.get("rejectedSpans") or 0)
            why = str(partial.get("errorMessage") or "")
        except _NO_OTLP:
            self._fail("its answer is not that of an OTLP collector")
        self._sent += request.records
        if rejected:
            self._rejected += rejected
            self._why_rejected = f": {_line(why)}" if why else ""

    def complain_of_rejected(self) -> None:
        """Raise ObjectsError if the collector dropped records; it does not want them again."""
        if self._rejected:
            self._fail(f"it rejected {self._rejected} of {self._sent} records{self._why_rejected}")

    def _why_again(self, answer: http.Answer) -> str:
        if 200 <= answer.status < 300:
            return ""
        said = answer.body.decode("utf-8", "replace")
        for value in self._secrets:  # a server may repeat the headers
            said = said.replace(value, MASK)
        with suppress(*_NO_OTLP):
            said = str(json.loads(said).get("message", ""))
        why = f"status {answer.status}"
        if said.strip() and not said.lstrip().startswith("<"):
            why += f": {_line(said)}"
        if answer.status not in _TRY_AGAIN:
            self._fail(why, _HINTS.get(answer.status, ""))
        return why

    def _fail(self, why: str, hint: str = "") -> NoReturn:
        raise ObjectsError(f"can't send to {self._address}: {why}", hint) from None


def _line(said: str) -> str:
    return printable(" ".join(said[:_SHOWN_CHARACTERS].split()))


class _Variables(NamedTuple):
    """OpenTelemetry's variables. One for the signal wins over the general one."""

    signal: str
    environment: Mapping[str, str]

    def named(self, name: str) -> tuple[str, str]:
        """Return the variable that counts, and its value."""
        for variable in (f"{_PREFIX}{self.signal.upper()}_{name}", f"{_PREFIX}{name}"):
            if value := self.environment.get(variable, "").strip():
                return f"${variable}", value
        return f"${_PREFIX}{name}", ""

    def address(self, url: str) -> http.Address:
        """Return the whole address. No error shows what is given: it may have a password."""
        where, given = "--to", url.removeprefix("otlp+")
        port: int | None = _PORT
        if url == "otlp:":
            (where, given), port = self.named("ENDPOINT"), None
        found = http.parsed(given, port)
        if found is None:
            raise UsageError(
                f"{where}: not the address of a collector",
                "give otlp+https://HOST[:PORT][/PATH], otlp+http://… or otlp: with "
                f"${_PREFIX}ENDPOINT, and credentials in ${_PREFIX}HEADERS",
            )
        if where in ("--to", f"${_PREFIX}ENDPOINT"):
            return found._replace(path=f"{found.path.rstrip('/')}/v1/{self.signal}")
        return found._replace(path=found.path or "/")

    def headers(self) -> dict[str, str]:
        """Return the headers that the user gives. Values are encoded as %XX."""
        where, given = self.named("HEADERS")
        found = {}
        for each in filter(None, map(str.strip, given.split(","))):
            name, equals, value = each.partition("=")
            name, value = name.strip(), unquote(value.strip())
            is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
            if not (equals and is_name and value.isascii() and value.isprintable()):
                raise UsageError(f"{where}: not NAME=VALUE,NAME=VALUE", "encode others as %XX")
            found[name] = value
        return found

    def within_s(self) -> float:
        where, given = self.named("TIMEOUT")
        if given and not (given.isdecimal() and given.isascii() and int(given[:9]) > 0):
            raise UsageError(f"{where}: not a number of milliseconds: {printable(given)}")
        return int(given[:9] or _WITHIN_MS) / 1000

    def context(self) -> ssl.SSLContext:
        """Return a context that verifies the collector."""
        names = ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
        authorities, client, key = (self.named(name)[1] for name in names)
        try:
            context = http.verifying_context(authorities)
            if client:
                context.load_cert_chain(client, key or None, password="")  # else OpenSSL asks
        except (OSError, ValueError) as failure:
            raise UsageError(
                f"can't read the certificates in ${_PREFIX}CERTIFICATE, CLIENT_CERTIFICATE and "
                f"CLIENT_KEY: {getattr(failure, 'strerror', None) or type(failure).__name__}"
            ) from failure
        return context


def _variables(environment: Mapping[str, str]) -> list[_Variables]:
    """Return those of the signals that are sent."""
    found = [
        _Variables(signal, environment)
        for signal in (LOGS, TRACES)
        if environment.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip() != "none"
    ]
    if not found:
        raise UsageError(
            "OTEL_LOGS_EXPORTER and OTEL_TRACES_EXPORTER are both none", "unset one of them"
        )
    return found
