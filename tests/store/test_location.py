from __future__ import annotations

import pytest

from sigwrap.store.location import default_store


@pytest.mark.parametrize(
    ("env", "store"),
    [
        ({"SIGWRAP_STORE": "/s", "XDG_STATE_HOME": "/x", "HOME": "/h"}, "/s"),
        ({"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/sigwrap"),
        ({"HOME": "/h"}, "/h/.local/state/sigwrap"),
        ({"SIGWRAP_STORE": "", "XDG_STATE_HOME": "", "HOME": "/h"}, "/h/.local/state/sigwrap"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/sigwrap"),
    ],
)
def test_the_first_variable_that_is_set_wins(env: dict[str, str], store: str) -> None:
    assert default_store(env) == store


def test_without_a_home_the_account_s_is_used() -> None:
    assert default_store({}).endswith("/.local/state/sigwrap")
