"""--one-user, for root: of a test that is run as two users, only that as an ordinary user."""

from __future__ import annotations

import os

import pytest

_US, _ORDINARY = "us", "nobody"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--one-user", action="store_true", help=__doc__)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--one-user") or os.getuid() != 0:
        return
    known = {item.nodeid for item in items}
    kept, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (left_out if _as_the_other(item.nodeid) in known else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _as_the_other(nodeid: str) -> str:
    """Of a test as we are; of any other, nothing that is among them."""
    name, _, parameters = nodeid.partition("[")
    words = parameters.removesuffix("]").split("-")
    if _US not in words:
        return ""
    return f"{name}[{'-'.join(_ORDINARY if word == _US else word for word in words)}]"
