"""What is decided without a socket: heads, the gate, orders, documents."""

from __future__ import annotations

import json
from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.store.killswitch import State
from sigwrap.watch.board import Board, Line, Seen, Waits
from sigwrap.watch.orders import Approve, Deny, Interrupt, KillAll, Lift
from sigwrap.watch.page.documents import board_text, fit, lines_text
from sigwrap.watch.page.gate import Asked, Entered, Gate, Refused
from sigwrap.watch.page.heads import Bad, end_of, objection_to_beginning, objection_to_head
from sigwrap.watch.page.orders import NotAsked, is_id, order

GOOD = b"GET / HTTP/1.1\r\nHost: localhost:8000\r\nAccept: text/html\r\n\r\n"


def objection(head: bytes) -> Bad | None:
    return objection_to_beginning(head) or objection_to_head(head)


# Heads


def test_what_a_browser_sends_has_one_meaning() -> None:
    assert objection(GOOD) is None
    assert end_of(GOOD + b"more") == len(GOOD)


def test_the_beginning_of_one_is_no_reason_to_refuse() -> None:
    for cut in range(len(GOOD)):
        assert objection_to_beginning(GOOD[:cut]) is None
        assert end_of(GOOD[:cut]) == 0


PIECES = st.lists(
    st.sampled_from(
        [b"GET", b"POST", b" ", b"/", b"HTTP/1.1", b"\r\n", b"\n", b"\r", b"\0", b"\t", b":",
         b"Host: a", b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Content-Length:", b"x",
         b"\x0b", b"\x85", b"\xff", b"Host : b", b"Content-Length: 5,5", b"Cookie: c"]
    ),
    max_size=14,
)  # fmt: skip


@given(PIECES)
def test_whatever_passes_is_the_same_to_h11(pieces: list[bytes]) -> None:
    """It ends where h11 says that it ends, and has at most one length."""
    head = b"GET / HTTP/1.1\r\n" + b"".join(pieces) + b"\r\n\r\n"
    at = end_of(head)
    head = head[:at]
    if objection(head) is not None:
        return
    reader = h11.Connection(h11.SERVER)
    reader.receive_data(head)
    try:
        event = reader.next_event()
    except h11.RemoteProtocolError:
        return  # refused all the same
    assert isinstance(event, h11.Request)
    names = [name for name, _ in event.headers]
    assert names.count(b"host") == 1 and names.count(b"content-length") <= 1
    assert b"transfer-encoding" not in names
    assert len(event.headers) == head.count(b"\r\n") - 2
    assert reader.trailing_data[0] == b""


# The gate


def gate(port: int | None = 8000) -> Gate:
    numbers = iter(range(1, 9))
    return Gate(port, lambda size: bytes([next(numbers)]) * size)


def asked(method: str = "GET", path: str = "/", **fields: str) -> Asked:
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return Asked(method, path, "", {"host": "127.0.0.1:8000", **named})


def let_in(one: Gate) -> str:
    entered = one.pass_(asked(path=one.entry))
    assert isinstance(entered, Entered)
    return entered.cookie.partition(";")[0]


def test_only_whoever_has_been_let_in_gets_anything() -> None:
    one = gate()
    assert isinstance(one.pass_(asked()), Refused)
    cookie = let_in(one)
    assert one.pass_(asked(cookie=cookie)) is None
    assert one.pass_(asked(cookie=f"other=1; {cookie}; more=2")) is None
    assert isinstance(one.pass_(asked(cookie=cookie[:-1])), Refused)
    assert isinstance(one.pass_(asked(path="/in/None")), Refused)


def test_another_server_of_this_host_can_t_push_our_cookie_out_by_one_of_its_name() -> None:
    one = gate()
    cookie = let_in(one)
    name = cookie.partition("=")[0]
    assert one.pass_(asked(cookie=f"{name}=forged; {cookie}")) is None
    assert one.pass_(asked(cookie=f"{cookie}; {name}=forged")) is None


def test_through_a_file_any_port_of_this_hosts_names_leads_here() -> None:
    for host, is_served in (
        ("localhost:9", True),
        ("localhost", True),
        ("127.0.0.1:65535", True),
        ("[::1]:1", True),
        ("localhost:", False),
        ("localhost:x", False),
        ("evil:9", False),
        ("localhost:\u0661", False),
    ):
        one = gate(port=None)
        found = one.pass_(Asked("GET", one.entry, "", {"host": host}))
        assert isinstance(found, Entered) is is_served


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_no_text_opens_it(code: str, cookie: str, token: str) -> None:
    one = gate()
    assert isinstance(one.pass_(asked(path=f"/in/{code}")), Refused)
    assert isinstance(one.pass_(asked(cookie=cookie)), Refused)
    held = let_in(one)
    post = {"origin": "http://127.0.0.1:8000", "content_type": "application/json", "cookie": held}
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
        ("/killswitch", {"on": True, "reason": "x"}, KillAll("x")),
        ("/killswitch", {"on": False}, Lift()),
        ("/nothing", {}, None),
    ):
        assert order(path, json.dumps(document).encode()) == wanted


@given(st.sampled_from(["/approve", "/deny", "/interrupt", "/killswitch"]), st.binary())
def test_no_bytes_are_taken_for_an_order(path: str, body: bytes) -> None:
    with pytest.raises(NotAsked):
        order(path, body)


def test_what_leads_elsewhere_is_no_id() -> None:
    assert is_id("20261127-101502-4f1a") and is_id("3f2a")
    for found in ("", "-x", ".", "a/b", "a b", "a\n", "é", "x" * 201, None, 7):
        assert not is_id(found), found


# Documents

ANYTHING = st.text(st.characters(codec=None), max_size=40)


@given(ANYTHING, ANYTHING, st.integers(0, 1 << 62))
def test_a_board_of_any_texts_can_be_seen_and_is_one_line(one: str, other: str, at: int) -> None:
    seen = Seen(one, other, (one, other), one, at, None, 1, 2, at, other, one, None)
    waits = Waits(
        one, one, other, "exec", 1, one, 1, other, one, False, one, other, (one,), other, one,
        other, one, other, True, at, at,
    )  # fmt: skip
    board = Board(at, (seen,), 0, (waits,), State(at, one, other), (other,))
    text = board_text(board)
    assert "\n" not in text and "\r" not in text
    text.encode()
    assert all(each.isprintable() for each in texts(json.loads(text)))
    told = lines_text(one, [Line(1, at, 2, one, other, one)], 0)
    assert "\n" not in told and all(each.isprintable() for each in texts(json.loads(told)))


def test_what_is_deep_or_long_is_cut() -> None:
    deep: Any = "end"
    for _ in range(50):
        deep = [deep]
    assert "end" not in json.dumps(fit(deep))
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
