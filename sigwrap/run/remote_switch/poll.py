"""One question to the remote kill switch, from the connection to the answer, by a time that nobody
at the other end can put off: each wait for it gets what is left.

Names are looked up by the C library, which knows no such time; what is too late for the caller is
noticed there (switch.py).
"""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import closing

from sigwrap.errors import SessionError
from sigwrap.hints import TYPE_CHECKING, Any, TypeVar
from sigwrap.linux.listeners import Listeners
from sigwrap.mediate.remote_switch import Answer, Missed, read_answer
from sigwrap.run.remote_switch import http
from sigwrap.run.remote_switch.address import Address, File, Web
from sigwrap.run.remote_switch.http import LONGEST_BODY, NoAnswer, Reading
from sigwrap.run.remote_switch.proxies import Proxy, proxy_for

if TYPE_CHECKING:
    import ssl

WITHIN_S = 5.0
_READ_BYTES = 16 * 1024
# One name server that is down may cost a second of these, and not all five.
_RESOLVER = "timeout:1 attempts:2"

Poll = Callable[[], Answer]
_T = TypeVar("_T")


def poll_of(address: Address, environment: Mapping[bytes, bytes]) -> Poll:
    """At the start: imports and reads all that it will ever need. Raises SigwrapError."""
    if isinstance(address, File):
        return lambda: _ask(lambda: _read(address.path))
    if not address.is_secure:
        listeners = Listeners()
        return lambda: _ask(lambda: _get_from_here(address, listeners))
    proxy = proxy_for(address.host, address.port, environment)
    try:
        from sigwrap.run.remote_switch.certificates import verifying_context
    except ImportError as missing:
        raise SessionError(
            f"https needs OpenSSL, which cannot be loaded: {missing}",
            "install libssl3, or choose another kill switch",
        ) from missing
    context = verifying_context(environment)
    os.environ.setdefault("RES_OPTIONS", _RESOLVER)
    return lambda: _ask(lambda: _get_securely(address, proxy, context))


def _ask(body: Callable[[], bytes]) -> Answer:
    try:
        return read_answer(body())
    except NoAnswer as why:
        return Missed(str(why))
    except (OSError, MemoryError) as failure:
        return Missed(_why(failure))


def _why(failure: OSError | MemoryError) -> str:
    if isinstance(failure, TimeoutError):
        return f"no response within {WITHIN_S:.0f} s"
    if verified := getattr(failure, "verify_message", ""):
        return f"cannot verify its certificate: {verified}"
    if reason := getattr(failure, "reason", ""):  # of an SSLError
        return f"TLS: {reason}"
    return str(getattr(failure, "strerror", "")) or type(failure).__name__


def _read(path: bytes) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise NoAnswer("not a regular file")
        found = b""
        while data := os.read(fd, LONGEST_BODY):
            found += data
            if len(found) > LONGEST_BODY:
                raise NoAnswer(f"the file is larger than {LONGEST_BODY // 1024} KiB")
        return found
    finally:
        os.close(fd)


def _get_from_here(address: Web, listeners: Listeners) -> bytes:
    """Over http, which anybody can speak who gets the port. Where a supervised process has, the
    next address may be that of who is meant."""
    deadline_s = time.monotonic() + WITHIN_S
    failures: list[OSError | NoAnswer] = []
    for host in ["127.0.0.1", "::1"] if address.host.lower() == "localhost" else [address.host]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            connection = _connected(family, (host, address.port), deadline_s)
            with closing(connection):
                if objection := listeners.objection(host, address.port, deadline_s):
                    raise NoAnswer(f"response not trusted: {objection}")
                return _exchange(connection, http.get(address), http.response(), deadline_s)
        except (OSError, NoAnswer) as failure:
            failures.append(failure)
    objections = [each for each in failures if isinstance(each, NoAnswer)]
    raise (objections or failures)[0]


def _get_securely(address: Web, proxy: Proxy | None, context: ssl.SSLContext) -> bytes:
    deadline_s = time.monotonic() + WITHIN_S
    place: Web | Proxy = proxy or address
    with closing(_reached(place.host, place.port, deadline_s)) as connection:
        if proxy is not None:
            request = http.connect(address, proxy.authorization)
            _exchange(connection, request, http.accepted_by_proxy(), deadline_s)
        connection.settimeout(_left_s(deadline_s))
        # As bytes, as below: for a str Python would import the codec of international names.
        name = address.host.encode("ascii")
        with closing(context.wrap_socket(connection, server_hostname=name)) as secured:
            return _exchange(secured, http.get(address), http.response(), deadline_s)


def _reached(host: str, port: int, deadline_s: float) -> socket.socket:
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    failures: list[OSError] = []
    for tried, (family, _, _, _, place) in enumerate(found):
        share_s = _left_s(deadline_s) / (len(found) - tried)  # so that a silent one leaves some
        try:
            return _connected(family, place, time.monotonic() + share_s)
        except OSError as failure:
            failures.append(failure)
    raise failures[0] if failures else NoAnswer("the host has no address")


def _connected(family: int, place: tuple[Any, ...], deadline_s: float) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(_left_s(deadline_s))
        connection.connect(place)
    except BaseException:
        connection.close()
        raise
    return connection


def _exchange(
    connection: socket.socket, request: bytes, reading: Reading[_T], deadline_s: float
) -> _T:
    connection.settimeout(_left_s(deadline_s))
    connection.sendall(request)
    try:
        next(reading)
        while True:
            connection.settimeout(_left_s(deadline_s))
            reading.send(connection.recv(_READ_BYTES))
    except StopIteration as done:
        result: _T = done.value
        return result


def _left_s(deadline_s: float) -> float:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
