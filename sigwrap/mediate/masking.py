"""Mask secrets in arguments before they are written.

A secret is found by the text before it (the name of an option or a variable, a header, a URL with a
password) or by the shape of a well-known token. The command chooses the text, so the time is linear
in its length: every pattern starts at a literal and repeats without backtracking.
"""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.bare import re

MASK = "***"


class _Pattern:
    """A pattern that is compiled on first use: most runs need none, and all take 2 ms."""

    __slots__ = ("_compiled", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._compiled: re.Pattern[str] | None = None

    def get(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self._text)
        return self._compiled


_SECRET_WORD = (
    r"(?:token|passw(?:or)?d|passphrase|passwd|secret|api[-_]?key|access[-_]?key|private[-_]?key"
    r"|auth[-_]?key|signing[-_]?key|encryption[-_]?key|credentials?)"
)
# A text without any of these, in lower case, matches no pattern below. A search for each of them is
# several times faster than one pattern for all.
_HINTS = [
    "token",
    "passw",
    "passphrase",
    "secret",
    "key",
    "credential",
    "bearer",
    "authorization",
    "cookie",
    "://",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "npm_",
    "pypi-",
    "hf_",
    "sk-",
    "sk_live",
    "rk_live",
    "xox",
    "akia",
    "asia",
    "aiza",
    "eyj",
]
_OPTION = _Pattern(rf"(?i)--?(?:[a-z0-9]++[-_.]){{0,6}}{_SECRET_WORD}(?:[-_](?:value|string))?\Z")
_ASSIGNED = _Pattern(
    rf"(?i)({_SECRET_WORD}(?:_[a-z0-9_]{{1,20}}+)?[\"']?\s{{0,4}}[=:]\s{{0,4}})"
    r"(\"[^\"]++|'[^']++|[^\s\"'&;,]++)"
)
_HEADER = _Pattern(
    r"(?i)((?:authorization|cookie|x-[a-z]{1,16}-(?:token|key)|private-token)\s{0,4}:\s{0,4}"
    r"(?:[a-z]{1,12}\s{1,4})?)([^\"'\r\n]++)"
)
_BEARER = _Pattern(r"(?i)(\bbearer[\s=:]{1,4})([\w.~+/=-]{6,}+)")
_URL = _Pattern(r"(://[^\s/@:\"']{0,256}+:)([^\s/@\"']++)@")
_URL_TOKEN = _Pattern(r"(://)([\w.~-]{20,}+)@")
_KEY_BLOCK = _Pattern(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[^-]*+")
_KNOWN = _Pattern(
    r"(?:gh[pousr]_|github_pat_|glpat-|npm_|pypi-|hf_|sk-|sk_live_|rk_live_|xox[a-z]-)[\w-]{12,}+"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,}+|(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{4,}+\.[\w-]*+"
)

# Options whose short name says nothing: program -> (separate value, attached value).
_BY_PROGRAM: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "curl": (frozenset({"-u", "--user", "-U", "--proxy-user"}), ("-u", "--user=")),
    "sshpass": (frozenset({"-p"}), ("-p",)),
    "mysql": (frozenset(), ("-p",)),
    "mysqldump": (frozenset(), ("-p",)),
    "mysqladmin": (frozenset(), ("-p",)),
    "mariadb": (frozenset(), ("-p",)),
    "redis-cli": (frozenset({"-a"}), ()),
}


def masked(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the words with their secrets replaced by `***`."""
    known = _BY_PROGRAM.get(argv[0].rpartition("/")[2]) if argv else None
    if known is None and not _hints_at_any("\n".join(argv)):
        return tuple(argv)
    separate, attached = known or (frozenset(), ())
    result: list[str] = []
    value_follows = False
    for position, word in enumerate(argv):
        if value_follows and position:
            result.append(MASK)
            value_follows = False
            continue
        value_follows = word in separate or (
            word[:1] == "-" and _OPTION.get().match(word) is not None
        )
        prefix = next((each for each in attached if word.startswith(each) and word != each), "")
        result.append(prefix + MASK if prefix and position else masked_text(word))
    return tuple(result)


def masked_text(text: str) -> str:
    if not _hints_at_any(text):
        return text
    for pattern in (_HEADER, _ASSIGNED, _BEARER):
        text = pattern.get().sub(rf"\1{MASK}", text)
    text = _URL.get().sub(rf"\1{MASK}@", text)
    text = _URL_TOKEN.get().sub(rf"\1{MASK}@", text)
    text = _KEY_BLOCK.get().sub(rf"\1{MASK}", text)
    return _KNOWN.get().sub(MASK, text)


def _hints_at_any(text: str) -> bool:
    lowered = text.lower()
    return any(map(lowered.__contains__, _HINTS))
