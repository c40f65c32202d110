"""What the documents quote is what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sigwrap
from sigwrap.linux import terminal_typists
from sigwrap.mediate.questions import Verdict
from sigwrap.run.asking import terminal_answers

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def test_the_answers_of_a_question_are_those_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    (shown, once, always) = re.findall(r"`(y (\w{4}) once, a (\w{4}) always [^`]+:)`", text)[0]
    monkeypatch.setattr(terminal_answers, "_code", iter([once, always]).__next__)
    answers = terminal_answers.Answers(or_always=True)
    assert answers.shown == f"{shown} "
    taken = {
        f"y {once}": Verdict.ONCE,
        f"yes{once}": Verdict.ONCE,
        f"a {always}": Verdict.ALWAYS,
        f"always {always}": Verdict.ALWAYS,
        "n": Verdict.NO,
        "no": Verdict.NO,
        "y": None,
        "a": None,
        f"y {always}": None,
    }
    assert {line: answers.verdict(f"{line}\n".encode()) for line in taken} == taken
    assert f"`y {once}` lets" in text and f"`a {always}` does" in text


def test_where_nobody_is_asked_is_where_somebody_could_type() -> None:
    text = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    (line,) = re.findall(
        r"^Nobody is asked on a terminal on which .*?: (.*?)\. ", text, re.MULTILINE
    )
    names = re.findall(r"`(\w+)`", line)
    assert "tmux" in names
    assert set(names) <= {*terminal_typists._TYPISTS, *terminal_typists._RECORDERS}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:sigwrap|tests|docs|build|policies)/[\w/.-]*)`", text):
        assert (ROOT / name).exists(), name


def test_every_make_target_that_a_document_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    for target in re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_make_target_is_in_its_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE):
        assert target == "help" or f"'make {target} " in makefile, target


def test_the_packages_version_is_the_programs() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{sigwrap.__version__}"\n' in project
