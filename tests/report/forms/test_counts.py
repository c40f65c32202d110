from __future__ import annotations

import pytest

from sigwrap.report.forms.counts import counted


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 events"), (1, "1 event"), (2, "2 events"), (1000, "1000 events")]
)
def test_only_one_is_singular(count: int, shown: str) -> None:
    assert counted(count, "event") == shown


def test_some_words_have_a_plural_of_their_own() -> None:
    assert counted(1, "process", "processes") == "1 process"
    assert counted(2, "process", "processes") == "2 processes"
