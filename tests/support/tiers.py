"""Which tests a run takes. `--tier=quick`: `make test`; `--tier=ci`: .ci/run; without: every test.

A test's tier is what a failure would mean:
- quick: pure code is wrong, or a promise (tests/promises.py) doesn't hold.
- ci: a rarer path, an attack, a race or a crash isn't held.
- all: a deeper look at what the others look at, or a third-party program, finds a difference.

The folder decides, unless the test (or its module's `pytestmark`) has `@pytest.mark.tier("…")`, or
`@pytest.mark.promise("…")`, which makes it quick."""

from __future__ import annotations

from collections.abc import Iterable

import hypothesis
import pytest

TIERS = ("quick", "ci", "all")
# Folders whose tests mostly start sigwrap, a browser or a compiler. All others are quick.
OF_PROCESSES = frozenset(
    "approvals attacks binary containers endurance exec joined process signals".split()
)


def folder_tier(folder: str) -> str:
    if folder == "programs":
        return "all"
    return "ci" if folder in OF_PROCESSES else "quick"


def tier_of(path: str, marks: Iterable[pytest.Mark]) -> str:
    """`path` is below tests; `marks` are the test's, the closest first."""
    by_name: dict[str, pytest.Mark] = {}
    for mark in marks:
        by_name.setdefault(mark.name, mark)
    if "promise" in by_name:
        return "quick"
    folder = path.partition("/")[0]
    if "tier" not in by_name:
        return folder_tier(folder)
    match by_name["tier"].args:
        case ("all",) if folder == "attacks":
            raise pytest.UsageError(f"{path}: an attack is of the tier ci, or quick")
        case (str() as name,) if name in TIERS:
            return name
    raise pytest.UsageError(f"{path}: its tier is not one of {', '.join(TIERS)}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, help="the tests to take, and how many examples")


# Examples of each property. They have no deadline: a busy machine would miss it.
EXAMPLES = {"quick": 25, "ci": 60, "all": 500}
for _tier_name, _examples in EXAMPLES.items():
    hypothesis.settings.register_profile(
        _tier_name,
        max_examples=_examples,
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--hypothesis-profile"):
        hypothesis.settings.load_profile(config.getoption("--tier") or "ci")
    config.addinivalue_line("markers", "tier(name): quick, ci or all (tests/support/tiers.py)")
    config.addinivalue_line("markers", "promise(name): holds what tests/promises.py names; quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    highest = TIERS.index(config.getoption("--tier") or TIERS[-1])
    left_out = [item for item in items if TIERS.index(_tier(item)) > highest]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _tier(item: pytest.Item) -> str:
    return tier_of(item.nodeid.removeprefix("tests/"), item.iter_markers())
