"""The suite runs against dist/sigwrap and dist/sigwrap.pyz, as `make binary zipapp` made them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

DIST = Path(__file__).parents[2] / "dist"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def binary() -> Path:
    return _built(DIST / "sigwrap", "make binary")


@pytest.fixture(scope="session")
def zipapp() -> Path:
    return _built(DIST / "sigwrap.pyz", "make zipapp")


def _built(path: Path, how: str) -> Path:
    assert path.exists(), f"{path} isn't there: {how}"
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "tmp").mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path / "tmp"),
        "SIGWRAP_STORE": str(tmp_path / "store"),
    }


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    def run(*line: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        options.setdefault("env", environment)
        return subprocess.run(  # type: ignore[call-overload,no-any-return]
            line,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            **options,
        )

    return run


@pytest.fixture
def as_root() -> None:
    if os.getuid() != 0:
        pytest.skip("needs root")
