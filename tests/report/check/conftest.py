from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.report.check.mediated import RULES, Mediated


@pytest.fixture
def mediated(tmp_path: Path) -> Iterator[Callable[[str], Mediated]]:
    """Return a function that starts a session under a policy, in its own store."""
    begun: list[Mediated] = []

    def begin(text: str) -> Mediated:
        begun.append(Mediated(tmp_path / f"store{len(begun)}", text))
        return begun[-1]

    yield begin
    for each in begun:
        each.log.close()


@pytest.fixture
def made(mediated: Callable[[str], Mediated]) -> Mediated:
    return mediated(RULES)
