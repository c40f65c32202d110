"""--one-user, for root: of a test that is run as two users, only that as an ordinary user.
--as-we-are=FOLDERS: of those in these folders, only that as we are; the other is tried on the
binary."""

from __future__ import annotations

import os

import pytest

_US, _ORDINARY = "us", "nobody"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--one-user", action="store_true", help=__doc__)
    parser.addoption("--as-we-are", default="", metavar="FOLDERS", help=__doc__)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.getuid() != 0:
        return
    known = {item.nodeid for item in items}
    left_out = set[str]()
    if config.getoption("--one-user"):
        left_out = {name for name in known if _changed(name, _US, _ORDINARY) in known}
    if folders := config.getoption("--as-we-are"):
        ours = tuple(f"{folder}/" for folder in folders.split(","))
        found = (name for name in known if name.startswith(ours))
        left_out |= {name for name in found if _changed(name, _ORDINARY, _US) in known}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def _changed(nodeid: str, user: str, other: str) -> str:
    """The same test as the other user; of one that isn't as this user, nothing that is known."""
    name, _, parameters = nodeid.partition("[")
    words = parameters.removesuffix("]").split("-")
    if user not in words:
        return ""
    return f"{name}[{'-'.join(other if word == user else word for word in words)}]"
