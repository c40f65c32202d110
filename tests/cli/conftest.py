from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.support.harness import Sigwrap

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(sigwrap: Sigwrap) -> Run:
    """Run one of sigwrap's commands in tmp_path, where the store is too; its output is text."""

    def execute(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        done = sigwrap.run(*words, env=variables)
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return execute
