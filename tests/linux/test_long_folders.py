"""Of a folder whose path is longer than the kernel tells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sigwrap.exec import asked
from sigwrap.exec.commands import HostView
from sigwrap.policy.judge.globs import Named
from sigwrap.policy.judge.match import UNTOLD_BELOW

LEVELS = 24
NAME = "d" * 200


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for _ in range(LEVELS):
        os.mkdir(NAME)
        os.chdir(NAME)
    return str(tmp_path)


@pytest.fixture(scope="module")
def ours() -> HostView:
    return HostView({}, Named([]))


def _folder(ours: HostView) -> str:
    return asked.folder_of(os.getpid(), os.getpid(), ours.view)


def test_the_start_of_its_path_is_told_and_how_far_below_it_is(deep: str, ours: HostView) -> None:
    told, untold, more = _folder(ours).partition(UNTOLD_BELOW)
    levels = (untold + more).count(UNTOLD_BELOW)
    assert told == deep + f"/{NAME}" * (LEVELS - levels)
    assert len(os.fsencode(told)) < 4096 <= len(os.fsencode(told)) + len(NAME) + 1


def test_beyond_a_number_of_levels_nothing_is_told(
    deep: str, ours: HostView, monkeypatch: pytest.MonkeyPatch
) -> None:
    del deep
    monkeypatch.setattr(asked, "_MOST_UNTOLD", 2)
    before = os.listdir("/proc/self/fd")
    assert _folder(ours) == ""
    assert os.listdir("/proc/self/fd") == before
