from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigwrap.errors import InternalError, StoreError
from sigwrap.events import EVENT_TYPES, UPCASTERS, io_payload
from sigwrap.log import codec
from sigwrap.log.codec import (
    VERSION_KEY,
    Row,
    canonical_row,
    decode_row,
    encode_payload,
    journal_line,
    parse_journal_line,
)

HASH = "ab" * 32
# With the lone surrogates by which Python holds bytes that are no UTF-8.
any_text = st.text(st.characters(exclude_categories=()))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
payloads = st.dictionaries(any_text.filter(lambda name: name != VERSION_KEY), json_values)


@given(payloads)
@example({})
def test_any_payload_survives_the_journal(payload: dict[str, object]) -> None:
    text = encode_payload("process_exited", payload)
    line = journal_line(canonical_row(7, 8, "process_exited", 9, text), HASH)
    assert line.count(b"\n") == 1
    assert line.count(b"\t") == 5
    row = parse_journal_line(line)
    assert row == Row(7, 8, "process_exited", 9, text, HASH)
    assert decode_row(row).payload == payload


def test_no_type_has_a_field_that_hides_the_version() -> None:
    assert all(VERSION_KEY not in kind.fields for kind in EVENT_TYPES.values())


def test_an_unregistered_type_can_t_be_written() -> None:
    with pytest.raises(InternalError, match="no event type 'made_up'"):
        encode_payload("made_up", {})


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"1\t2\tt\t3\t{}\n", b"x\t2\tt\t3\t{}\thash\n", b"1\t2\tt\t3\t\xff\thash\n"],
)
def test_what_is_no_journal_line_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        parse_journal_line(line)


def test_the_shortest_text_that_is_nested_too_deep_is_refused() -> None:
    def nested(levels: int) -> Row:
        return Row(1, 1, "t", 1, '{"v":1,"":' + "[" * levels + "]" * levels + "}", HASH)

    assert decode_row(nested(63)).payload
    with pytest.raises(StoreError, match="row 1 can't be read"):
        decode_row(nested(64))


def test_old_rows_are_read_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    upcasters = {
        ("t", 1): lambda payload: {"names": [payload["name"]]},
        ("t", 2): lambda payload: {**payload, "count": len(payload["names"])},
    }
    monkeypatch.setattr(codec, "UPCASTERS", upcasters)
    monkeypatch.setattr(codec, "_CURRENT_VERSION", {"t": 3})
    event = decode_row(Row(1, 1, "t", 1, '{"v":1,"name":"a"}', HASH))
    assert event.payload == {"names": ["a"], "count": 1}


def test_every_older_version_of_a_type_has_its_step() -> None:
    older = {(kind.name, v) for kind in EVENT_TYPES.values() for v in range(1, kind.version)}
    assert set(UPCASTERS) == older


APPROVAL_TYPES = ("approval_requested", "approval_granted", "approval_denied", "approval_expired")


@pytest.mark.parametrize("type_name", APPROVAL_TYPES)
def test_an_approval_written_with_a_request_id_has_an_approval_id(type_name: str) -> None:
    payload = {"approval_id": "3f9a10", "kind": "exec"}
    written = encode_payload(type_name, payload)
    assert written == '{"v":2,"approval_id":"3f9a10","kind":"exec"}'
    for text in (written, '{"v":1,"request_id":"3f9a10","kind":"exec"}'):
        assert decode_row(Row(2, 1, type_name, 7, text, HASH)).payload == payload


@pytest.mark.parametrize(("type_name", "version"), sorted(UPCASTERS))
@given(payload=payloads)
def test_a_step_takes_any_payload(type_name: str, version: int, payload: dict[str, object]) -> None:
    text = json.dumps({**payload, VERSION_KEY: version})
    assert isinstance(decode_row(Row(2, 1, type_name, 7, text, HASH)).payload, dict)


def test_a_newer_version_of_a_type_is_not_guessed_at() -> None:
    with pytest.raises(StoreError, match="row 4: process_exited has version 99"):
        decode_row(Row(4, 1, "process_exited", 1, '{"v":99}', HASH))


def test_a_type_of_a_newer_sigwrap_is_shown_as_it_is() -> None:
    event = decode_row(Row(4, 1, "from_the_future", 1, '{"v":5,"a":1}', HASH))
    assert event.payload == {"a": 1}


@pytest.mark.parametrize(
    "payload",
    [
        *("", "{", "[]", "3", "{}", '{"v":1}x', b"{}", None),
        *('{"v":0}', '{"v":-1}', '{"v":"1"}', '{"v":null}', '{"v":[]}', '{"v":1.5}'),
    ],
)
def test_a_damaged_payload_names_its_row(payload: object) -> None:
    with pytest.raises(StoreError, match="row 4"):
        decode_row(Row(4, 1, "process_exited", 1, payload, HASH))  # type: ignore[arg-type]


def test_recorded_bytes_are_text_or_base64() -> None:
    payload = io_payload("stdin", 3, b"\xff\0" * 100)
    text = encode_payload("io_recorded", payload)
    assert json.loads(text) == {"v": 1, **payload}
    assert "base64" not in io_payload("stdin", 0, b"plain") and "text" not in payload
