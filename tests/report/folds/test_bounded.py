from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sigwrap.report.folds.bounded import Tally


def test_up_to_its_limit_a_tally_is_exact() -> None:
    tally: Tally[str] = Tally(1, limit=3)
    for key, exact in (("a", True), ("b", True), ("c", True), ("a", True), ("d", False)):
        tally.add(key)
        assert tally.exact is exact


def test_what_is_frequent_survives_a_flood_of_the_rare() -> None:
    tally: Tally[int] = Tally(1, limit=10)
    for number in range(1_000):
        tally.add(number)
        tally.add(-1)
    assert tally.counts == ((-1, 1_000),)
    assert (tally.rest, tally.exact) == (1_000, False)


@given(st.lists(st.integers(0, 30)), st.integers(2, 12), st.integers(0, 12))
def test_nothing_is_lost_from_the_sum(keys: list[int], limit: int, size: int) -> None:
    tally: Tally[int] = Tally(size, limit=limit)
    for key in keys:
        tally.add(key)
    assert sum(count for _, count in tally.counts) + tally.rest == len(keys)
    assert all(count <= keys.count(key) for key, count in tally.counts)
