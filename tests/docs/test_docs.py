"""What the documents quote is what the code says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sigwrap
from sigwrap.approve import typists, wording
from sigwrap.approve.requests import ApprovalRequest, OpenRequest, Verdict

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
PACKAGES = sorted(path.parent for path in (ROOT / "sigwrap").rglob("__init__.py"))


APPROVALS = (ROOT / "docs" / "approvals.md").read_text(encoding="utf-8")


def test_the_page_shows_an_approval_request_as_the_terminal_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ((once, always),) = re.findall(r'"y (\w{4})" \(once\), "a (\w{4})"', APPROVALS)
    monkeypatch.setattr(wording, "_code", iter([once, always]).__next__)
    monkeypatch.setattr(wording, "until", lambda *_times: "12:05:00")
    request = ApprovalRequest(
        kind="exec",
        pid=4242,
        process="sh",
        depth=1,
        what="kubectl apply -f app.yaml",
        rule="cluster",
        message="cluster changes need approval",
        key=(),
        files=("/usr/bin/kubectl",),
        folder="/home/ann/shop",
    )
    opened = OpenRequest(id="7f3a10", request=request, asked_at_s=0, deadline_s=300)
    lines = wording.lines_of(opened, wording.SessionHints("agent-default"), 0)
    answers = wording.TypedAnswers(or_always=True)
    shown = "\n".join([*lines, f"  {answers.shown.rstrip()}"])
    assert f"```text\n{shown}\n```" in APPROVALS
    taken = {f"y {once}": Verdict.ONCE, f"a {always}": Verdict.ALWAYS, "n": Verdict.NO}
    assert {line: answers.verdict(f"{line}\n".encode()) for line in taken} == taken
    assert all(f"| `{line}`" in APPROVALS for line in taken)


def test_the_page_names_terminals_that_sigwrap_does_not_ask_on() -> None:
    (line,) = re.findall(
        r"^sigwrap does not ask on a terminal that .*?: (.*?)\.$", APPROVALS, re.MULTILINE
    )
    names = re.findall(r"`(\w+)`", line)
    assert "emacs" in names
    assert set(names) <= {*typists._TYPISTS, *typists._RECORDERS}
    (line,) = re.findall(r"^In (.*?) sigwrap asks in place if", APPROVALS, re.MULTILINE)
    names = re.findall(r"`(\w+)`", line)
    assert set(names) == {each.lower() for each in typists._MULTIPLEXERS}


def test_the_packages_version_is_the_programs() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{sigwrap.__version__}"\n' in project


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_files_that_are_named_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("https://") or (document.parent / target).exists(), target
    for name in re.findall(r"`((?:sigwrap|tests|docs|build|policies)/[\w/.-]*)`", text):
        assert (ROOT / name).exists(), name


def test_every_make_target_that_a_document_names_exists_and_each_is_in_its_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    pages = (path.read_text(encoding="utf-8") for path in DOCUMENTS if path.parent == ROOT)
    text = "".join(pages)
    assert set(re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE)) <= targets
    for target in targets - {"help"}:
        assert f"'make {target} " in makefile, target


def test_the_example_of_agent_signals_prints_what_the_document_says() -> None:
    text = (ROOT / "docs" / "signals.md").read_text(encoding="utf-8")
    ((program, output),) = re.findall(
        r"^```python\n(.*?)^```\n\nIt prints:\n\n```\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )
    line = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(line, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == (output, "", 0)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_packages_docstring_has_a_line_for_each_of_its_modules_and_no_other(
    package: Path,
) -> None:
    modules = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    modules |= {path.parent.name for path in package.glob("*/__init__.py")}
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    named = re.findall(r"^(\w+) {2,}\S", docstring, re.MULTILINE)
    assert sorted(named) == sorted(modules)
