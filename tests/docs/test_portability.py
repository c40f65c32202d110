"""docs/portability.md says what the code says, and what the tests try."""

from __future__ import annotations

import re
from pathlib import Path

from sigwrap.linux import landlock, seccomp
from sigwrap.platform import WITHOUT, Capability
from tests.support import roots
from tests.tools import kernels

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "portability.md").read_text()


def test_the_systems_are_those_that_are_tried() -> None:
    rows = re.findall(r"^\| Debian (\w+) \| (\d+)\.(\d+) \|", PAGE, re.MULTILINE)
    assert {name: (int(a), int(b)) for name, a, b in rows} == roots.RELEASES
    script = (ROOT / "build" / "older_glibc.sh").read_text()
    (release,) = re.findall(r"^release=(\w+)$", script, re.MULTILINE)
    needed = ".".join(map(str, roots.RELEASES[release]))
    assert f"| `dist/older/sigwrap` (`make binary-older`) | glibc {needed} or newer" in PAGE


def test_the_kernels_are_those_that_are_tried() -> None:
    (listed,) = re.findall(r"boots Debian's kernels of (.*?) in an emulator", PAGE)
    assert dict(re.findall(r"([\w-]+) \(([\d.]+)\)", listed)) == kernels.KERNELS


def test_the_oldest_kernel_is_the_one_that_a_refusal_names() -> None:
    (oldest,) = re.findall(r"\*\*Linux ([\d.]+) is the oldest\.\*\*", PAGE)
    assert f"needs Linux {oldest} or later" in seccomp.NEEDS
    rows = dict(re.findall(r"^\| (\d+\.\d+) \| (.*?) \|", PAGE, re.MULTILINE))
    assert next(iter(rows)) == oldest
    for needs in (landlock.NEEDS, landlock.FILES_NEED):
        assert "Landlock" in rows[needs.split()[1]]


def test_a_capability_that_is_named_is_one() -> None:
    named = set(re.findall(r"\(capability `(\w+)`\)", PAGE))
    assert named == {"recording", "waits_through_signals", "signal_wall"}
    assert named <= {each.value for each in Capability}
    assert WITHOUT[Capability.WAITS_THROUGH_SIGNALS] in PAGE


def test_its_targets_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make ([\w-]+)`", PAGE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
