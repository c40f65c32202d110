"""Decisions without a socket: heads, the gate, orders, documents."""

from __future__ import annotations

import http.client
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.control.killswitch import State
from sigwrap.watch.board import (
    Approve,
    Board,
    Deny,
    EventLine,
    Interrupt,
    KillAll,
    Lift,
    ListedRequest,
    SessionView,
)
from sigwrap.watch.documents import board_text, fit, lines_text
from sigwrap.watch.page.gate import Entered, Gate, Refused
from sigwrap.watch.page.messages import (
    BadRequest,
    Request,
    head_size,
    is_id,
    read_head,
    read_order,
)

GOOD = b"GET / HTTP/1.1\r\nHost: localhost:8000\r\nAccept: text/html\r\n\r\n"


# Heads


def test_a_head_that_a_browser_sends_is_read() -> None:
    assert head_size(GOOD + b"more") == len(GOOD)
    request, length = read_head(GOOD)
    assert request == Request("GET", "/", "", {"host": "localhost:8000", "accept": "text/html"})
    assert length == 0
    for cut in range(len(GOOD)):
        assert head_size(GOOD[:cut]) == 0


PIECES = st.lists(
    st.sampled_from(
        [b"GET", b"POST", b" ", b"/", b"HTTP/1.1", b"\r\n", b"\n", b"\r", b"\0", b"\t", b":",
         b"Host: a", b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Content-Length:", b"x",
         b"\x0b", b"\x85", b"\xff", b"Host : b", b"Content-Length: 5,5", b"Cookie: c"]
    ),
    max_size=14,
)  # fmt: skip


@given(PIECES)
def test_another_reader_finds_the_same_in_a_head_that_passes(pieces: list[bytes]) -> None:
    head = b"GET / HTTP/1.1\r\n" + b"".join(pieces) + b"\r\n\r\n"
    try:
        head = head[: head_size(head)]
        request, length = read_head(head)
    except BadRequest:
        return
    others = http.client.parse_headers(io.BytesIO(head.partition(b"\r\n")[2]))
    assert {name.lower() for name in others} == set(request.fields)
    assert len(others) == head.count(b"\r\n") - 2
    assert others["host"].strip(" \t") == request.fields["host"]
    assert others.get_all("content-length", [str(length)]) == [str(length)]
    assert "transfer-encoding" not in others


# The gate


OURS = "http://127.0.0.1:8000"


def gate(port: int | None = 8000) -> Gate:
    numbers = iter(range(1, 9))
    return Gate(port, lambda size: bytes([next(numbers)]) * size)


def asked(method: str = "GET", path: str = "/", **fields: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return Request(method, path, "", {"host": "127.0.0.1:8000", **named})


def let_in(one: Gate) -> str:
    entered = one.pass_(asked(path=one.entry))
    assert isinstance(entered, Entered)
    return entered.cookie.partition(";")[0]


def test_a_browser_without_the_cookie_gets_nothing() -> None:
    one = gate()
    assert isinstance(one.pass_(asked()), Refused)
    for code in ("", "0" * 32, one.entry[4:-1], one.entry[4:] + "0", "%00"):
        assert isinstance(one.pass_(asked(path=f"/in/{code}")), Refused), code
    assert one.pass_(asked("POST", one.entry, origin=OURS)) == Refused(405, "only GET is supported")
    cookie = let_in(one)
    assert isinstance(one.pass_(asked(path="/in/None")), Refused)
    name, _, secret = cookie.partition("=")
    for given_, passes in (
        (cookie, True),
        (f"other=1; {cookie}; more=2", True),
        # Another server on this host can't push ours out by one of its name.
        (f"{name}=forged; {cookie}", True),
        (f"{cookie}; {name}=forged", True),
        (cookie[:-1], False),
        (f"{cookie}x", False),
        (f"{name}=", False),
        (f"other={secret}", False),
    ):
        assert (one.pass_(asked(cookie=given_)) is None) is passes, given_


def test_only_the_names_of_this_host_and_this_port_lead_here() -> None:
    """DNS rebinding: the browser believes that it speaks to another site. A port that is forwarded
    to a file may be any."""
    anywhere, here = (None,), (None, 8000)
    for host, served in (
        *(("127.0.0.1:8000", here), ("localhost:8000", here), ("[::1]:8000", here)),
        *(("localhost:9", anywhere), ("localhost", anywhere), ("127.0.0.1:65535", anywhere)),
        *((host, ()) for host in ("", "localhost:", "localhost:x", "evil:8000", "[::2]:8000")),
        *((host, ()) for host in ("localhost:\u0661", "127.0.0.1.evil:8000", "localhost:8000:1")),
        *((host, ()) for host in ("127.0.0.1:8000@evil", "user@localhost:8000")),
    ):
        for port in (None, 8000):
            one = gate(port)
            found = one.pass_(asked(path=one.entry, host=host))
            assert isinstance(found, Entered) is (port in served), (host, port)


def test_what_another_page_makes_a_browser_send_is_refused() -> None:
    """The browser sends our cookie along."""
    one = gate()
    cookie = let_in(one)
    post = {"origin": OURS, "content_type": "application/json", "x_sigwrap_token": one.token}
    assert one.pass_(asked("POST", "/approve", cookie=cookie, **post)) is None
    for status, name, value in (
        *((403, "origin", value) for value in (None, "", "null", "http://evil.example")),
        *((403, "origin", value) for value in ("https://127.0.0.1:8000", "http://localhost:8000")),
        *((403, "origin", value) for value in ("http://127.0.0.1:1", f"{OURS}.evil")),
        *((403, "x_sigwrap_token", value) for value in (None, "", one.token[:-1], "0" * 32)),
        *((415, "content_type", value) for value in (None, "text/plain", "multipart/form-data")),
        *((403, "sec_fetch_site", value) for value in ("", "same-site", "cross-site")),
    ):
        fields = {"cookie": cookie, **post, name: value}
        sent = {each: text for each, text in fields.items() if text is not None}
        refused = one.pass_(asked("POST", "/approve", **sent))
        assert isinstance(refused, Refused) and refused.status == status, (name, value)
    for site, passes in (("same-origin", True), ("none", True), ("cross-site", False), ("", False)):
        found = one.pass_(asked(cookie=cookie, sec_fetch_site=site))
        assert (found is None) is passes, site


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_no_text_opens_it(code: str, cookie: str, token: str) -> None:
    one = gate()
    assert isinstance(one.pass_(asked(path=f"/in/{code}")), Refused)
    assert isinstance(one.pass_(asked(cookie=cookie)), Refused)
    held = let_in(one)
    post = {"origin": OURS, "content_type": "application/json", "cookie": held}
    refused = one.pass_(asked("POST", "/approve", x_sigwrap_token=token, **post))
    assert isinstance(refused, Refused)
    assert one.pass_(asked("POST", "/approve", x_sigwrap_token=one.token, **post)) is None


# Orders


def test_each_path_has_its_order() -> None:
    ids = {"session_id": "s1", "id": "q1"}
    for path, document, wanted in (
        ("/approve", {**ids, "always": True}, Approve("s1", "q1", True)),
        ("/deny", {**ids, "message": "no"}, Deny("s1", "q1", "no")),
        ("/interrupt", ids, Interrupt("s1")),
        ("/killswitch/on", {"reason": "x"}, KillAll("x")),
        ("/killswitch/off", {}, Lift()),
    ):
        assert read_order(path, json.dumps(document).encode()) == wanted
    with pytest.raises(BadRequest, match="no such action"):
        read_order("/nothing", b"{}")


@given(st.sampled_from(["/approve", "/deny", "/interrupt", "/killswitch/on"]), st.binary())
def test_no_bytes_are_taken_for_an_order(path: str, body: bytes) -> None:
    with pytest.raises(BadRequest):
        read_order(path, body)


def test_what_leads_elsewhere_is_no_id() -> None:
    assert is_id("20261127-101502-4f1a") and is_id("3f2a")
    for found in ("", "-x", ".", "a/b", "a b", "a\n", "é", "x" * 201, None, 7):
        assert not is_id(found), found


# Documents

ANYTHING = st.text(st.characters(codec=None), max_size=40)


@given(ANYTHING, ANYTHING, st.integers(0, 1 << 62))
def test_a_board_of_any_texts_can_be_seen_and_is_one_line(one: str, other: str, at: int) -> None:
    seen = SessionView(one, other, (one, other), one, at, None, 1, 2, at, other, one, None)
    request = ListedRequest(
        one, one, other, "exec", 1, one, 1, other, one, False, one, other, (one,), other, one,
        other, one, other, True, at, at,
    )  # fmt: skip
    board = Board(at, (seen,), 0, (request,), State(at, one, other), (other,))
    text = board_text(board)
    assert "\n" not in text and "\r" not in text
    text.encode()
    assert all(each.isprintable() for each in texts(json.loads(text)))
    told = lines_text(one, [EventLine(1, at, 2, one, other, one)], 0)
    assert "\n" not in told and all(each.isprintable() for each in texts(json.loads(told)))


def test_a_long_text_is_cut() -> None:
    assert len(fit("x" * 100_000)) == 4_000


def texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [each for pair in value.items() for part in pair for each in texts(part)]
        case list():
            return [each for part in value for each in texts(part)]
        case _:
            return []
