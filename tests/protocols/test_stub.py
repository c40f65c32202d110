"""The frames between the supervisor and a stub."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.record.frames import (
    MAX_PAYLOAD_BYTES,
    BrokenProtocol,
    Decoder,
    Frame,
    Kind,
    count_frame,
    count_of,
    exit_frame,
    frame,
    status_of,
)

FRAMES = st.lists(st.tuples(st.sampled_from(list(Kind)), st.binary(max_size=300)), max_size=20)


def test_the_layout_is_what_is_written_down() -> None:
    assert frame(Kind.STDOUT, b"ab") == b"\x02\x00\x00\x00\x02ab"
    assert exit_frame(-15) == b"\x05\x00\x00\x00\x04\xff\xff\xff\xf1"
    assert count_frame(Kind.STDIN, 258) == b"\x04\x00\x00\x00\x08\0\0\0\0\0\0\x01\x02"
    assert [kind.value for kind in Kind] == [1, 2, 3, 4, 5, 6]


@given(FRAMES, st.integers(min_value=1, max_value=50))
def test_however_it_is_cut_up_it_comes_out_whole(
    frames: list[tuple[Kind, bytes]], piece: int
) -> None:
    sent = b"".join(frame(kind, payload) for kind, payload in frames)
    decoder = Decoder()
    found: list[Frame] = []
    for start in range(0, len(sent), piece):
        found += decoder.feed(sent[start : start + piece])
    assert found == [Frame(*each) for each in frames]


def test_what_an_unfinished_frame_lacks() -> None:
    decoder, sent = Decoder(), frame(Kind.STDIN, b"abc") + frame(Kind.STDIN, b"defg")
    lacks = []
    for size in (4, 1, 2, 1, 5, 3, 1):
        decoder.feed(sent[:size])
        sent = sent[size:]
        lacks.append(decoder.missing)
    assert lacks == [0, 3, 1, 0, 4, 1, 0]


def test_the_longest_payload_passes_and_one_byte_more_does_not() -> None:
    longest = bytes(MAX_PAYLOAD_BYTES)
    assert Decoder().feed(frame(Kind.STDIN, longest)) == [Frame(Kind.STDIN, longest)]
    with pytest.raises(BrokenProtocol, match="too long"):
        Decoder().feed(frame(Kind.STDIN, longest + b"x")[:5])


@given(st.binary(max_size=2000))
def test_garbage_is_refused_or_kept_within_a_frame(data: bytes) -> None:
    decoder = Decoder()
    try:
        decoder.feed(data)
    except BrokenProtocol:
        return
    assert len(decoder._data) <= MAX_PAYLOAD_BYTES + 5


@pytest.mark.parametrize("number", [0, 7, 255])
def test_an_unknown_type_is_refused_at_its_header(number: int) -> None:
    with pytest.raises(BrokenProtocol, match=f"type {number}"):
        Decoder().feed(bytes([number, 0, 0, 0, 0]))


def test_counts_only_grow_and_never_beyond_what_was_sent() -> None:
    eight = (5).to_bytes(8, "big")
    assert count_of(eight, at_least=5, at_most=5) == 5
    for payload, least, most in ((eight, 6, 9), (eight, 0, 4), (eight[1:], 0, 9), (b"", 0, 9)):
        with pytest.raises(BrokenProtocol):
            count_of(payload, at_least=least, at_most=most)


def test_a_status_takes_four_bytes() -> None:
    assert status_of(b"\xff\xff\xff\xf7") == -9
    with pytest.raises(BrokenProtocol):
        status_of(b"\0")
