"""A bootloader that dies while it unpacks leaves its folder; a later run removes that alone."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.binary.conftest import Run
from tests.support.programs import needs

pytestmark = pytest.mark.binary

LONG_AGO = (1_000_000_000, 1_000_000_000)


@pytest.fixture
def above(environment: dict[str, str]) -> Path:
    return Path(environment["TMPDIR"])


def _folder(above: Path, name: str, *files: str) -> Path:
    folder = above / name
    folder.mkdir()
    for file in files:
        (folder / file).write_text("unpacked")
    os.utime(folder, LONG_AGO)
    return folder


@needs("strace")
def test_an_interrupt_while_it_unpacks(binary: Path, run: Run, above: Path) -> None:
    inject = ("-e", "trace=mkdir", "-e", "inject=mkdir:signal=SIGINT:when=1")
    done = run("strace", "-qq", "-o", "/dev/null", *inject, binary, "--", "true")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    (left,) = above.iterdir()
    os.utime(left, LONG_AGO)
    assert run(binary, "--", "true").returncode == 0
    assert list(above.iterdir()) == []


def test_what_was_unpacked_in_part_goes(binary: Path, run: Run, above: Path) -> None:
    _folder(above, "_MEI00001234AbCdEf", "libexpat.so.1", "libpython3.11.so.1.0")
    _folder(above, "_MEI00001235AbCdEf")
    assert run(binary, "--", "true").returncode == 0
    assert list(above.iterdir()) == []


def test_what_may_be_in_use_or_somebody_elses_stays(binary: Path, run: Run, above: Path) -> None:
    elsewhere = _folder(above, "elsewhere", "libexpat.so.1")
    kept = {
        elsewhere,
        _folder(above, "_MEI00001231AbCdEf", "base_library.zip"),
        _folder(above, "_MEI00001232AbCdEf", "libexpat.so.1", "another"),
        _folder(above, "_MEI00001233AbCdEf-mine"),
        above / "_MEI00001234AbCdEf",
        above / "_MEI00001235AbCdEf",
    }
    (above / "_MEI00001234AbCdEf").mkdir()  # just now
    (above / "_MEI00001235AbCdEf").symlink_to(elsewhere)
    assert run(binary, "--", "true").returncode == 0
    assert set(above.iterdir()) == kept
    assert [path.name for path in elsewhere.iterdir()] == ["libexpat.so.1"]
