from __future__ import annotations

import pytest

from sigwrap.approve.control_socket import (
    BadRequest,
    decode_reply,
    decode_request,
    encode,
    refusal,
)

DEEP = b"[" * 100_000


def test_a_request_arrives_with_the_version_of_the_protocol() -> None:
    line = encode({"do": "approve", "id": "3f9a10"})
    assert line.endswith(b"\n")
    assert decode_request(line) == {"v": 1, "do": "approve", "id": "3f9a10"}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"", "bad-request"),
        (b"approve it", "bad-request"),
        (DEEP, "bad-request"),
        (b"[1]", "bad-request"),
        (b'{"do": "list"}', "version"),
        (b'{"v": 2, "do": "list"}', "version"),
    ],
)
def test_a_line_that_is_no_request_is_answered_by_a_refusal(line: bytes, error: str) -> None:
    with pytest.raises(BadRequest) as caught:
        decode_request(line)
    assert caught.value.reply["ok"] is False
    assert caught.value.reply["error"] == error


def test_a_reply_is_an_object_or_empty() -> None:
    assert decode_reply(encode(refusal("late", "too late"))) == {
        "v": 1,
        "ok": False,
        "error": "late",
        "message": "too late",
    }
    assert decode_reply(b"[1]") == {}


@pytest.mark.parametrize("line", [b"", b"hello", DEEP])
def test_a_reply_that_is_no_json_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode_reply(line)
