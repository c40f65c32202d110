"""A file is written completely or not at all, and what stood in the way is told as what it is."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.cli.policy.shared import write_new
from sigwrap.cli.whole_file import write_lines
from sigwrap.errors import UsageError


def test_a_new_file_is_there_as_a_whole(tmp_path: Path) -> None:
    write_new(str(tmp_path / "x.yaml"), "a: 1\nb: é\n")
    assert (tmp_path / "x.yaml").read_text() == "a: 1\nb: é\n"
    assert os.listdir(tmp_path) == ["x.yaml"]
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "x.yaml").stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("there", ["file", "link", "folder"])
def test_nothing_is_overwritten(tmp_path: Path, there: str) -> None:
    path = tmp_path / "x.yaml"
    match there:
        case "file":
            path.write_text("mine")
        case "link":
            path.symlink_to("nowhere")
        case _:
            path.mkdir()
    with pytest.raises(UsageError, match="already exists"):
        write_new(str(path), "theirs")
    assert os.listdir(tmp_path) == ["x.yaml"]
    assert there != "file" or path.read_text() == "mine"


def test_nor_is_what_comes_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"

    def lines() -> Iterator[str]:
        path.write_text("mine")
        yield "theirs"

    with pytest.raises(UsageError, match="already exists"):
        write_lines(str(path), lines(), only_new=True)
    assert (os.listdir(tmp_path), path.read_text()) == (["x.yaml"], "mine")


def test_a_file_system_without_links_has_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(_source: str, _target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    write_new(str(tmp_path / "x.yaml"), "a: 1\n")
    assert (tmp_path / "x.yaml").read_text() == "a: 1\n"
    assert os.listdir(tmp_path) == ["x.yaml"]


def test_on_a_full_disk_nothing_is_left(tmp_path: Path) -> None:
    """A limit on the size of files stands in for it: what is written fails just so."""
    write = "from sigwrap.cli.policy.shared import write_new; write_new('x.yaml', 'a' * 100_000)"
    done = subprocess.run(
        [sys.executable, "-B", "-c", write],  # half a module would be left
        cwd=tmp_path,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        preexec_fn=_only_small_files,
    )
    assert "UsageError: can't write x.yaml: File too large" in done.stderr
    assert os.listdir(tmp_path) == []


def _only_small_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def test_what_could_not_be_read_is_not_said_to_be_the_file_s_fault(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "first"
        raise OSError(errno.EIO, "Input/output error", "s1.db")

    with pytest.raises(OSError, match=r"Input/output error: 's1\.db'"):
        write_lines(str(tmp_path / "x"), lines())
    assert os.listdir(tmp_path) == []


def test_a_name_that_no_file_can_have_is_said_to_be_none() -> None:
    with pytest.raises(UsageError, match="not a valid file name"):
        write_new("a\0b", "")
