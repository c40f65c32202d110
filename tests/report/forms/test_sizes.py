from __future__ import annotations

import pytest

from sigwrap.report.forms.sizes import byte_size


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0B"),
        (999, "999B"),
        (1000, "1.0K"),
        (10_200, "10K"),
        (1 << 20, "1.0M"),
        (int(1.5 * (1 << 30)), "1.5G"),
        (1 << 50, "1.0P"),
    ],
)
def test_at_most_four_digits(size: int, shown: str) -> None:
    assert byte_size(size) == shown
