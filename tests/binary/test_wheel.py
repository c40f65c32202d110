"""What `pip install .` installs, with a compiler and without one."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.binary

ROOT = Path(__file__).parents[2]
EXTENSION = "sigwrap/exec/_repeated.abi3.so"


def _wheel(folder: Path, compiler: str) -> Path:
    line = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), "."]
    subprocess.run(line, cwd=ROOT, env={**os.environ, "CC": compiler}, check=True)
    (wheel,) = folder.iterdir()
    return wheel


def test_the_extension_is_in_the_wheel(tmp_path: Path) -> None:
    """One for every Python from 3.11 on."""
    wheel = _wheel(tmp_path, "cc")
    assert wheel.name.endswith("-cp311-abi3-linux_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert EXTENSION in archive.namelist()
        carried = {name.rpartition("/")[0] for name in archive.namelist()}
        carried.update(name.removesuffix(".py") for name in archive.namelist())
        pages = {name for name in archive.namelist() if name.startswith("sigwrap/docs/")}
    assert {"sigwrap/policies", "sigwrap/policy/shipped"} <= carried
    names = {path.name for path in (ROOT / "docs").glob("*.md")}
    names |= {"policy.schema.json", "sigwrap.1", "ocsf.sql"}
    assert pages == {f"sigwrap/docs/{name}" for name in names}


def test_without_a_compiler_there_is_a_wheel_all_the_same(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, "/nowhere/cc")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert EXTENSION not in archive.namelist()
