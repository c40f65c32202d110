"""docs/security.md lists the system calls that could reach other processes and are not mediated."""

from __future__ import annotations

import re
from pathlib import Path

import pyseccomp

from sigwrap.calls import TABLE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ((?:stopped|harmless)\b.+?) \| (`.+?) \|$", PAGE, re.MULTILINE)
NAMES = [name for _, calls in ROWS for name in re.findall(r"`(\w+)`", calls)]
# Calls since Linux 6.5.
NEWER = {
    "cachestat",
    "statmount",
    "listmount",
    "lsm_get_self_attr",
    "lsm_list_modules",
    "lsm_set_self_attr",
}
CALLS_DOCUMENT = (ROOT / "docs" / "calls.md").read_text(encoding="utf-8")


def test_each_call_has_one_row_and_each_row_a_reason() -> None:
    assert len(NAMES) == len(set(NAMES)) > 100
    assert all(re.match(r"stopped by \w|harmless: \w", effect) for effect, _ in ROWS)


def test_the_calls_of_the_filter_are_on_their_own_page_and_no_other_call_is() -> None:
    filtered = {call.name for call in TABLE}
    assert not filtered & set(NAMES)
    assert filtered == set(re.findall(r"`(\w+)` (?:\d+|-)/", CALLS_DOCUMENT))


def test_no_call_is_misspelled() -> None:
    """libseccomp knows all calls but those that are newer than itself."""
    arches = (pyseccomp.Arch.X86_64, pyseccomp.Arch.X86)
    unknown = {
        name
        for name in NAMES
        if all(pyseccomp.resolve_syscall(arch, name) == -1 for arch in arches)
    }
    assert unknown <= NEWER
