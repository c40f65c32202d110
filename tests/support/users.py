"""For which users a run takes the tests that are there for two (`us` and `nobody` among their
parameters), where root runs them. An ordinary user can only be itself."""

from __future__ import annotations

import os

import pytest

_US, _ORDINARY = "us", "nobody"


def pytest_addoption(parser: pytest.Parser) -> None:
    users = (_US, _ORDINARY, "both")
    parser.addoption("--users", choices=users, default="both", help="the users of tests for two")
    for user in (_US, _ORDINARY):
        text = f"folders whose tests for two users are taken for `{user}` alone"
        parser.addoption(f"--{user}-in", default="", metavar="FOLDERS", help=text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.getuid() != 0:
        return
    known = {item.nodeid for item in items}
    left_out = set[str]()
    match config.getoption("--users"):
        case "nobody":
            left_out = {name for name in known if _changed(name, _US, _ORDINARY) in known}
        case "us":
            left_out = {name for name in known if _changed(name, _ORDINARY, _US) in known}
    for kept, other in ((_US, _ORDINARY), (_ORDINARY, _US)):
        folders = tuple(f"{each}/" for each in config.getoption(f"--{kept}-in").split(",") if each)
        found = (name for name in known if name.startswith(folders))
        left_out |= {name for name in found if _changed(name, other, kept) in known}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def _changed(nodeid: str, user: str, other: str) -> str:
    """The same test as the other user; of one that isn't as this user, nothing that is known."""
    name, _, parameters = nodeid.partition("[")
    words = parameters.removesuffix("]").split("-")
    if user not in words:
        return ""
    return f"{name}[{'-'.join(other if word == user else word for word in words)}]"
