"""A span of time and a size are read in one way, wherever somebody types them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.text import SECONDS_PATTERN, SIZE_PATTERN, SPAN_PATTERN, size_bytes, span_s


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        *[("45s", 45), ("10m", 600), ("1h30m", 5400), ("2d", 172_800), ("2w", 1_209_600)],
        *[("1.5h", 5400), ("250ms", 0.25), ("5min", 300), ("1h 30m", 5400), ("90 s", 90)],
        *[("0s", 0), ("1d12h30m15s", 131_415)],
    ],
)
def test_a_span(words: str, seconds: float) -> None:
    assert span_s(words) == seconds
    assert span_s(words, or_seconds=True) == seconds


@pytest.mark.parametrize(
    "words",
    ["", "s", "soon", "5x", "5s!", "-5s", "5 s 3", "x5s", "1e3s", "∞s", "5m3", "٣s", "5s\n", "2D"],
)
def test_what_is_no_span(words: str) -> None:
    with pytest.raises(ValueError, match=r"not a duration.*1h30m"):
        span_s(words)


def test_a_number_alone_is_seconds_only_where_that_is_meant() -> None:
    assert span_s("2.5", or_seconds=True) == 2.5
    with pytest.raises(ValueError, match=r"needs a unit \(30s, 30m, 30h, 30d or 30w\)"):
        span_s("30")


@pytest.mark.parametrize(
    ("words", "size"),
    [
        *[("0", 0), ("812", 812), ("64K", 2**16), ("512M", 2**29), ("2G", 2**31), ("1T", 2**40)],
        *[("1.5G", 3 * 2**29), ("500m", 500 * 2**20), ("1GB", 2**30), ("1 GiB", 2**30)],
        *[("10B", 10), ("0.5K", 512)],
    ],
)
def test_a_size(words: str, size: int) -> None:
    assert size_bytes(words) == size


@pytest.mark.parametrize("words", ["", "G", "1X", "-1G", "1e3", "1iB", "1GG", "٣K", "1G\n", "1 G "])
def test_what_is_no_size(words: str) -> None:
    with pytest.raises(ValueError, match=r"not a size.*500M"):
        size_bytes(words)


@given(st.from_regex(SPAN_PATTERN, fullmatch=True))
def test_what_fits_the_pattern_of_spans_is_one(words: str) -> None:
    assert re.fullmatch(SECONDS_PATTERN, words)
    assert span_s(words) >= 0


@given(st.from_regex(SIZE_PATTERN, fullmatch=True))
def test_what_fits_the_pattern_of_sizes_is_one(words: str) -> None:
    assert size_bytes(words) >= 0
