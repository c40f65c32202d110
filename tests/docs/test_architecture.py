"""docs/architecture.md names modules and packages that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_each_path_leads_to_a_module_or_package() -> None:
    named = set(re.findall(r"`([a-z_]+(?:/\w+)*(?:/|\.py|\.c))`", PAGE))
    named |= set(re.findall(r"│ \d \w+ +(\S+/(?:\w+\.py)?)", PAGE))
    named.discard("sigwrap/")
    assert len(named) > 30
    assert [each for each in sorted(named) if not (ROOT / "sigwrap" / each).exists()] == []
