"""A signed policy by URL: what is accepted, what is refused, and what happens in an outage."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import INTERRUPTED, REFUSED, Sigwrap
from tests.support.signer import SIGNER, Signer, pem
from tests.support.waiting import PATIENCE_S, await_that
from tests.support.web import CERTIFICATE, Answer, WebServer, page

DENIES = "command_rules: [{name: no-id, commands: [id], decision: deny}]"
TRUE = ("--", "echo", "it ran")
FALLBACK = ("--policy-fallback", "ci")


def text(*lines: str, sequence: int = 5, expires: str = "2999-12-31") -> str:
    """`lines` come after the head; a policy without a base allows everything but what they deny."""
    head = ("version: 1", "name: fleet", "defaults: {command: allow, signal: allow}")
    signed = (f"sequence: {sequence}", f"expires: {expires}")
    return "\n".join((*head, *signed, *lines, ""))


def signed(*lines: str, **values: Any) -> Answer:
    return page(SIGNER.signed(text(*lines, **values)))


@pytest.fixture
def server() -> Iterator[WebServer]:
    made = WebServer(signed(DENIES))
    yield made
    made.close()


class Remote:
    """Runs of sigwrap under the policy of a server."""

    def __init__(self, sigwrap: Sigwrap, server: WebServer) -> None:
        self.sigwrap, self.server = sigwrap, server
        key = sigwrap.folder / "key.pub"
        key.write_bytes(pem(SIGNER.public))
        key.chmod(0o644)
        self.options = ("-p", server.url, "--policy-key", str(key))

    def run(self, *words: str, **env: str) -> tuple[int, bytes, str]:
        done = self.sigwrap.run(*self.options, *(words or TRUE), env=env)
        return done.returncode, done.stdout, done.stderr.decode()

    def is_refused(self, said: str, *options: str) -> str:
        """Return the lines on standard error."""
        status, out, lines = self.run(*options, *TRUE)
        assert (status, out) == (REFUSED, b""), lines
        assert lines.startswith("sigwrap: ")
        assert said in lines
        assert "Traceback" not in lines
        return lines

    def runs(self, place: str, *options: str, **env: str) -> str:
        """Check where the policy was from, and return the lines on standard error."""
        status, out, lines = self.run(*options, *TRUE, **env)
        assert (status, out) == (0, b"it ran\n"), lines
        (start,) = self.sigwrap.events("session_started")
        assert start.payload["policy_from"] == place
        assert start.payload["policy_url"] == self.server.url
        assert start.payload["policy"] == ("ci" if place == "fallback" else "fleet")
        assert bool(lines) == (place != "server")
        return lines

    @property
    def copy(self) -> Path:
        (found,) = (self.sigwrap.store / "policies").iterdir()
        return found

    def stop_answering(self) -> None:
        self.server.answer = page(b"", "503 Service Unavailable")


@pytest.fixture
def remote(sigwrap: Sigwrap, server: WebServer) -> Remote:
    return Remote(sigwrap, server)


def test_the_policy_decides_and_is_kept_for_an_outage(as_user: Sigwrap, server: WebServer) -> None:
    """The log has the text that was signed, and no password."""
    remote = Remote(as_user, server)
    url = server.url.replace("//", "//me:sesame@") + "?team=a#sesame"
    remote.options = ("-p", url, *remote.options[2:])
    remote.runs("server")
    assert stat.S_IMODE(remote.copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(remote.copy.parent.stat().st_mode) == 0o700
    assert b"Authorization: Basic bWU6c2VzYW1l" in server.requests[0]
    assert b"GET /switch?team=a HTTP" in server.requests[0]
    remote.stop_answering()
    lines = remote.runs("copy", *FALLBACK)
    assert lines.count("\n") == 1
    assert "status 503: the copy of an earlier answer is used (sequence 5, expires 29" in lines
    status, _, denial = remote.run("--", "id")
    assert (status, "no-id" in denial) == (126, True)
    (start,) = as_user.sealed_events("session_started")
    (source,) = start.payload["policy_sources"]
    assert source == {"name": server.url, "text": text(DENIES)}
    as_user.verify_decisions()
    assert "sesame" not in lines + denial + repr(as_user.events())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "it is not signed"),
        (text().encode(), "it is not signed"),
        (SIGNER.signed(text()).replace(b"allow", b"audit", 1), "its signature is not by the key"),
        (Signer(bytes(32)).signed(text()), "its signature is not by the key"),
        (SIGNER.signed(text().replace("sequence: 5", "")), "needs the keys sequence and expires"),
        (SIGNER.signed(text(sequence=0)), "sequence must be between 1 and 9007199254740991"),
        (SIGNER.signed(text(expires="tomorrow")), "not a date such as 2027-01-31"),
        (SIGNER.signed(text(expires="2026-01-31")), "expired at the end of 2026-01-31 (UTC)"),
        (SIGNER.signed(text("extends: /etc/passwd")), "can only extend a shipped policy, not '/e"),
        (SIGNER.signed(text("extends: ../key.pub")), "can only extend a shipped policy, not '../"),
        (SIGNER.signed(text("rulez: []")), '/switch:6:1: unknown key "rulez"'),
        (SIGNER.signed(b"\xff"), "not UTF-8"),
        (SIGNER.signed(b"version: [" + b"x" * (300 << 10)), "longer than 262144 characters"),
    ],
)
def test_a_wrong_answer_is_refused_whatever_else_could_be_used(
    remote: Remote, body: bytes, said: str
) -> None:
    """Neither the fallback nor the kept copy."""
    remote.server.answer = signed("extends: agent-default")
    remote.runs("server")
    remote.server.answer = page(body)
    remote.is_refused(said, *FALLBACK)
    remote.stop_answering()
    remote.runs("copy")


def test_an_older_policy_is_refused(remote: Remote) -> None:
    for sequence, is_good in ((5, True), (4, False), (5, True), (7, True), (6, False)):
        remote.server.answer = signed(f"description: is {sequence}", sequence=sequence)
        if is_good:
            remote.runs("server")
        else:
            remote.is_refused(f"sequence {sequence} is lower than", *FALLBACK)
    remote.server.answer = signed("description: other", sequence=7)
    remote.runs("server")
    remote.copy.write_bytes(SIGNER.signed(text(sequence=9, expires="2020-01-01")))
    remote.is_refused("sequence 7 is lower than 9")  # what is known stays known


def _resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def _freezes(connection: socket.socket) -> None:
    connection.recv(1)


def _drips(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(1)  # the slowness that is tested


def _floods(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"#" * (1 << 16))


def _breaks_off(connection: socket.socket) -> None:
    body = SIGNER.signed(text())
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) + 1) + body)


OUTAGES: list[tuple[Answer, str]] = [
    (page(b"", "500 Oops"), "status 500"),
    (page(b"", "302 Found", "Location: file:///etc/passwd"), "does not follow redirects"),
    (page(b"x" * ((1 << 20) + 1)), "larger than 1024 KiB"),
    (_breaks_off, "the response is incomplete"),
    (_floods, "larger than 1024 KiB"),
    (lambda connection: connection.sendall(b"SSH-2.0-x\r\n"), "not a complete HTTP response"),
    (_resets, "Connection reset"),
    (_freezes, "no response within 5 s"),
]


@pytest.mark.parametrize(("answer", "said"), OUTAGES)
def test_an_outage_needs_a_copy_or_a_fallback(remote: Remote, answer: Answer, said: str) -> None:
    remote.server.answer = answer
    lines = remote.is_refused("; no usable copy of an earlier answer: there is none (try again")
    assert said in lines
    assert said in remote.runs("fallback", *FALLBACK)


def test_an_answer_that_drips_takes_ten_seconds(remote: Remote) -> None:
    remote.server.answer = _drips
    assert "no complete response within 10 s" in remote.runs("fallback", *FALLBACK)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("rm COPY", "there is none"),
        ("rm COPY; mkfifo COPY", "there is none"),
        ("rm COPY; mkdir COPY; touch COPY/x", "there is none"),
        ("ln -sf /dev/zero COPY", "there is none"),
        ("truncate -s 1T COPY", "is not by the key"),
        (text().encode(), "it is not signed"),
        (Signer(bytes(32)).signed(text()), "is not by the key"),
        (SIGNER.signed(text(expires="2020-02-29")), "it expired"),
    ],
)
def test_a_copy_is_worth_no_more_than_its_signature(
    remote: Remote, change: str | bytes, said: str
) -> None:
    remote.runs("server")
    copy = remote.copy
    if isinstance(change, bytes):
        copy.write_bytes(change)
    else:
        subprocess.run(["sh", "-c", change.replace("COPY", str(copy))], check=True)
    good, remote.server.answer = remote.server.answer, page(b"", "503 Down")
    remote.is_refused("no usable copy of an earlier answer: ")
    assert said in remote.runs("fallback", *FALLBACK)
    remote.server.answer = good
    remote.runs("server")
    assert copy.read_bytes() == SIGNER.signed(text(DENIES))


def test_a_policy_runs_where_no_copy_can_be_kept(remote: Remote) -> None:
    remote.sigwrap.store.mkdir()
    (remote.sigwrap.store / "policies").write_text("")
    status, out, lines = remote.run()
    assert (status, out) == (0, b"it ran\n")
    assert "sigwrap: cannot keep a copy of the policy in " in lines


def test_https_is_verified(sigwrap: Sigwrap) -> None:
    server = WebServer(signed(), secure=True)
    try:
        remote = Remote(sigwrap, server)
        remote.is_refused("cannot verify its certificate: self")
        assert server.requests == []
        assert "certificate" in remote.runs("fallback", *FALLBACK)
        remote.runs("server", SSL_CERT_FILE=str(CERTIFICATE))
        none = remote.runs("copy", SSL_CERT_FILE="/dev/null")
        assert "no CA certificates in /dev/null" in none
    finally:
        server.close()
    assert "Connection refused" in remote.runs("copy", SSL_CERT_FILE=str(CERTIFICATE))


def test_an_interrupt_does_not_wait_for_a_frozen_server(remote: Remote) -> None:
    """Not longer than the server gets; and the process that asks it does not outlive the run."""
    remote.server.answer = _freezes
    process = remote.sigwrap.start(*remote.options, *FALLBACK, "--", "sleep", "1000")
    remote.server.await_requests(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == INTERRUPTED
    await_that(lambda: remote.sigwrap.alive() == [])


KEY = "--policy-key"
URL = "https://me:sesame@host.invalid/p?sesame"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-p", URL), "--policy URL needs the public key of its signer (--policy-key FILE"),
        ((KEY, "key.pub"), "--policy-key is for a policy by URL"),
        (FALLBACK, "--policy-fallback is for a policy by URL"),
        (("-p", URL, KEY, "absent"), "--policy-key absent: No such file"),
        (("-p", URL, KEY, "/dev/null"), "--policy-key /dev/null: "),
        (("-p", "http://host.invalid/", KEY, "key.pub"), "--policy: http is allowed to this mach"),
        (("-p", URL, KEY, "key.pub", "--policy-fallback", "agent-defalt"), "no policy or file cal"),
        (("-p", URL, KEY, "key.pub", "--policy-fallback", URL), "only a run can have a policy by"),
        (("-p", URL, KEY, "key.pub", "--join-name", "x"), "--join-name can't be combined with a "),
        (("-p", URL, KEY, "key.pub"), "cannot get the policy https://host.invalid/p: "),
    ],
)
def test_a_mistake_in_the_options_is_said(
    remote: Remote, words: tuple[str, ...], said: str
) -> None:
    done = remote.sigwrap.run(*words, *TRUE)
    lines = done.stderr.decode()
    assert (done.returncode, done.stdout) == (REFUSED, b""), lines
    assert f"sigwrap: {said}" in lines
    assert "sesame" not in lines
    assert not remote.sigwrap.has_sessions()


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("policy", "check", URL), REFUSED),
        (("policy", "show", URL), REFUSED),
        (("policy", "explain", "-p", URL, "--", "ls"), REFUSED),
        (("hook", "run", "claude-code", "-p", URL), 2),
    ],
)
def test_only_a_run_can_have_one(sigwrap: Sigwrap, words: tuple[str, ...], status: int) -> None:
    call = b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": "/", "tool_input": '
    call += b'{"command": "ls"}, "session_id": "1"}'
    done = sigwrap.run(*words, input=call)
    assert done.returncode == status
    assert b"only a run can have a policy by URL" in done.stderr
    assert b"sesame" not in done.stderr
