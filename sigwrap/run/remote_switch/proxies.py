"""Through whom an https URL is asked, by the variables that everybody knows."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sigwrap.errors import UsageError
from sigwrap.run.remote_switch.address import basic, host_and_port, is_loopback, without_secrets
from sigwrap.tuples import NamedTuple


class Proxy(NamedTuple):
    host: str
    port: int
    authorization: str


def proxy_for(host: str, port: int, environment: Mapping[bytes, bytes]) -> Proxy | None:
    """None: directly. Raises UsageError."""
    name = "https_proxy" if _variable("https_proxy", environment) else "HTTPS_PROXY"
    given = _variable(name, environment)
    if not given or is_loopback(host) or _is_excepted(host, port, environment):
        return None
    scheme, slashes, rest = given.partition("://")
    authority = (rest if slashes else given).partition("/")[0]
    user, at, place = authority.rpartition("@")
    try:
        if slashes and scheme.lower() != "http":
            raise ValueError("only http:// proxies are supported, also for https")
        proxy_host, proxy_port = host_and_port(place, 80)
        return Proxy(proxy_host, proxy_port, basic(user) if at else "")
    except ValueError as wrong:
        shown = without_secrets(given)
        hint = "set it to http://HOST:PORT, or unset it"
        raise UsageError(f"${name} {shown}: {wrong}", hint) from None


def _is_excepted(host: str, port: int, environment: Mapping[bytes, bytes]) -> bool:
    listed = _variable("no_proxy", environment) or _variable("NO_PROXY", environment)
    names = (host.lower(), f"{host.lower()}:{port}")
    for word in listed.split(","):
        excepted = word.strip().lower().lstrip(".")
        if excepted == "*" and listed.strip() == "*":
            return True
        if excepted and any(each == excepted or each.endswith(f".{excepted}") for each in names):
            return True
    return False


def _variable(name: str, environment: Mapping[bytes, bytes]) -> str:
    return os.fsdecode(environment.get(name.encode(), b""))
