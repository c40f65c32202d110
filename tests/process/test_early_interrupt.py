"""A Ctrl+C before COMMAND begins: sigwrap ends by it at once, says nothing and leaves nothing."""

from __future__ import annotations

import importlib.util
import signal

import pytest

from tests.support.harness import IS_BINARY, Sigwrap
from tests.support.programs import needs

pytestmark = needs("strace")

# At the first look at one of these, SIGINT arrives. Modules lie inside a file of one piece.
OPENED_LAST = "/dev/null"
MODULES = () if IS_BINARY else ("sigwrap.errors", "sigwrap.errors", "sigwrap.imports")


def _file(module: str) -> str:
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    return importlib.util.cache_from_source(found.origin)


def _interrupted_at(path: str) -> list[str]:
    inject = ["-e", "trace=openat", "-e", "inject=openat:signal=SIGINT:when=1", "-P", path]
    return ["strace", "-qq", "-o", "/dev/null", *(["-f"] if IS_BINARY else []), *inject]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        *((each, ["--", "touch", "ran"]) for each in (*MODULES, OPENED_LAST)),
        (OPENED_LAST, ["--as", "forward", "--", "touch", "ran"]),
        (OPENED_LAST, ["report"]),
    ],
)
def test_it_is_the_end(sigwrap: Sigwrap, where: str, words: list[str]) -> None:
    path = where if where.startswith("/") else _file(where)
    done = sigwrap.native(*_interrupted_at(path), *sigwrap.line(*words))
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")
    assert list(sigwrap.folder.iterdir()) == []
    assert sigwrap.alive() == []


@pytest.mark.skipif(IS_BINARY, reason="the bootloader would be traced with all that it starts")
def test_one_that_the_caller_ignores_stays_ignored(sigwrap: Sigwrap) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    line = [*_interrupted_at(OPENED_LAST), *sigwrap.line("--", "echo", "ran")]
    done = sigwrap.native(*line, preexec_fn=ignore)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ran\n", b"")
