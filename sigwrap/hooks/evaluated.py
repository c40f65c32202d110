"""Values that a shell evaluates, and so runs: `x='a[$(b)]'; ((x))`. It does so where it takes one
for a number, an index or a name."""

from __future__ import annotations

from sigwrap.bare import re

RUNS_QUOTED = "the shell may run the text in its quotes"

_RUN = re.compile(r"[$<>]\(|`|\[[^]]*[$\\]")
_ARITHMETIC = re.compile(rb"\(\((.*?)\)\)", re.DOTALL)
_EVALUATES = re.compile(
    rb"\$\[|\$\{(!|[^}]*:[^-=?+\d])|\w\[|\(\s*\[[\w$]|\[\[.*?-(eq|ne|lt|le|gt|ge|v)\b"
    rb"|(\[|\btest)\s+(!\s+)?-v\b|\b(let|unset|compgen|printf\s+-v|wait\s+-)\b"
    rb"|\b(declare|typeset|local|readonly|export)\s+-",
    re.DOTALL,
)
_FILLS = re.compile(
    rb"\b(for|select)\s+\w|\b(read|mapfile|readarray|getopts|printf|eval|source|declare|typeset|local"
    rb"|export|readonly|trap)\b|(^|[\s;&|])\.\s"
)
_NOT_SHOWN = frozenset(b"$\0")  # a parameter, or what was in quotes
_NAME = re.compile(rb"[A-Za-z_]\w*")
_NUMBER = rb"(\d+|\$\(\([^()]*\)\))(?=[\s;&|)]|$)"


def would_be_expanded(text: str) -> bool:
    """Where the shell takes what was quoted for an index, or evaluates it once more."""
    return any(each in text for each in ("$(", "`", "<(", ">("))


def may_be_run(text: str) -> bool:
    """Where it is evaluated, or what it becomes a part of."""
    return _RUN.search(text) is not None


def evaluates_values(code: bytes) -> bool:
    """Whether a value may be evaluated that the line doesn't show to be a number."""
    if _EVALUATES.search(code):
        return True
    inner = b" ".join(_ARITHMETIC.findall(code))
    names = set(_NAME.findall(inner))
    if not _NOT_SHOWN.isdisjoint(inner) or b"_" in names or (names and _FILLS.search(code)):
        return True
    return not all(
        re.match(_NUMBER, code[found.end() :])
        for name in names
        for found in re.finditer(rb"\b%b:?[-+*/%%|&^]?=(?!=)" % name, code)
    )
