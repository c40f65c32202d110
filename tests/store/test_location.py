from __future__ import annotations

import os

import pytest

from sigwrap.errors import StoreError
from sigwrap.log.folder import default_store


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


@pytest.mark.parametrize("home", ["", "~", "relative"])
def test_a_home_that_is_no_folder_s_path_is_an_error(home: str) -> None:
    with pytest.raises(StoreError, match="no home directory"):
        default_store({"HOME": home})


def test_an_account_without_a_home_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda _path: "~")
    with pytest.raises(StoreError, match="no home directory"):
        default_store({})
