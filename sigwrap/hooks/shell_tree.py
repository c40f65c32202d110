"""A shell line's syntax tree, and whether it can be relied on.

The parser is tree-sitter with its grammar of bash. It is made for editors: it skips what it cannot
parse, and sometimes parses a line differently than bash. So sigwrap relies on a tree only if the
leaves cover the whole line except blanks, and no leaf contains an unquoted character that would end
it in bash.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise

from sigwrap.bare import re
from sigwrap.errors import SigwrapError
from sigwrap.hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_BYTES = 256 * 1024
MAX_DEPTH = 120
MAX_NODES = 40_000

RESERVED = frozenset(
    "if then else elif fi do done case esac while until for select function { } ! [[ ]] in".split()
)
SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})

_BLANK = b" \t\n"
_ENDS_A_WORD = frozenset(b" \t\n;&|<>()\"'`$")
_ENDS_A_NAME = frozenset(b" \t\n;&|<>()\"'`")
_ON_ONE_LINE = frozenset({"command", "file_redirect", "redirected_statement"})
_OF_WORDS = _ON_ONE_LINE | {"heredoc_redirect", "herestring_redirect", "declaration_command"}
_ESCAPED_IN_BACKQUOTES = re.compile(rb"^`[^\\]*(\\[^`$\\\"][^\\]*)*\\[`$\\\"]")
_SAFELY_QUOTED = re.compile(rb"'[^'\"`}$]*'")  # by whichever reading
_QUOTES = frozenset(b"'\"`")
_DESCRIPTOR = re.compile(rb"(^|\s)(\{\w+\}|\d+)$")
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_ESCAPED_OR_QUOTED = re.compile(rb"\\.|'[^']*'", re.DOTALL)
_PLAIN = rb"""[^'"\\$`;&|<>() \t\n]+"""
_DELIMITER = re.compile(rb"""%b|'[^']*'|"[^"\\$`]*"|\\%b""" % (_PLAIN, _PLAIN))
_LINE_END = re.compile(rb"(?<!\\)(?:\\\\)*\n")
_CONTINUED = re.compile(rb"(?<!\\)(?:\\\\)*(\\\n)")
_ANSI = re.compile(rb"\$'([^\\']|\\.)*'", re.DOTALL)
_STARTS_AN_EXPANSION = re.compile(rb"`|\$[({\[]|[<>]\(")
_QUOTED = frozenset({"string", "heredoc_body"})
_TEXT = frozenset({"string_content", "heredoc_content"})
_LITERAL = _TEXT | {"comment", "raw_string", "ansi_c_string"}  # or looked at with what is around
_NO_PARSER = "shell lines cannot be judged, because tree-sitter is not installed"
_GET_ONE = "install tree-sitter and tree-sitter-bash, or use the binary release"


class NoParser(SigwrapError):
    """There is no parser, so the hook denies the line."""


class Unparsable(Exception):
    """The text cannot be parsed at all; says why."""


def _grammar() -> Any:
    """Load the grammar alone: its package imports importlib.resources, which takes 10 ms."""
    from importlib.util import module_from_spec

    folders = [f"{each}/tree_sitter_bash" for each in sys.path]
    for finder in sys.meta_path:
        found = finder.find_spec("tree_sitter_bash._binding", folders)
        if found is not None and found.loader is not None:
            module = module_from_spec(found)
            found.loader.exec_module(module)
            return module
    raise ImportError("tree_sitter_bash")


def parsed(text: bytes) -> Node:
    if len(text) > MAX_BYTES:
        raise Unparsable(f"it is longer than {MAX_BYTES // 1024} KiB")
    if b"\0" in text:
        raise Unparsable("it contains a NUL character")
    if b"\r" in text:
        raise Unparsable("it contains a carriage return")
    try:
        from tree_sitter import Language, Parser

        grammar = _grammar()
    except ImportError as missing:
        raise NoParser(_NO_PARSER, _GET_ONE) from missing
    return Parser(Language(grammar.language())).parse(text).root_node


def doubt(root: Node, text: bytes) -> str:
    """Return why the tree is not reliable; empty if it is."""
    if text[root.start_byte : root.end_byte].strip(_BLANK) != text.strip(_BLANK):
        return "it cannot be parsed completely"
    for count, (node, depth) in enumerate(all_nodes(root)):
        if depth > MAX_DEPTH:
            raise Unparsable("it is nested too deeply")
        if count > MAX_NODES:
            raise Unparsable("it has too many parts")
        if node.is_error or node.is_missing:
            return f"{_shown(node, text)!r} cannot be parsed"
        why = _doubt_of(node, text)
        if why:
            return why
    return _doubt_of_continued_lines(root, text)


def all_nodes(root: Node) -> Iterator[tuple[Node, int]]:
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend((child, depth + 1) for child in reversed(node.children))


def _doubt_of(node: Node, text: bytes) -> str:
    if node.type in _QUOTED:
        is_literal = node.type == "heredoc_body" and _is_quoted_heredoc(node, text)
        if not is_literal and any(map(_is_expanded, literal_runs(node, text))):
            return "it is not clear what is in a quoted string"
        return ""
    if node.type == "command_substitution" and _ESCAPED_IN_BACKQUOTES.search(
        text[node.start_byte : node.end_byte]
    ):
        return "it is not clear what is in backquotes"
    if node.children:
        if _has_words_that_touch(node) or _has_descriptor_as_word(node, text):
            return "it is not clear where a word ends"
        if node.type == "heredoc_redirect" and not _ends_as_told(node, text):
            return "it is not clear where a here-document ends"
        for gap in _gaps(node, text):
            if b"\n" in gap and node.type == "variable_assignment":
                return "it is not clear where a word ends"
            joined = gap.replace(b"\\\n", b"")
            if joined != gap and not joined:
                return "it is not clear whether a line end separates two words"
            if b"\n" in joined and node.type in _ON_ONE_LINE:
                return "it is not clear where a command ends"
            if joined.strip(_BLANK) and not (is_lost_word(gap) and _has_heredoc(node)):
                return f"{gap.decode(errors='replace')!r} cannot be parsed"
        return ""
    own = text[node.start_byte : node.end_byte]
    if node.is_named and node.type not in _LITERAL and _has_unread_expansion(node, text):
        return "it is not clear what an expansion runs"
    if node.type == "ansi_c_string" and not _ANSI.fullmatch(own):
        return "it is not clear where a quoted string ends"
    if _is_in_an_expansion(node):
        # What it runs is a node of its own, except in backquotes. Within "…", some shells take a
        # single quote for a quote, others for a letter.
        left = unescaped(_SAFELY_QUOTED.sub(b"", own))
        is_sure = not node.is_named or _QUOTES.isdisjoint(left)
        return "" if is_sure else "it is not clear where an expansion ends"
    is_as_named = own.strip(_BLANK) == node.type.encode().strip(_BLANK)
    if not node.is_named and (own == b"``" or not is_as_named):  # of one and of the next
        return f"{_shown(node, text)!r} cannot be parsed reliably"
    match node.type:
        case "word" | "number" | "variable_name":
            stops = _ENDS_A_WORD if node.type == "word" else _ENDS_A_NAME
            if any(byte in stops for byte in unescaped(own)):
                return f"{_shown(node, text)!r} cannot be parsed reliably"
        case "heredoc_start":
            if not _DELIMITER.fullmatch(own):
                return "it is not clear where a here-document ends"
        case "comment":
            before = text[node.start_byte - 1 : node.start_byte]
            if (before and before not in b" \t\n;&|()") or b"\n" in own:
                return "it is not clear where a comment begins"
        case "raw_string":
            if own.count(b"'") != 2:
                return "it is not clear where a quoted string ends"
    return ""


def _doubt_of_continued_lines(root: Node, text: bytes) -> str:
    """Return why a continued line is ambiguous; empty if none is.

    A shell joins lines before it splits words, the grammar after. A blank on either side makes both
    give the same words.
    """
    for found in _CONTINUED.finditer(text):
        at, behind = found.span(1)
        node = root.descendant_for_byte_range(at, at + 1)
        if node is None or node.type in _LITERAL - _TEXT:
            continue
        if node.type in ("string", "string_content") and text[at - 1 : at] != b"$":
            continue
        blanks, document = b" \t", _within(node, "heredoc_body")
        if document is not None:
            if _is_quoted_heredoc(document, text):
                continue
            blanks = b" "
        if text[at - 1 : at] not in blanks and text[behind : behind + 1] not in blanks:
            return "it is not clear whether a line end separates two words"
    return ""


def _within(node: Node | None, kind: str) -> Node | None:
    while node is not None and node.type != kind:
        node = node.parent
    return node


def _ends_as_told(document: Node, text: bytes) -> bool:
    """Return whether it ends at the first line that is its delimiter and nothing else."""
    parts = {child.type: child for child in document.children}
    start, end = map(parts.get, ("heredoc_start", "heredoc_end"))
    if start is None or end is None or _within(document.parent, "heredoc_redirect") is not None:
        return False
    line_end = _LINE_END.search(text, start.end_byte)
    if line_end is None:
        return False
    behind = {child.type for child in document.children if child.start_byte >= line_end.end()}
    delimiter = text[start.start_byte : start.end_byte].strip(b"\\'\"")
    until = text.find(b"\n", end.start_byte)
    lines = text[line_end.end() : until if until >= 0 else len(text)].split(b"\n")
    *before, last = (line.lstrip(b"\t" if "<<-" in parts else b"") for line in lines)
    is_as_told = last == delimiter and delimiter not in before
    return bool(delimiter) and is_as_told and behind <= {"heredoc_body", "heredoc_end"}


def unescaped(word: bytes) -> bytes:
    """Remove each backslash and what it quotes."""
    return _ESCAPED.sub(b"", word)


def is_lost_word(gap: bytes) -> bool:
    """Return whether the grammar left out a word: the second hyphen of `make -f - <<EOF`."""
    return gap.replace(b"\\\n", b"").strip(_BLANK) == b"-"


def _has_unread_expansion(leaf: Node, text: bytes) -> bool:
    """Return whether a leaf hides what it runs.

    The grammar takes a pattern for one word: `${x%$(a)}`, `[[ x =~ <(a) ]]`; and it ends one at
    `\\}`. Within "…", single quotes may protect nothing.
    """
    own = text[leaf.start_byte : leaf.end_byte]
    is_unsure = b'"' in own or _is_in_an_expansion(leaf)
    left = unescaped(own) if is_unsure else _ESCAPED_OR_QUOTED.sub(b"", own)
    is_cut_off = left.endswith(b"\\") and text[leaf.end_byte : leaf.end_byte + 1] == b"}"
    return is_cut_off or _STARTS_AN_EXPANSION.search(left) is not None


def _gaps(node: Node, text: bytes) -> Iterator[bytes]:
    """Yield the text between the children."""
    at = node.start_byte
    for child in node.children:
        yield text[at : child.start_byte]
        at = max(at, child.end_byte)
    yield text[at : node.end_byte]


def _has_words_that_touch(node: Node) -> bool:
    """Return whether words touch, or a `$` does not touch the string that it would belong to."""
    children = [child for child in node.children if not child.type.endswith("_redirect")]
    for one, other in pairwise(children):
        touches = one.end_byte == other.start_byte
        if (one.type == "$" and other.type == "string" and not touches) or (
            touches
            and node.type in _OF_WORDS
            and one.is_named
            and other.is_named
            and other.type != "heredoc_end"
        ):
            return True
    return False


def _has_descriptor_as_word(node: Node, text: bytes) -> bool:
    """`exec {fd}>x a` runs `a`, and `sh 0<x` has no operand: to the grammar, these are words."""
    return any(
        other.type.endswith("_redirect")
        and one.end_byte == other.start_byte
        and _DESCRIPTOR.search(text[one.start_byte : one.end_byte])
        for one, other in pairwise(node.children)
    )


def _has_heredoc(node: Node) -> bool:
    is_redirected = node.type == "redirected_statement"
    return is_redirected and any(child.type == "heredoc_redirect" for child in node.children)


def _is_in_an_expansion(node: Node) -> bool:
    above = node.parent
    while above is not None and above.type == "concatenation":
        above = above.parent
    return above is not None and above.type == "expansion"


def literal_runs(node: Node, text: bytes) -> Iterator[bytes]:
    """Yield the text in quotes, between the expansions in it."""
    at = node.start_byte
    for child in node.children:
        if child.is_named and child.type not in _TEXT:
            yield text[at : child.start_byte]
            at = max(at, child.end_byte)
    yield text[at : node.end_byte]


def _is_expanded(gap: bytes) -> bool:
    left = unescaped(gap)
    return b"`" in left or b"$(" in left or b"${" in left


def _is_quoted_heredoc(node: Node, text: bytes) -> bool:
    """Return whether the delimiter is quoted: then nothing is expanded."""
    above = _within(node.parent, "heredoc_redirect")
    if above is None:
        return False
    start = next((child for child in above.children if child.type == "heredoc_start"), None)
    return start is not None and any(
        each in b"\\'\"" for each in text[start.start_byte : start.end_byte]
    )


def _shown(node: Node, text: bytes) -> str:
    return text[node.start_byte : node.end_byte][:40].decode(errors="replace")
