"""Globs mean the same for programs, paths, files, sockets and variables."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.policy.judge.globs import (
    MAX_PATTERN_CHARACTERS,
    BadPattern,
    Glob,
    check_glob,
    is_glob,
)

# A part of a glob, and the regular expression that it stands for.
PARTS = {
    **{each: re.escape(each) for each in "ab1é-!.]@^/"},
    "*": "[^/]*",
    "?": "[^/]",
    "**": ".*",
    "/**/": "/(?:.*/)?",
    "[a-c]": "[a-c]",
    "[!a]": "[^a]",
    "[]a]": r"[\]a]",
    "[^a]": r"[\^a]",
    "[a-]": "[a-]",
    "[-a]": "[-a]",
    "[\\]": r"[\\]",
    "[*]": r"\*",
}


@given(
    st.lists(st.sampled_from(sorted(PARTS)), max_size=9),
    st.text(alphabet="ab1/-@.\n\udc80é]![^*\\", max_size=10),
)
def test_a_glob_matches_what_its_regular_expression_matches(parts: list[str], text: str) -> None:
    glob = "".join(parts)
    if re.search(r"\*\*(?:/[*]{2})*/|[*]{3}", glob.replace("/**/", "")):
        return  # joined, these parts are others
    expected = re.fullmatch("".join(map(PARTS.__getitem__, parts)), text, re.DOTALL)
    assert Glob(glob).matches(text) == (expected is not None)


@pytest.mark.parametrize("glob", ["a[z-a]", "[]*", "x" * MAX_PATTERN_CHARACTERS + "*"])
def test_a_bad_glob_is_refused(glob: str) -> None:
    with pytest.raises(BadPattern):
        check_glob(glob)


@pytest.mark.parametrize("glob", ["*a" * 400 + "b", "**/a" * 250, "[!b]**" * 160])
def test_a_hostile_glob_answers_in_milliseconds(glob: str) -> None:
    started = time.process_time()
    Glob(glob).matches("a/" * 2048)
    assert time.process_time() - started < 0.25


@pytest.mark.parametrize(
    ("glob", "text", "matches"),
    [
        ("mkfs.*", "mkfs", False),
        ("/usr/*/git", "/usr/local/bin/git", False),
        ("/usr/**/git", "/usr/local/bin/git", True),
        ("/usr/**/git", "/usr/git", True),
        ("/opt/**", "/opt/a/b", True),
        ("/opt/**", "/opt", False),
        ("[!a-c]x", "bx", False),
        ("[!a-c]x", "dx", True),
        ("[]]x", "]x", True),
        ("a.c*", "abc", False),
        ("?", "é", True),
        ("?", "\udce9", True),
        ("*\n*", "a\nb", True),
        ("a$*", "a$b", True),
        ("/a/**/**/b", "/a/b", True),
        ("/a/**/**/b", "/a/x/y/b", True),
        ("a**/b", "ab", True),
        ("a**/b", "axb", False),
        ("/run/a**", "/run/ab/c", True),
        ("**", "", True),
        ("pip[0-9]*", "pip3.11", True),
        ("*a*a*a*b", "a" * 300, False),
    ],
)
def test_globs(glob: str, text: str, matches: bool) -> None:
    assert Glob(glob).matches(text) is matches


def test_a_lone_bracket_is_a_name() -> None:
    assert not is_glob("[")
    assert is_glob("[ab]") and is_glob("a*") and is_glob("?")
