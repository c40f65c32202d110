"""Requests to one HTTP server, each until the server takes or refuses it, or time is up.

A thread makes each exchange, so that no slow name server, handshake or answer can hold us longer.
Its connection is kept for the next request, unless the answer is late.
"""

from __future__ import annotations

import errno
import os
import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPMessage
from math import inf
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sigwrap import https
from sigwrap.errors import ObjectsError
from sigwrap.https import Address as Address

if TYPE_CHECKING:
    import ssl

Result = TypeVar("Result")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_LONGEST_ANSWER = 1 << 16


class Request(NamedTuple):
    method: str
    target: str
    body: bytes
    headers: dict[str, str]


class Answer(NamedTuple):
    status: int
    headers: HTTPMessage
    body: bytes


class Server:
    within_s = inf  # for one exchange

    def __init__(self, address: Address, name: str, context: ssl.SSLContext | None = None) -> None:
        self._address, self._name, self._context = address, name, context
        self._connection: HTTPConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def ask(
        self, made: Callable[[], Request], why_again: Callable[[Answer], str], until_s: float
    ) -> Answer:
        """Return the answer. Raises ObjectsError.

        `made` returns the request, for each try. `why_again` returns why it must be tried again, or
        nothing; it raises for a refusal. `until_s`: when to give up, in time.monotonic().
        """
        pause_s = _FIRST_PAUSE_S
        while True:
            wait_s = pause_s * random.uniform(0.5, 1)
            try:
                answer = self._answer(made(), until_s)
            except (OSError, HTTPException) as failure:
                why = self._reason(failure)
            else:
                if not (why := why_again(answer)):
                    return answer
                asked = answer.headers.get("Retry-After", "")
                wait_s = max(wait_s, float(asked) if asked.isdecimal() else 0)
            if time.monotonic() + wait_s >= until_s:
                raise ObjectsError(
                    f"can't send to {self._name}: {why}",
                    "the next sigwrap ship goes on from here; --timeout gives it longer",
                )
            time.sleep(wait_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _answer(self, request: Request, until_s: float) -> Answer:
        seconds = max(0.0, min(self.within_s, until_s - time.monotonic()))
        connection = self._connection or HTTPConnection(self._address.authority)
        self._connection = None

        def exchange() -> Answer:
            try:
                return self._exchange(connection, request, seconds)
            except BaseException:
                connection.close()
                raise

        try:
            answer = within(seconds, exchange)
        except TimeoutError:
            with suppress(OSError, AttributeError):  # it has no socket yet, or no longer
                connection.sock.shutdown(socket.SHUT_RDWR)  # ends the thread
            raise
        self._connection = connection
        return answer

    def _exchange(self, connection: HTTPConnection, request: Request, seconds: float) -> Answer:
        if connection.sock is None:
            connection.sock = self._connected(seconds)
        connection.sock.settimeout(seconds)
        is_sent = False
        with suppress(BrokenPipeError, ConnectionResetError):  # it may refuse before it read all
            connection.request(*request)
            is_sent = True
        response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read(_LONGEST_ANSWER))
        if not (is_sent and response.isclosed()):
            connection.close()
            if answer.status < 300:
                raise OSError(0, "the answer is incomplete or too large")
        return answer

    def _connected(self, seconds: float) -> socket.socket:
        place = self._address.place
        connection = socket.create_connection(place, seconds)
        # http.client sends the head and the body apart, and the second would wait for 40 ms.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is None:
            return connection
        return self._context.wrap_socket(connection, server_hostname=place[0])

    def _reason(self, failure: OSError | HTTPException) -> str:
        if verified := getattr(failure, "verify_message", ""):
            raise ObjectsError(
                f"can't verify the certificate of {self._address.authority}: {verified}",
                "set $SSL_CERT_FILE to the certificates that you trust",
            ) from failure
        return "no answer in time" if isinstance(failure, TimeoutError) else https.why(failure)


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return what the call does, in a thread that we wait for so long; TimeoutError after it."""
    found: list[Result] = []
    failures: list[Exception] = []

    def work() -> None:
        try:
            found.append(call())
        except Exception as failure:
            failures.append(failure)

    thread = Thread(target=work, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # the user has too many processes
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
    thread.join(seconds)
    for failure in failures:
        raise failure
    if not found:
        raise TimeoutError
    return found[0]


def parsed(url: str, usual_port: int | None = None) -> Address | None:
    """Return the address, or None. The URL may have a password, so no error shows it."""
    with suppress(ValueError):
        found = https.parsed(url)
        if not found.authorization and "?" not in url and "#" not in url:
            return found._replace(port=found.port or usual_port)
    return None


def verifying_context(authorities: str = "") -> ssl.SSLContext:
    """Return a context that trusts these certificates. Raises OSError if they can't be read."""
    try:
        import ssl
    except ImportError as missing:
        raise ObjectsError(
            f"https needs OpenSSL, which can't be loaded: {missing}", "install libssl3"
        ) from missing
    context = ssl.create_default_context(cafile=authorities or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
