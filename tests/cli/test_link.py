"""sigwrap link makes links by the names of the other roles, and replaces nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap

NAMES = ["sigwrap-forward", "sigwrap-shell", "sigwrap-stub"]


def test_each_link_takes_its_role(sigwrap: Sigwrap, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sigwrap-stub").symlink_to("/opt/sigwrap-0.0/sigwrap")
    for _again in range(2):
        done = sigwrap.run("link", str(folder), forks=False)
        assert (done.returncode, done.stderr) == (0, b"")
        assert sorted(os.listdir(folder)) == NAMES
    for name, line, status in zip(
        NAMES,
        (["--", "sh", "-c", "exit 7"], ["-c", "exit 8"], []),
        (7, 8, 126),
        strict=True,
    ):
        done = sigwrap.native(str(folder / name), *line)
        assert done.returncode == status, done.stderr


@pytest.mark.parametrize("other", ["file", "link"])
def test_a_file_that_is_not_a_link_to_sigwrap_stays(
    sigwrap: Sigwrap, tmp_path: Path, other: str
) -> None:
    path = tmp_path / "sigwrap-stub"
    path.touch() if other == "file" else path.symlink_to("/bin/true")
    done = sigwrap.run("link", str(tmp_path), forks=False)
    said = f"sigwrap: {path} exists and is not a link to sigwrap (remove it)\n"
    assert (done.returncode, done.stderr.decode()) == (125, said)
    assert not os.path.lexists(tmp_path / "sigwrap-forward")
    assert path.is_symlink() == (other == "link")


def test_without_the_directory_a_line_says_so(sigwrap: Sigwrap, tmp_path: Path) -> None:
    done = sigwrap.run("link", str(tmp_path / "none"), forks=False)
    said = f"sigwrap: can't create {tmp_path}/none/sigwrap-forward: No such file or directory"
    hint = "(name a directory that you can write)"
    assert (done.returncode, done.stderr.decode()) == (125, f"{said} {hint}\n")
