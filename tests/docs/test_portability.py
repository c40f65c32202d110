"""docs/portability.md says what the code says, and what the tests try."""

from __future__ import annotations

import re
from pathlib import Path

from sigwrap.platform import Capability
from tests.support import roots

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "portability.md").read_text()


def test_the_older_file_is_built_where_its_glibc_is_the_oldest() -> None:
    script = (ROOT / "build" / "older_glibc.sh").read_text()
    (release,) = re.findall(r"^release=(\w+)$", script, re.MULTILINE)
    needed = ".".join(map(str, roots.RELEASES[release]))
    assert f"| `dist/older/sigwrap` (`make binary-older`) | glibc {needed} or newer" in PAGE


def test_a_capability_that_is_named_is_one() -> None:
    named = set(re.findall(r"\(capability `(\w+)`\)", PAGE))
    assert named == {"recording", "waits_through_signals", "signal_wall"}
    assert named <= {each.value for each in Capability}
