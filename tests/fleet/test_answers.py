"""What an S3 store may answer: a retry, one line that says what to do, and never a hang."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from threading import Thread

import pytest

from sigwrap.errors import ObjectsError
from sigwrap.fleet.objects import objects_at
from tests.support.fleet import make_sessions
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

SECRETS = ("AKIA-key-id", "a/secret+key", "the-session-token")
NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
FINE = says(200, b"", ETag='"x"')


def _error(status: int, code: str, more: str = "", **headers: str) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>x</Message>{more}</Error>"
    return says(status, body.encode(), **headers)


def _env(server: HttpServer) -> dict[str, str]:
    return {**dict(zip(NAMES, SECRETS, strict=True)), "AWS_ENDPOINT_URL": server.url}


@pytest.fixture
def server() -> Iterator[HttpServer]:
    server = HttpServer(FINE)
    yield server
    server.close()


PASSING = [
    _error(500, "InternalError"),
    _error(503, "SlowDown"),
    _error(429, "TooManyRequests"),
    _error(409, "ConditionalRequestConflict"),
    _error(400, "RequestTimeout"),
    hangs_up,
    breaks_off,
]


@pytest.mark.parametrize("answer", PASSING)
def test_what_passes_is_tried_again(sigwrap: Sigwrap, server: HttpServer, answer: Answer) -> None:
    make_sessions(sigwrap)
    server.answers = [answer, answer, FINE]
    done = sigwrap.run("ship", "--to", "s3://bucket/p", env=_env(server))
    assert (done.returncode, done.stderr, len(server.asked)) == (0, b"", 3)
    kept = ("if-none-match", "x-amz-checksum-sha256", "x-amz-content-sha256")
    sent = [(each[:2], each.body, *map(each.headers.get, kept)) for each in server.asked]
    assert sent[0] == sent[1] == sent[2] and all(sent[0])


def test_an_object_that_is_there_counts_as_delivered(sigwrap: Sigwrap, server: HttpServer) -> None:
    make_sessions(sigwrap)
    server.answers = [_error(412, "PreconditionFailed")]
    assert sigwrap.run("ship", "--to", "s3://bucket", env=_env(server)).returncode == 0
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (_error(403, "AccessDenied"), "refuses the credential: 403 AccessDenied"),
        (_error(401, "Unauthorized"), "refuses the credential: 401 Unauthorized"),
        (_error(400, "ExpiredToken"), "refuses: 400 ExpiredToken"),
        (_error(404, "NoSuchBucket"), "s3://bucket/p at localhost:"),
        (
            _error(301, "PermanentRedirect", x_amz_bucket_region="eu-west-3"),
            "is in the region eu-west-3, not us-east-1 (set AWS_REGION=eu-west-3)",
        ),
        (
            _error(400, "AuthorizationHeaderMalformed", "<Region>eu-west-3</Region>"),
            "set AWS_REGION=eu-west-3",
        ),
        (_error(307, "TemporaryRedirect", Location="http://evil/"), "refuses: 307"),
        (_error(403, "RequestTimeTooSkewed"), "the clock is wrong"),
        (_error(501, "NotImplemented"), "use a store that supports If-None-Match: *"),
        (says(200, b"<html>welcome</html>"), "does not answer as an S3 store"),
        (says(418, b"\x1b[31m<Code>\x07"), "refuses: 418"),
    ],
)
def test_what_does_not_pass_is_one_line_and_not_tried_again(
    sigwrap: Sigwrap, server: HttpServer, answer: Answer, says: str
) -> None:
    make_sessions(sigwrap, 2)
    server.answers = [answer]
    done = sigwrap.run("ship", "--all", "--to", "s3://bucket/p", env=_env(server))
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 1 and says in line and len(server.asked) == 1
    assert b"2 sessions not shipped" in done.stdout
    assert not any(each in line or each.encode() in done.stdout for each in SECRETS)
    assert not any(SECRETS[1] in str(each) for each in server.asked)


def test_what_does_not_pass_in_time_is_given_up(sigwrap: Sigwrap, server: HttpServer) -> None:
    make_sessions(sigwrap, 2)
    server.answers = [_error(500, "InternalError")]
    line = ("ship", "--all", "--to", "s3://bucket/p", "--timeout", "1s")
    done = sigwrap.run(*line, env=_env(server))
    assert done.returncode == 1 and b": 500 InternalError (the next" in done.stderr
    assert 3 <= len(server.asked) <= 10


@pytest.mark.parametrize("answer", [is_frozen, trickles])
def test_no_server_holds_us_longer_than_the_timeout(server: HttpServer, answer: Answer) -> None:
    server.answers = [answer]
    started = time.monotonic()
    with (
        closing(objects_at("s3://bucket", _env(server), timeout_s=0.5)) as objects,
        pytest.raises(ObjectsError, match=r"can't send to .*: no answer in time"),
    ):
        objects.put_new("key", b"body")
    assert time.monotonic() - started < 10


def test_a_refused_connection_is_tried_until_the_timeout(
    sigwrap: Sigwrap, server: HttpServer
) -> None:
    make_sessions(sigwrap)
    server.server_close()
    line = ("ship", "--to", "s3://bucket", "--timeout", "0.5s")
    done = sigwrap.run(*line, env=_env(server))
    assert done.returncode == 1 and b": Connection refused (the next" in done.stderr


def test_a_thread_that_can_not_start_is_a_failure_to_send(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", fail)
    with (
        closing(objects_at("s3://bucket", _env(server), timeout_s=0.01)) as objects,
        pytest.raises(ObjectsError, match=r"can't send to .*: Resource temporarily"),
    ):
        objects.put_new("key", b"")


def test_https_needs_a_certificate_that_is_trusted(sigwrap: Sigwrap) -> None:
    make_sessions(sigwrap)
    with closing(HttpServer(FINE, is_secure=True)) as server:
        line = ("ship", "--to", "s3://bucket")
        done = sigwrap.run(*line, env=_env(server))
        assert done.returncode == 1 and server.asked == []
        assert b"can't verify the certificate of localhost" in done.stderr
        done = sigwrap.run(*line, env={**_env(server), "SSL_CERT_FILE": str(CERTIFICATE)})
        assert (done.returncode, len(server.asked)) == (0, 1), done.stderr
        reading, writing = os.pipe()
        os.write(writing, b'{"AccessKeyId": "key", "SecretAccessKey": "secret"}')
        os.close(writing)
        run = ("--ship", "s3://bucket", "--ship-credential-fd", str(reading), "--", "true")
        env = {
            "AWS_ENDPOINT_URL": _env(server)["AWS_ENDPOINT_URL"],
            "SSL_CERT_FILE": str(CERTIFICATE),
        }
        done = sigwrap.run(*run, env=env, pass_fds=[reading])
        os.close(reading)
        assert (done.returncode, done.stderr, len(server.asked)) == (0, b"", 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_ENDPOINT_URL", "http://user:hidden@127.0.0.1:1"),
        ("AWS_ENDPOINT_URL", "ftp://hidden"),
        ("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:99999999"),
        ("AWS_ENDPOINT_URL", "http://hidden/path"),
        ("AWS_REGION", "hidden.example/x"),
        ("AWS_SECRET_ACCESS_KEY", "hidden\r\nHost: other"),
        ("AWS_ACCESS_KEY_ID", ""),
        ("AWS_SESSION_TOKEN", "hidden\n"),
    ],
)
def test_a_wrong_setting_is_refused_without_its_value(
    sigwrap: Sigwrap, server: HttpServer, name: str, value: str
) -> None:
    make_sessions(sigwrap)
    done = sigwrap.run("ship", "--to", "s3://bucket", env={**_env(server), name: value})
    assert done.returncode == 125 and b"AWS_" in done.stderr and server.asked == []
    assert b"hidden" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"AccessKeyId": 1, "SecretAccessKey": "hidden"}', "[" * 70_000]
)
def test_a_wrong_credential_from_a_descriptor_is_refused(
    sigwrap: Sigwrap, server: HttpServer, text: str
) -> None:
    make_sessions(sigwrap)
    path = sigwrap.folder / "credential"
    path.write_text(text)
    with path.open() as file:
        line = ("ship", "--to", "s3://bucket", "--credential-fd", str(file.fileno()))
        done = sigwrap.run(*line, env=_env(server), pass_fds=[file.fileno()])
    assert done.returncode == 125 and b"has no credential" in done.stderr and server.asked == []
    assert b"hidden" not in done.stderr + done.stdout
