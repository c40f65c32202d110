"""A policy that lets each process signal its own, and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.signal_lab import Lab

Attack = Callable[..., Any]
OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"


@pytest.fixture
def own(users_lab: Lab) -> Lab:
    return users_lab.under(OWN)


@pytest.fixture
def attack(own: Lab, programs: Path) -> Attack:
    """What one of programs/attacks.py tells."""

    def run(name: str, *words: object) -> Any:
        return own.tells(programs / "attacks.py", own.boxes, name, *words)

    return run
