"""The caller's limits: as much as the kernel lets us, and given back as they were."""

from __future__ import annotations

import resource

import pytest

from sigwrap.kernel import limits
from sigwrap.kernel.limits import Limit

NO_LIMIT = resource.RLIM_INFINITY
TIGHT = Limit(resource.RLIMIT_CPU, 5, 10)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[int, int]]:
    """Whose user may raise what is hard where there is a key -1."""
    now: dict[int, tuple[int, int]] = {}

    def setrlimit(number: int, wanted: tuple[int, int]) -> None:
        _, hard = now.get(number, (0, 10))
        if wanted[1] == NO_LIMIT and hard != NO_LIMIT and -1 not in now:
            raise ValueError("not allowed to raise maximum limit")
        now[number] = wanted

    def getrlimit(number: int) -> tuple[int, int]:
        return now.get(number, (NO_LIMIT, NO_LIMIT))

    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    monkeypatch.setattr(resource, "getrlimit", getrlimit)
    return now


def test_a_soft_one_is_raised_to_the_hard_one(kernel: dict[int, tuple[int, int]]) -> None:
    limits.lift([TIGHT])
    assert kernel[resource.RLIMIT_CPU] == (10, 10)
    assert limits.not_lifted() == ["ulimit -t 10"]


def test_who_may_raise_a_hard_one_has_none(kernel: dict[int, tuple[int, int]]) -> None:
    kernel[-1] = (0, 0)
    limits.lift([TIGHT, Limit(resource.RLIMIT_NOFILE, 5, 10)])
    assert kernel[resource.RLIMIT_CPU] == (NO_LIMIT, NO_LIMIT)
    assert kernel[resource.RLIMIT_NOFILE] == (10, 10)  # every process may have so many, no more
    assert limits.not_lifted() == []
    limits.give_back([TIGHT])
    assert kernel[resource.RLIMIT_CPU] == (5, 10)


@pytest.mark.parametrize(
    ("number", "bytes_", "words"),
    [
        (resource.RLIMIT_FSIZE, 100 << 10, ["ulimit -f 100"]),
        (resource.RLIMIT_AS, 1 << 28, ["ulimit -v 262144"]),
        (resource.RLIMIT_AS, 1 << 30, []),
    ],
)
def test_what_is_named_is_what_a_supervisor_can_run_out_of(
    kernel: dict[int, tuple[int, int]], number: int, bytes_: int, words: list[str]
) -> None:
    kernel[number] = (bytes_, bytes_)
    assert limits.not_lifted() == words


def test_a_file_that_can_t_be_written_because_of_one(kernel: dict[int, tuple[int, int]]) -> None:
    assert limits.way_to_room("make room") == "make room"
    kernel[resource.RLIMIT_FSIZE] = (0, 0)
    assert limits.way_to_room("make room") == "raise the file size limit, ulimit -f 0"
