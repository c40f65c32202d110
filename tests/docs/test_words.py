"""What users read has none of the words that have to be translated first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A pattern, and what to write instead.
BANNED = {
    r"\b(?:nobody|somebody|someone|no one|everybody|anybody)\b": "name the process or the user",
    r"\b(?:whoever|whom)\b": "name the process or the user",
    r"(?:^|[.;:!)] )[Ww]ho [a-z]+ [^?]*$": "a sentence needs a subject",
    r"\b(?:say|says|said|saying) (?:yes|no)\b(?! \w)|\ba (?:yes|no)\b(?![- ]\w)": "approve, deny",
    r"\b(?:is|are|was|were|be) told\b": "who tells it, and what does it read?",
    r"\blest\b|\bbe it\b|\bso it is with\b": "two sentences",
    r"\bwalls?\b(?! (?:time|clock))": "a sandbox rule, enforced by the kernel",
    r"\bmade fit\b|\bthe logs lie\b|\ba record and no\b": "the field's usual words",
    r"\bthose (?:inside|outside)\b|\boutside of\b": "processes in the session, outside the session",
    r"\bCOMMAND(?:'s\b| (?:is|was|ends|ended|died|itself|has|had|can|may|runs)\b)": "the command",
    r"\b(?:a|the|its|each|that) questions?\b": "an approval request",
}

# Text that has to have such a word: (file, a piece of the text) and why.
ARGUED = {
    ("", "builtin:everybody"): "a rule's name, which is in logs",
    ("judge/tools.py", "kill-whom="): "an option of another program",
}

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
OTHER_TEXTS = [
    *ROOT.glob("policies/**/*.yaml"),
    *ROOT.glob("demo/*"),
    *ROOT.glob("ci/*"),
    ROOT / "action.yml",
    *ROOT.glob("sigwrap/**/*.html"),
    *ROOT.glob("sigwrap/**/*.js"),
]
MODULES = sorted(ROOT.glob("sigwrap/**/*.py"))
_HAS_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def in_code(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the string literals of a module. Of docstrings, users see those of commands alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unseen = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, _HAS_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            name = node.name if isinstance(node, ast.FunctionDef) else "_"
            if "cli" not in path.relative_to(ROOT).parts or name.startswith("_"):
                unseen |= {id(each.value) for each in node.body[:1] if isinstance(each, ast.Expr)}
        if isinstance(node, ast.JoinedStr):
            pieces = (each for each in node.values if isinstance(each, ast.Constant))
            yield node.lineno, "…".join(str(each.value) for each in pieces)
            unseen |= {id(each) for each in node.values}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if id(node) not in unseen and " " in text:
                yield node.lineno, text


def in_text(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    comment = {".js": "//", ".sh": "# "}.get(path.suffix, "\0")
    for number, line in enumerate(text.splitlines(), 1):
        yield number, line.split(comment)[0]


def found_in(lines: Iterator[tuple[int, str]], path: Path) -> list[str]:
    name = str(path.relative_to(ROOT))
    return [
        f"{name}:{number}: {found[0].strip()!r}: {instead}"
        for number, line in lines
        for pattern, instead in BANNED.items()
        if (found := re.search(pattern, line))
        and not any(place in name and piece in line for place, piece in ARGUED)
    ]


@pytest.mark.parametrize("path", [*PAGES, *OTHER_TEXTS], ids=lambda path: path.name)
def test_a_text_has_none_of_these_words(path: Path) -> None:
    assert found_in(in_text(path), path) == []


def test_a_message_has_none_of_these_words() -> None:
    assert [each for path in MODULES for each in found_in(in_code(path), path)] == []


@pytest.mark.parametrize("pattern", BANNED)
def test_the_patterns_find_what_they_are_for(pattern: str) -> None:
    """And a text that has none of it is found by none."""
    samples = (
        "nobody is here",
        "it waits for whoever has it",
        "Who is traced stands still",
        "it needs a yes",
        "the caller is told why",
        "lest it ends",
        "held by a wall of the kernel",
        "made fit for a terminal",
        "those inside see it",
        "COMMAND ended",
        "the question comes again",
    )
    assert any(re.search(pattern, each) for each in samples)
    plain = "Who ended it? The supervisor killed the process tree within the wall time."
    assert not re.search(pattern, plain)


def test_what_is_argued_for_is_there() -> None:
    texts = {str(each.relative_to(ROOT)): each.read_text("utf-8") for each in MODULES + PAGES}
    for place, piece in ARGUED:
        assert any(place in name and piece in text for name, text in texts.items())


def test_the_pages_stay_short() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 110 and len(readme.split()) <= 900
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 120
    docs = (path.read_text(encoding="utf-8") for path in ROOT.glob("docs/*.md"))
    assert sum(len(text.split()) for text in docs) <= 34_000
