"""Delivery to a collector: a real HTTP server in a thread, which answers as a test says."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from sigwrap.errors import ObjectsError, SigwrapError, UsageError
from sigwrap.fleet.otlp_sender import ship_otlp
from sigwrap.log.reader import Session
from tests.report.conftest import Scenario
from tests.support.fleet import make_sessions, recorded
from tests.support.harness import Sigwrap
from tests.support.http_server import (
    Answer,
    HttpServer,
    breaks_off,
    hangs_up,
    is_frozen,
    says,
    trickles,
)
from tests.support.web import CERTIFICATE

DEADLINE_S = 0.4
PATIENT_S = 20.0


Collectors = Callable[..., HttpServer]


@pytest.fixture
def collector() -> Iterator[Collectors]:
    made: list[HttpServer] = []

    def make(*answers: Answer, is_secure: bool = False) -> HttpServer:
        """Repeat a single answer; accept all after several."""
        last = (says(200),) if len(answers) > 1 else ()
        made.append(HttpServer(*answers, *last, is_secure=is_secure))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """300 events, in two requests; its trace is a third."""
    made = Scenario(tmp_path)
    made.execute(10, 1, "npm", "start")
    for _ in range(297):
        made.signal("SIGTERM", "a", "b", "child")
    made.end()
    return made.session


def ship(
    session: Session,
    url: str,
    deadline_s: float = PATIENT_S,
    after_seq: int = 0,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> list[int]:
    """`variables`: without OTEL_EXPORTER_OTLP_ before their names."""
    cursor: list[int] = []
    environment = {f"OTEL_EXPORTER_OTLP_{name}": value for name, value in variables.items()}
    try:
        ship_otlp(
            session, url, environment, deadline_s, after_seq=after_seq, delivered=cursor.append
        )
    except SigwrapError as failed:
        (line,) = failed.lines
        assert line.isprintable() and "SECRET" not in line
        failed.args = (*failed.args, cursor)
        raise
    return cursor


def paths(of: HttpServer) -> list[str]:
    return [each.path for each in of.asked]


def bodies(of: HttpServer) -> list[dict[str, Any]]:
    assert all(each.headers["Content-Encoding"] == "gzip" for each in of.asked)
    return [json.loads(gzip.decompress(each.body)) for each in of.asked]


def seqs(of: HttpServer) -> list[int]:
    return [
        int(each["value"]["intValue"])
        for body in bodies(of)
        for outer in body.get("resourceLogs", [])
        for record in outer["scopeLogs"][0]["logRecords"]
        for each in record["attributes"]
        if each["key"] == "sigwrap.seq"
    ]


def test_all_is_delivered_and_a_second_time_only_what_is_new(
    collector: Collectors, session: Session
) -> None:
    server = collector(says(200))
    headers = {"HEADERS": "authorization=Bearer%20SECRET,x-scope=a"}
    assert ship(session, f"otlp+{server.url}/base", variables=headers) == [256, 300]
    assert paths(server) == ["/base/v1/logs", "/base/v1/logs", "/base/v1/traces"]
    assert seqs(server) == [*range(1, 301)]
    sent = server.asked[0].headers
    assert (sent["authorization"], sent["x-scope"]) == ("Bearer SECRET", "a")
    assert sent["Content-Type"] == "application/json"
    assert ship(session, f"otlp+{server.url}", after_seq=256) == [300]
    assert seqs(server)[300:] == [*range(257, 301)]
    assert ship(session, f"otlp+{server.url}", after_seq=300) == [] and len(server.asked) == 5


def test_the_address_and_the_signals_may_come_from_the_variables(
    collector: Collectors, session: Session
) -> None:
    server = collector(says(204, b""))
    own = {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": f"{server.url}/own"}
    for variables in (
        {**own, "OTEL_EXPORTER_OTLP_ENDPOINT": "no", "OTEL_TRACES_EXPORTER": "none"},
        {**own, "OTEL_EXPORTER_OTLP_ENDPOINT": f"{server.url}/x/", "OTEL_LOGS_EXPORTER": "none"},
    ):
        ship_otlp(session, "otlp:", variables, PATIENT_S)
    assert paths(server) == ["/own", "/own", "/x/v1/traces"]


def test_a_running_session_has_no_spans_yet(collector: Collectors, tmp_path: Path) -> None:
    made = Scenario(tmp_path)
    server = collector(says(200))
    assert ship(made.session, f"otlp+{server.url}") == [1]
    made.end()
    assert ship(made.session, f"otlp+{server.url}", after_seq=1) == [2]
    assert paths(server) == ["/v1/logs", "/v1/logs", "/v1/traces"]


@pytest.mark.parametrize(
    ("busy", "least_s"),
    [
        (says(429, b"{}", Retry_After="1"), 1),
        (says(503), 0),
        (says(502, b"<html>"), 0),
        (hangs_up, 0),
        (breaks_off, 0),
    ],
)
def test_a_busy_collector_is_asked_again(
    collector: Collectors, session: Session, busy: Answer, least_s: float
) -> None:
    server = collector(busy, says(200))
    started_s = time.monotonic()
    assert ship(session, f"otlp+{server.url}") == [256, 300]
    assert time.monotonic() - started_s >= least_s
    assert seqs(server) == [*range(1, 257), *range(1, 301)]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (says(400, b'{"code":3,"message":"bad\\u001b[2J"}'), r"status 400: bad\e[2J"),
        (says(401, b"no"), "status 401: no (set $OTEL_EXPORTER_OTLP_HEADERS)"),
        (says(403, b""), "status 403 (check $OTEL_EXPORTER_OTLP_HEADERS)"),
        (says(500, b"<html>oops"), "status 500"),
        (says(302, b"", Location="http://127.0.0.1:1/"), "status 302"),
        (says(200, b"<html>log in"), "its answer is not that of an OTLP collector"),
        (says(200, b"[]"), "its answer is not that of an OTLP collector"),
    ],
)
def test_a_refusal_is_one_line_and_not_tried_again(
    collector: Collectors, session: Session, answer: Answer, why: str
) -> None:
    server = collector(answer)
    with pytest.raises(ObjectsError) as failed:
        ship(session, f"otlp+{server.url}")
    assert str(failed.value) == f"can't send to {server.url}/v1/logs: {why}"
    assert failed.value.args[-1] == [] and len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (is_frozen, "no answer in time"),
        (trickles, "no answer in time"),
        (hangs_up, "not a complete HTTP response"),
        (says(503), "status 503"),
        (says(429, b"{}", Retry_After="3600"), "status 429"),
        (says(429, b"{}", Retry_After="Fri, 31 Dec 2999 23:59:59 GMT"), "status 429"),
    ],
)
def test_the_deadline_holds_for_all_of_it(
    collector: Collectors, session: Session, answer: Answer, why: str
) -> None:
    server = collector(answer)
    started_s = time.monotonic()
    # The last try may be cut short, whatever the answer.
    with pytest.raises(ObjectsError, match=f"{why}|no answer in time|[Cc]onnection") as failed:
        ship(session, f"otlp+{server.url}", DEADLINE_S)
    assert time.monotonic() - started_s < DEADLINE_S + 5
    assert failed.value.args[-1] == []


def test_an_unreachable_collector_is_one_line(session: Session) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(ObjectsError, match=r"can't send to http://.*: Connection refused"):
        ship(session, f"otlp+http://127.0.0.1:{port}", DEADLINE_S)


def test_failed_spans_keep_the_last_logs_undelivered(
    collector: Collectors, session: Session
) -> None:
    server = collector(says(200), says(200), says(404))
    with pytest.raises(ObjectsError, match="OTEL_TRACES_EXPORTER=none") as failed:
        ship(session, f"otlp+{server.url}")
    assert failed.value.args[-1] == [256]


def test_rejected_records_are_told_once_and_not_sent_again(
    collector: Collectors, session: Session
) -> None:
    partial = {"rejectedLogRecords": "3", "errorMessage": "too old"}
    server = collector(says(200, json.dumps({"partialSuccess": partial}).encode()), says(200))
    with pytest.raises(ObjectsError, match="it rejected 3 of 300 records: too old") as failed:
        ship(session, f"otlp+{server.url}")
    assert failed.value.args[-1] == [256, 300] and len(server.asked) == 3


def test_a_certificate_is_verified(collector: Collectors, session: Session) -> None:
    server = collector(says(200), is_secure=True)
    with pytest.raises(
        ObjectsError, match=r"verify the certificate of localhost:[0-9]+: self-signed"
    ) as failed:
        ship(session, f"otlp+{server.url}")
    assert failed.value.args[-1] == [] and not server.asked
    assert ship(session, f"otlp+{server.url}", variables={"CERTIFICATE": str(CERTIFICATE)})


@pytest.mark.parametrize(
    ("url", "variables", "why"),
    [
        ("otlp+ftp://box", {}, "--to: not the address of a collector"),
        ("otlp+https://", {}, "--to: not the address of a collector"),
        ("otlp+https://box:0x1", {}, "--to: not the address of a collector"),
        ("otlp+https://a%41b", {}, "--to: not the address of a collector"),
        ("otlp+https://bo x", {}, "--to: not the address of a collector"),
        ("otlp+https://b\u00f6x\r\n", {}, "--to: not the address of a collector"),
        ("otlp+https://me:SECRET@box", {}, "--to: not the address of a collector .*credentials in"),
        (
            "otlp+https://box/?key=SECRET",
            {},
            "--to: not the address of a collector .*credentials in",
        ),
        ("otlp:", {}, r"\$OTEL_EXPORTER_OTLP_ENDPOINT: not the address"),
        ("otlp+http://box", {"HEADERS": "SECRET"}, r"_HEADERS: not NAME=VALUE"),
        ("otlp+http://box", {"HEADERS": "a=SECRET%0d%0ab: c"}, r"_HEADERS: not NAME=VALUE"),
        ("otlp+http://box", {"LOGS_HEADERS": "a=%ff"}, r"_LOGS_HEADERS: not NAME=VALUE"),
        ("otlp+http://box", {"TIMEOUT": "1s"}, r"_TIMEOUT: not a number"),
        ("otlp+https://box", {"CERTIFICATE": "/none"}, "can't read the certificates"),
        ("otlp+https://box", {"CERTIFICATE": "/dev/null"}, "can't read the certificates"),
    ],
)
def test_a_wrong_address_or_variable_is_a_usage_error_without_secrets(
    session: Session, url: str, variables: dict[str, str], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        ship(session, url, variables=variables)


def test_the_command_sends_each_session_once_and_goes_on_after_a_failure(
    collector: Collectors, as_user: Sigwrap
) -> None:
    make_sessions(as_user, 2)
    server = collector(says(200), says(200), says(400), says(200))
    words = ("ship", "--all", "--to", f"otlp+{server.url}")
    failed = as_user.run(*words)
    assert failed.returncode == 1 and b"shipped 1 session, " in failed.stdout
    assert b"status 400" in failed.stderr and failed.stderr.count(b"\n") == 1
    assert as_user.run(*words).returncode == 0
    logged = len(recorded(as_user.store))
    assert len(seqs(server)) >= logged
    before = len(server.asked)
    done = as_user.run(*words)
    assert (done.returncode, done.stdout.startswith(b"shipped 2 sessions, 0 events")) == (0, True)
    assert len(server.asked) == before
    none = {"OTEL_LOGS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none"}
    assert as_user.run(*words, env=none).returncode == 125
    other = collector(says(200))
    elsewhere = {"OTEL_EXPORTER_OTLP_ENDPOINT": other.url.replace("localhost", "127.0.0.1")}
    assert as_user.run("ship", "--all", "--to", "otlp:", env=elsewhere).returncode == 0
    assert len(seqs(other)) == logged
    wrong = as_user.run(*words, "--credential-fd", "3")
    assert wrong.returncode == 125 and wrong.stderr.count(b"\n") == 1
