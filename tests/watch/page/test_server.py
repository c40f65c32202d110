"""The page's server: which clients it serves, what it refuses, and its limits."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Callable

import pytest

from tests.support.waiting import PATIENCE_S, Reader
from tests.watch.page.conftest import Served, read_all

pytestmark = pytest.mark.tier("ci")
Serve = Callable[..., Served]
ORDER = {"session_id": "s1", "id": "q1", "always": False}
ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "deny",
    "connection": "close",
}


# The code and the cookie


def test_the_code_is_good_once(serve: Serve) -> None:
    page = serve()
    entered = page.get(page.entry)
    assert (entered.status, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"]
    assert re.fullmatch(
        rf"sigwrap-{page.port}=[0-9a-f]{{32}}; path=/; httponly; samesite=strict", cookie
    )
    again = page.get(page.entry)
    assert again.status == 403
    assert b"was used already" in again.body and b"restart sigwrap serve" in again.body
    assert "set-cookie" not in again.headers


def test_every_answer_has_what_keeps_others_out(served: Served) -> None:
    for found in (
        *(served.get(path) for path in ("/", "/page.js", "/nothing")),
        served.get("/", cookie=None),
        served.get("/", host="evil.example"),
        served.raw(b"nonsense\r\n\r\n"),
        served.post("/approve", ORDER, x_sigwrap_token=None),
    ):
        assert found.headers.items() >= ALWAYS.items()
        policy = found.headers["content-security-policy"]
        for directive in ("default-src 'none'", "frame-ancestors 'none'", "form-action 'none'"):
            assert directive in policy
        assert not [name for name in found.headers if name.startswith("access-control")]


# Who asks


def test_what_another_page_makes_a_browser_send_changes_nothing(served: Served) -> None:
    """The browser sends our cookie along. tests/watch/page/test_pure.py has all cases."""
    for found in (
        served.post("/approve", ORDER, host="evil.example", origin="http://evil.example"),
        served.post("/approve", ORDER, origin="http://127.0.0.1:3000"),
        served.post("/approve", ORDER, x_sigwrap_token=None),
        served.get("/stream?session=", sec_fetch_site="same-site"),
    ):
        assert found.status == 403
    assert served.get("/approve?session_id=s1&id=q1").status == 404
    refused = served.post("/approve", {**ORDER, "id": "refused"})
    assert refused.status == 409
    assert refused.said == {"ok": False, "said": "nothing of that id waits (it may be over)"}
    assert served.did() == ["approve", "s1", "refused", False]  # and nothing before


def did_nothing(served: Served) -> None:
    assert served.post("/killswitch/off", {}).status == 200
    assert served.did() == ["lift"]  # and nothing before


# What is asked for


NO_ORDERS = (
    ("/approve", b""),
    ("/approve", b"[" * 16_000),
    ("/approve", b"\xff\xfe"),
    ("/approve", b"[]"),
    ("/approve", b'{"session_id": "s1", "id": "q1"}'),
    ("/approve", b'{"session_id": "../s1", "id": "q1", "always": true}'),
    ("/approve", b'{"session_id": "-s1", "id": "q1", "always": true}'),
    ("/approve", b'{"session_id": "s1", "id": ["q1"], "always": true}'),
    ("/approve", b'{"session_id": "s1", "id": "q1", "always": 1}'),
    ("/deny", b'{"session_id": "s1", "id": "q1", "message": 7}'),
    ("/deny", b'{"session_id": "s1", "id": "q1", "message": "%s"}' % (b"x" * 2000)),
    ("/interrupt", b"{}"),
    ("/killswitch/on", b"{}"),
)


def test_what_makes_no_sense_is_said_to(served: Served) -> None:
    for path, body in NO_ORDERS:
        found = served.request("POST", path, body)
        assert found.status == 400 and found.said["ok"] is False, (path, body)
    did_nothing(served)


# How it is asked

HEAD = "GET / HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n"
POST = (
    "POST /killswitch/off HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nOrigin: http://{host}\r\n"
    "X-Sigwrap-Token: {token}\r\nContent-Type: application/json\r\n"
)
BODY = '{{"on": false}}'


TWO_MEANINGS = (
    (POST + "Content-Length: 13\r\nContent-Length: 13\r\n\r\n" + BODY, 400),
    (POST + "Content-Length: 13, 13\r\n\r\n" + BODY, 400),
    (POST + "Content-Length: +13\r\n\r\n" + BODY, 400),
    (POST + "Content-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (POST + "Transfer-Encoding: chunked\r\n\r\nd\r\n" + BODY + "\r\n0\r\n\r\n", 400),
    (POST + "Content-Length : 13\r\n\r\n" + BODY, 400),
    (POST + "Content-Length: 16385\r\n\r\n", 413),
    (POST + "Content-Length: 99999999999999999999\r\n\r\n", 400),
    (HEAD + "X: a\r\n b\r\n\r\n", 400),
    (HEAD + "X: a\r\n\tb\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\n Host: {host}\r\n\r\n", 400),
    (HEAD + "X: a\0b\r\n\r\n", 400),
    (HEAD + "X: a\rb\r\n\r\n", 400),
    ("GET /\0 HTTP/1.1\r\nHost: {host}\r\n\r\n", 400),
    (HEAD + "X: a\nY: b\r\n\r\n", 400),
    ("GET / HTTP/1.1\nHost: {host}\n\n", 400),
    (HEAD + "Cookie: {cookie}\r\n\r\n", 400),
    (HEAD + "no colon\r\n\r\n", 400),
    (HEAD + ": no name\r\n\r\n", 400),
    ("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n", 400),
    ("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n", 400),
    ("GET  / HTTP/1.1\r\nHost: {host}\r\n\r\n", 400),
    ("GET /\r\n\r\n", 400),
    ("HEAD / HTTP/1.1\r\nHost: {host}\r\n\r\n", 400),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("\x16\x03\x01\x02\x00\x01\x00\x01", 400),
    (HEAD + "X: " + "a" * 9000 + "\r\n\r\n", 431),
    (HEAD + "X: a\r\n" * 2000, 431),
)


def test_a_request_with_two_meanings_is_refused(served: Served) -> None:
    for head, status in TWO_MEANINGS:
        assert served.raw(served.filled(head)).status == status, head
    served.post("/killswitch/on", {"reason": "not lifted before"})
    assert served.did() == ["kill_all", "not lifted before"]


def test_bytes_behind_a_request_are_ignored(served: Served) -> None:
    """A second request on the same connection, in the same packet."""
    post = POST + "Content-Length: 13\r\n\r\n" + BODY
    found = served.raw(served.filled(HEAD + "\r\n" + post))
    assert found.status == 200 and b"HTTP/1.1" not in found.body
    served.post("/killswitch/on", {"reason": ""})
    assert served.did() == ["kill_all", ""]


def test_a_request_that_comes_byte_by_byte_is_served(served: Served) -> None:
    text = served.filled(POST + "Content-Length: 13\r\n\r\n" + BODY)
    assert served.raw(*(bytes([each]) for each in text)).status == 200
    assert served.did() == ["lift"]


# Bounds


def test_an_unfinished_request_is_closed(serve: Serve) -> None:
    page = serve(request_s=2.5)
    page.enter()
    beginnings = ["", "GET / HTTP/1.1\r\nHost:", POST + "Content-Length: 13\r\n\r\n{{"]
    silent = [page.connect() for _ in beginnings]
    for end, beginning in zip(silent, beginnings, strict=True):
        end.sendall(page.filled(beginning))
    for end in silent:
        assert read_all(end) == b""
        end.close()
    assert page.get("/").status == 200


def test_a_peer_that_cannot_be_searched_for_is_refused(serve: Serve) -> None:
    page = serve(env={"SEARCHES_FOREVER": ""}, identified_s=0.5)
    assert b"sigwrap cannot find its process" in page.get(page.entry).body


def test_many_silent_connections_keep_no_browser_out(serve: Serve) -> None:
    page = serve(request_s=PATIENCE_S)
    page.enter()
    page.tell(sessions=[{"id": "s1", "command": ["make"]}])
    stream = page.stream("s1")
    said = Reader(stream.fileno())
    said.until(rb"event: board")
    silent = [page.connect() for _ in range(100)]
    for each in silent[::2]:
        each.sendall(b"GET / HT")
    assert page.get("/").status == 200
    assert page.post("/killswitch/off", {}).status == 200
    page.tell(lines=["s1", [["allowed", "still told"]]])
    said.until(rb"still told")
    for each in (stream, *silent):
        each.close()


def test_a_slow_reader_holds_up_no_other_and_gets_the_newest(serve: Serve) -> None:
    page = serve(tick_s=0.01, lines=100)
    page.enter()
    slow, quick = page.stream("s1"), page.stream("s1")
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    told = Reader(quick.fileno())
    for at in range(60):
        page.tell(lines=["s1", [["allowed", f"line {at} {'x' * 500}"]] * 200])
        told.until(rb"line %d .*\n\n" % at)
    Reader(slow.fileno()).until(rb'line 59 [^\n]*"left_out":[1-9]\d\d\d')
    for each in (slow, quick):
        each.close()


def test_a_reader_that_takes_nothing_is_closed(serve: Serve) -> None:
    page = serve(tick_s=0.01, sending_s=0.5)
    page.enter()
    stream = page.stream("s1")
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    for at in range(60):
        page.tell(lines=["s1", [["allowed", f"line {at} {'x' * 500}"]] * 250])
    while page.attended():
        continue
    assert b"line 59" not in read_all(stream)
    stream.close()


def test_of_a_flood_the_newest_are_told_and_the_rest_is_counted(serve: Serve) -> None:
    page = serve(lines=250, first_lines=300)
    page.enter()
    page.tell(lines=["s1", [["allowed", f"n{at}"] for at in range(1000)]])
    stream = page.stream("s1")
    text = Reader(stream.fileno()).until(rb"event: events\ndata: [^\n]*\n").split(b"data: ")[1]
    told = json.loads(text)
    assert (len(told["events"]), told["left_out"]) == (300, 700)
    assert told["events"][-1]["text"] == "n999"
    stream.close()


def test_the_source_knows_whether_a_page_is_open(serve: Serve) -> None:
    page = serve()
    page.enter()
    stream = page.stream()
    assert page.attended() is True
    stream.close()
    assert page.attended() is False


def test_there_are_never_too_many_tabs(serve: Serve) -> None:
    page = serve(streams=2)
    page.enter()
    two = [page.stream(), page.stream()]
    for each in two:
        Reader(each.fileno()).until(rb"event: board")
    assert page.get("/stream?session=").status == 503
    for each in two:
        each.close()


# What it tells


def test_a_huge_board_is_told_in_part_and_the_rest_is_counted(served: Served) -> None:
    served.tell(
        sessions=[{"id": f"s{at}", "command": ["x" * 9000]} for at in range(900)],
        waiting=[{"id": f"q{at}", "what": "w" * 9000} for at in range(300)],
    )
    stream = served.stream()
    text = Reader(stream.fileno()).until(rb"event: board\ndata: [^\n]*\n").split(b"data: ")[1]
    told = json.loads(text)
    assert len(text) < 1_000_000
    assert len(told["sessions"]) + told["more"] == 900
    assert told["waiting"][0]["is_cut"] is True
    left_out = 300 - len(told["waiting"])
    assert told["problems"] == [f"{left_out} more approval requests: see sigwrap watch"]
    stream.close()


# Reports

META = '<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;">'


def test_a_report_is_apart_from_the_page(serve: Serve) -> None:
    page = serve(env={"REPORT": f"print({META!r})"})
    page.enter()
    found = page.get("/report/s1")
    assert found.status == 200
    policy = found.headers["content-security-policy"]
    assert policy == "default-src 'none'; sandbox allow-scripts; frame-ancestors 'none'"


@pytest.mark.parametrize("program", ["print('no policy')", "raise SystemExit('it is\\x1b gone')"])
def test_what_is_no_report_is_not_served(serve: Serve, program: str) -> None:
    page = serve(env={"REPORT": program})
    page.enter()
    found = page.get("/report/s1")
    assert found.status == 502 and b"\x1b" not in found.body


def test_no_path_leads_to_an_option_or_a_file(served: Served) -> None:
    for path in ("/report/--store", "/report/../x", "/report/", "/report/a%2fb", "/../page.py"):
        assert served.get(path).status == 404


# Its socket, and its end


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(own: Served, number: signal.Signals) -> None:
    stream = own.stream()
    Reader(stream.fileno()).until(rb"event: board")
    os.kill(own.process.pid, number)
    assert own.process.wait(PATIENCE_S) == 0
    assert read_all(stream).endswith(b"") and stream.recv(1) == b""
    assert own.errors.rest() == b""
    stream.close()


def test_what_was_asked_for_is_done_before_it_ends(own: Served) -> None:
    found = own.post("/killswitch/on", {"reason": "slow"})
    assert found.said == {"ok": True, "said": "kill_all: done"}
    assert own.process.wait(PATIENCE_S) == 0


def test_a_connection_without_a_process_is_refused(own: Served) -> None:
    """The other end is in a message, and in no process."""
    one, other = socket.socketpair()
    os.kill(own.process.pid, signal.SIGSTOP)
    with own.connect() as end:
        socket.send_fds(one, [b"."], [end.fileno()])
    os.kill(own.process.pid, signal.SIGCONT)
    own.errors.until(rb"the page refused a process: sigwrap cannot find its process")
    _, (held,), _, _ = socket.recv_fds(other, 1, 1)
    with socket.socket(fileno=held) as again:
        again.settimeout(PATIENCE_S)
        received = read_all(again)
    one.close()
    other.close()
    assert received.startswith(b"HTTP/1.1 403") and b"--socket" in received


def test_each_connection_of_many_at_once_is_its_own(own: Served) -> None:
    """One search finds the processes of all connections that wait for one."""
    os.kill(own.process.pid, signal.SIGSTOP)
    ends = [own.connect() for _ in range(20)]
    for end in ends:
        end.sendall(own.filled(HEAD + "\r\n"))
    os.kill(own.process.pid, signal.SIGCONT)
    for end in ends:
        assert read_all(end).startswith(b"HTTP/1.1 200")
        end.close()
