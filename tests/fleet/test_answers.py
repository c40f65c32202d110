"""What an S3 store may answer: a retry, one line that says what to do, and never a hang."""

from __future__ import annotations

import http.server
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from sigwrap.errors import ObjectsError
from sigwrap.fleet.objects import objects_at
from tests.support.fleet import make_sessions
from tests.support.harness import Sigwrap
from tests.support.web import CERTIFICATE

SECRETS = ("AKIA-key-id", "a/secret+key", "the-session-token")
NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")

Answer = tuple[int, str, dict[str, str]]
FINE: Answer = (200, "", {"ETag": '"x"'})


def _error(status: int, code: str, more: str = "", **headers: str) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>x</Message>{more}</Error>"
    return status, body, {name.replace("_", "-"): value for name, value in headers.items()}


class Server(http.server.ThreadingHTTPServer):
    """Gives these answers in turn, the last one from then on; 0 ends the connection."""

    daemon_threads = True

    def __init__(self) -> None:
        self.answers: list[Answer] = [FINE]
        self.asked: list[str] = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self._answer()

            def do_GET(self) -> None:
                self._answer()

            def _answer(self) -> None:
                server.asked.append(f"{self.command} {self.path}\n{self.headers}")
                answers = server.answers
                status, body, headers = answers.pop(0) if len(answers) > 1 else answers[0]
                if not status:
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def env(self) -> dict[str, str]:
        endpoint = f"http://127.0.0.1:{self.server_port}"
        return {**dict(zip(NAMES, SECRETS, strict=True)), "AWS_ENDPOINT_URL": endpoint}


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


PASSING = [
    _error(500, "InternalError"),
    _error(503, "SlowDown"),
    _error(429, "TooManyRequests"),
    _error(409, "ConditionalRequestConflict"),
    _error(400, "RequestTimeout"),
    (0, "", {}),
]


@pytest.mark.parametrize("answer", PASSING, ids=lambda answer: str(answer[0]))
def test_what_passes_is_tried_again(sigwrap: Sigwrap, server: Server, answer: Answer) -> None:
    make_sessions(sigwrap)
    server.answers = [answer, answer, FINE]
    done = sigwrap.run("ship", "--to", "s3://bucket/p", env=server.env)
    assert (done.returncode, done.stderr, len(server.asked)) == (0, b"", 3)
    sent = [re.findall(r"(?im)^(?:PUT|if-none-match|x-amz-c).*", each) for each in server.asked]
    assert sent[0] == sent[1] == sent[2] and len(sent[0]) == 4


def test_an_object_that_is_there_counts_as_delivered(sigwrap: Sigwrap, server: Server) -> None:
    make_sessions(sigwrap)
    server.answers = [_error(412, "PreconditionFailed")]
    assert sigwrap.run("ship", "--to", "s3://bucket", env=server.env).returncode == 0
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (_error(403, "AccessDenied"), "refuses the credential: 403 AccessDenied"),
        (_error(401, "Unauthorized"), "refuses the credential: 401 Unauthorized"),
        (_error(400, "ExpiredToken"), "refuses: 400 ExpiredToken"),
        (_error(404, "NoSuchBucket"), "s3://bucket/p at 127.0.0.1:"),
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
        ((200, "<html>welcome</html>", {}), "does not answer as an S3 store"),
        ((418, "\x1b[31m<Code>\x07", {}), "refuses: 418"),
    ],
)
def test_what_does_not_pass_is_one_line_and_not_tried_again(
    sigwrap: Sigwrap, server: Server, answer: Answer, says: str
) -> None:
    make_sessions(sigwrap, 2)
    server.answers = [answer]
    done = sigwrap.run("ship", "--all", "--to", "s3://bucket/p", env=server.env)
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 1 and says in line and len(server.asked) == 1
    assert b"2 sessions not shipped" in done.stdout
    assert not any(each in line or each.encode() in done.stdout for each in SECRETS)
    assert not any(SECRETS[1] in each for each in server.asked)


def test_what_does_not_pass_in_time_is_given_up(sigwrap: Sigwrap, server: Server) -> None:
    make_sessions(sigwrap, 2)
    server.answers = [_error(500, "InternalError")]
    line = ("ship", "--all", "--to", "s3://bucket/p", "--timeout", "1s")
    done = sigwrap.run(*line, env=server.env)
    assert done.returncode == 1 and b": 500 InternalError (the next" in done.stderr
    assert 3 <= len(server.asked) <= 10


def _silent(connection: socket.socket, ends: threading.Event) -> None:
    ends.wait()


def _dripping(connection: socket.socket, ends: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not ends.wait(0.05):
        connection.sendall(b"x")


@pytest.mark.parametrize("serve", [_silent, _dripping])
def test_no_server_holds_us_longer_than_the_timeout(
    serve: Callable[[socket.socket, threading.Event], None],
) -> None:
    ends = threading.Event()

    def accept() -> None:
        connection, _ = listener.accept()
        with connection:
            serve(connection, ends)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        env = {**dict(zip(NAMES, SECRETS, strict=True)), "AWS_ENDPOINT_URL": endpoint}
        started = time.monotonic()
        with (
            closing(objects_at("s3://bucket", env, timeout_s=0.5)) as objects,
            pytest.raises(ObjectsError, match=r"gave up on .*: no answer in time"),
        ):
            objects.put_new("key", b"body")
        assert time.monotonic() - started < 10
        ends.set()
        thread.join()


def test_a_refused_connection_is_tried_until_the_timeout(sigwrap: Sigwrap, server: Server) -> None:
    make_sessions(sigwrap)
    server.server_close()
    line = ("ship", "--to", "s3://bucket", "--timeout", "0.5s")
    done = sigwrap.run(*line, env=server.env)
    assert done.returncode == 1 and b": Connection refused (the next" in done.stderr


def test_https_needs_a_certificate_that_is_trusted(sigwrap: Sigwrap, server: Server) -> None:
    make_sessions(sigwrap)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    line = ("ship", "--to", "s3://bucket")
    env = {**server.env, "AWS_ENDPOINT_URL": f"https://localhost:{server.server_port}"}
    done = sigwrap.run(*line, env=env)
    assert done.returncode == 1 and server.asked == []
    assert b"can't verify the certificate of localhost" in done.stderr
    done = sigwrap.run(*line, env={**env, "SSL_CERT_FILE": str(CERTIFICATE)})
    assert (done.returncode, len(server.asked)) == (0, 1), done.stderr


def test_keys_come_page_by_page(server: Server) -> None:
    pages = [
        "<R><IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b=</NextContinuationToken>"
        "<Contents><Key>p/rows/a&amp;b</Key></Contents><Contents><Key>p/rows/c</Key></Contents></R>",
        "<R><IsTruncated>false</IsTruncated><Contents><Key>p/rows/d</Key></Contents></R>",
    ]
    server.answers = [(200, page, {}) for page in pages]
    with closing(objects_at("s3://bucket/p", server.env)) as objects:
        assert list(objects.keys("rows/")) == ["rows/a&b", "rows/c", "rows/d"]
    assert "continuation-token=a%26b%3D&list-type=2&prefix=p%2Frows%2F\n" in server.asked[1]


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
    sigwrap: Sigwrap, server: Server, name: str, value: str
) -> None:
    make_sessions(sigwrap)
    done = sigwrap.run("ship", "--to", "s3://bucket", env={**server.env, name: value})
    assert done.returncode == 125 and b"AWS_" in done.stderr and server.asked == []
    assert b"hidden" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"AccessKeyId": 1, "SecretAccessKey": "hidden"}', "[" * 70_000]
)
def test_a_wrong_credential_from_a_descriptor_is_refused(
    sigwrap: Sigwrap, server: Server, text: str
) -> None:
    make_sessions(sigwrap)
    path = sigwrap.folder / "credential"
    path.write_text(text)
    with path.open() as file:
        line = ("ship", "--to", "s3://bucket", "--credential-fd", str(file.fileno()))
        done = sigwrap.run(*line, env=server.env, pass_fds=[file.fileno()])
    assert done.returncode == 125 and b"has no credential" in done.stderr and server.asked == []
    assert b"hidden" not in done.stderr + done.stdout
