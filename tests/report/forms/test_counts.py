from __future__ import annotations

import pytest

from sigwrap.report.forms.counts import counted


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 events"), (1, "1 event"), (2, "2 events"), (1000, "1000 events")]
)
def test_only_one_is_singular(count: int, shown: str) -> None:
    assert counted(count, "event") == shown
    assert counted(1, "process", "processes") == "1 process"
    assert counted(2, "process", "processes") == "2 processes"
