"""Reads a word of a shell line: its text without quotes, as far as it is known before it runs."""

from __future__ import annotations

from collections.abc import Iterator

from sigwrap.bare import re
from sigwrap.hints import TYPE_CHECKING
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.tuples import NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

_GLOB = frozenset("*?[")
_QUOTED_IN_BRACKETS = re.compile(r"\[[^]]*\x01[^]]*\]")
_ESCAPES = dict(
    zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True),
)
_HOME = (b"$HOME", b"${HOME}")
_FOLDER = (b"$PWD", b"${PWD}", b"$(pwd)", b"`pwd`")


class Word(NamedTuple):
    text: str  # with UNTOLD for unknown parts
    pattern: str = ""  # of a glob: quoted characters are in brackets
    splits: bool = False  # an unknown part may be several words

    @property
    def known(self) -> bool:
        return UNTOLD not in self.text and not self.pattern


NOT_KNOWN = Word(UNTOLD, splits=True)


class Known(NamedTuple):
    """Values of variables; empty where they are not known, or may change in this line."""

    home: str
    folder: str


class _Part(NamedTuple):
    text: str
    quoted: bool
    splits: bool = False


def word_of(node: Node, text: bytes, known: Known) -> Word:
    parts = [*_parts(node, text, known)]
    whole = "".join(part.text for part in parts)
    bare = "".join(part.text for part in parts if not part.quoted)
    if "{" in bare and ("," in bare or ".." in bare):
        return NOT_KNOWN  # several words
    if "=~" in bare or ":~" in bare:
        return NOT_KNOWN  # a home folder
    if bare.startswith("=") and len(whole) > 1 and parts and not parts[0].quoted:
        return NOT_KNOWN  # to zsh, where a command is
    if _QUOTED_IN_BRACKETS.search("".join("\1" if part.quoted else part.text for part in parts)):
        return NOT_KNOWN
    if parts and not parts[0].quoted and parts[0].text.startswith("~"):
        return _below_home(parts, whole, known.home)
    return Word(whole, _pattern(parts), any(part.splits for part in parts))


def _below_home(parts: list[_Part], whole: str, home: str) -> Word:
    user = parts[0].text[1:].partition("/")
    is_own = not user[0] and (user[1] or len(parts) == 1)
    if not (is_own and home):
        return NOT_KNOWN
    first = _Part(parts[0].text[1:], quoted=False)
    pattern = _pattern([_Part(home, quoted=True), first, *parts[1:]])
    return Word(home + whole[1:], pattern, any(part.splits for part in parts))


def _pattern(parts: list[_Part]) -> str:
    if not any(_GLOB & set(part.text) for part in parts if not part.quoted):
        return ""
    return "".join(
        "".join(f"[{each}]" if each in _GLOB else each for each in part.text)
        if part.quoted
        else part.text
        for part in parts
    )


def _parts(node: Node, text: bytes, known: Known) -> Iterator[_Part]:
    own = text[node.start_byte : node.end_byte]
    match node.type:
        case "word" | "number" | "variable_name" | "special_variable_name":
            yield from _unquoted(_decoded(own))
        case "raw_string":
            yield _Part(_decoded(own[1:-1]), quoted=True)
        case "ansi_c_string":
            yield _Part(_ansi(_decoded(own[2:-1])), quoted=True)
        case "string":
            splits = b"@" in own  # "$@", "${all[@]}"
            yield _Part("".join(_in_quotes(node, text, known)), quoted=True, splits=splits)
        case "simple_expansion" | "expansion" | "command_substitution":
            value = _expanded(own, known)
            yield _Part(value, quoted=True, splits=value == UNTOLD)
        case "concatenation" | "command_name":
            at = node.start_byte
            for child in node.children:
                if child.start_byte > at and text[at : child.start_byte] != b"\\\n":
                    yield _Part(UNTOLD, quoted=True)
                yield from _parts(child, text, known)
                at = child.end_byte
        case _:
            yield _Part(UNTOLD, quoted=True, splits=True)


def _unquoted(word: str) -> Iterator[_Part]:
    position, bare = 0, ""
    while position < len(word):
        if word[position] != "\\":
            bare += word[position]
            position += 1
            continue
        if bare:
            yield _Part(bare, quoted=False)
            bare = ""
        quoted = word[position + 1 : position + 2]
        if quoted != "\n":
            yield _Part(quoted, quoted=True)
        position += 2
    if bare:
        yield _Part(bare, quoted=False)


def _in_quotes(node: Node, text: bytes, known: Known) -> Iterator[str]:
    at = node.start_byte + 1
    for child in node.children[1:-1]:
        if child.type == "string_content":
            continue
        yield _unescaped_in_quotes(_decoded(text[at : child.start_byte]))
        own = text[child.start_byte : child.end_byte]
        if child.type in ("simple_expansion", "expansion") or own in _FOLDER:
            yield _expanded(own, known)
        else:
            yield _here_document(child, text)
        at = child.end_byte
    yield _unescaped_in_quotes(_decoded(text[at : node.end_byte - 1]))


def _here_document(node: Node, text: bytes) -> str:
    """Read `$(cat <<'EOF' …)`, by which agents write long texts: nothing in it is expanded."""
    statements = [child for child in node.children if child.is_named]
    if node.type != "command_substitution" or len(statements) != 1:
        return UNTOLD
    parts = statements[0].children
    if [part.type for part in parts] != ["command", "heredoc_redirect"] or parts[0].text != b"cat":
        return UNTOLD
    document = {part.type: text[part.start_byte : part.end_byte] for part in parts[1].children}
    if document.keys() - {"<<", "heredoc_start", "heredoc_body", "heredoc_end"}:
        return UNTOLD
    if not set(document.get("heredoc_start", b"")) & set(b"'\""):
        return UNTOLD
    return _decoded(document.get("heredoc_body", b"")).rstrip("\n")


def _unescaped_in_quotes(text: str) -> str:
    kept, position = [], 0
    while position < len(text):
        following = text[position + 1 : position + 2]
        if text[position] == "\\" and following and following in '"\\$`\n':
            kept.append("" if following == "\n" else following)
            position += 2
            continue
        kept.append(text[position])
        position += 1
    return "".join(kept)


def _expanded(expansion: bytes, known: Known) -> str:
    """Return a value that has no blanks or globs: unquoted, it stays one word."""
    value = known.home if expansion in _HOME else known.folder if expansion in _FOLDER else ""
    return value if value and not set(value) & set(" \t\n*?[") else UNTOLD


def _ansi(text: str) -> str:
    """Read $'…'; the text is not known if it has other escapes than a letter's."""
    kept = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], UNTOLD), text)
    return UNTOLD if UNTOLD in kept else kept


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
