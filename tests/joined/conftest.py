"""A session that commands join, as root and as an ordinary user."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.harness import Sigwrap
from tests.support.waiting import Watch


@pytest.fixture
def subject(as_user: Sigwrap) -> Iterator[Sigwrap]:
    """Without the sessions that it has left in the background."""
    yield as_user
    alive = as_user.alive()
    if not alive:
        return
    with Watch(alive) as watch:
        as_user.run("signal", "agent", "SIGKILL")
        watch.await_ends()
