"""Where git keeps a project's history; what leads there is in the project, so it may lie."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from sigwrap.start.policy_files import git_common_dir


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    _git(tmp_path, "init", "-q", str(path))
    _git(
        path,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
    )
    return path


def _git(folder: Path, *words: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["git", "-C", str(folder), *words], check=True, env=environment)


def test_a_repository_has_it_in_itself_and_in_its_folders(repository: Path) -> None:
    below = repository / "a" / "b"
    below.mkdir(parents=True)
    assert git_common_dir(str(repository)) == git_common_dir(str(below)) == f"{repository}/.git"


def test_a_worktree_has_it_in_the_repository(repository: Path, tmp_path: Path) -> None:
    _git(repository, "worktree", "add", "-q", str(tmp_path / "worktree"))
    assert git_common_dir(str(tmp_path / "worktree")) == f"{repository}/.git"


def test_a_submodule_has_its_own_in_the_repository(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    _git(tmp_path, "clone", "-q", str(repository), str(other))
    line = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    _git(repository, *line)
    assert git_common_dir(str(repository / "sub")) == f"{repository}/.git/modules/sub"


def test_there_may_be_none(tmp_path: Path) -> None:
    assert git_common_dir(str(tmp_path)) == ""
    (tmp_path / ".git").mkdir()  # of which git says that it is no repository
    assert git_common_dir(str(tmp_path)) == ""


@pytest.mark.parametrize(
    "text",
    ["", "gitdir: ", "gitdir: /", "other: {}", "gitdir: {}", "gitdir: \0", "\0", "gitdir: \udcff"],
)
def test_a_file_that_leads_to_what_does_not_lead_back_counts_for_nothing(
    tmp_path: Path, repository: Path, text: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    said = text.replace("{}", f"{repository}/.git")
    (project / ".git").write_text(said, encoding="utf-8", errors="surrogateescape")
    assert git_common_dir(str(project)) == ""


def test_what_lies_in_the_project_leads_to_nobody_elses_folder(
    tmp_path: Path, repository: Path
) -> None:
    """Whoever may write there makes all that a worktree has."""
    project, fake = tmp_path / "project", tmp_path / "project" / "fake"
    fake.mkdir(parents=True)
    (project / ".git").write_text(f"gitdir: {fake}\n")
    (fake / "gitdir").write_text(f"{project}/.git\n")
    (fake / "commondir").write_text(f"{repository}/.git\n")
    assert git_common_dir(str(project)) == ""


def test_a_link_to_a_repository_is_none(tmp_path: Path, repository: Path) -> None:
    """Whoever may write in the project makes it."""
    (tmp_path / "below").mkdir()
    (tmp_path / ".git").symlink_to(repository / ".git")
    assert git_common_dir(str(tmp_path)) == git_common_dir(str(tmp_path / "below")) == ""


def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert git_common_dir(str(tmp_path)) == ""
    (tmp_path / "other").mkdir()
    (tmp_path / "git").mkdir()
    os.mkfifo(tmp_path / "git" / "gitdir")
    os.mkfifo(tmp_path / "git" / "config")
    (tmp_path / "other" / ".git").write_text("gitdir: ../git\n")
    assert git_common_dir(str(tmp_path / "other")) == ""
