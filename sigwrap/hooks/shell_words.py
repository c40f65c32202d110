"""Reads the words of a shell line: quotes, expansions, here-documents.

What shells could read in different ways is Unclear, and so is everything that this has no rule for:
then the hook asks.
"""

from __future__ import annotations

from collections.abc import Iterator

from sigwrap.bare import NamedTuple, re
from sigwrap.hooks.shell_line import Folders, Found
from sigwrap.hooks.words import NOT_KNOWN, Part, Word, ansi, word_of
from sigwrap.policy.judge.match import UNTOLD

ENDS_A_WORD = frozenset(" \t\n;&|<>()")
_BLANKS = re.compile(r"[ \t]*")
_PLAIN = re.compile(r"""[^ \t\n;&|<>()'"`$\\]+""")
_PLAIN_IN_QUOTES = re.compile(r'[^"\\$`]+')
_PLAIN_IN_DOCUMENT = re.compile(r"[^\\$`]+")
_PLAIN_IN_BRACES = re.compile(r"""[^'"`\\$<>}]+""")
_ANSI = re.compile(r"\$'((?:[^\\'\n]|\\[^\n])*)'")
_PARAMETER = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!_-]")
_HEAD = re.compile(r"\$\{([#!]?\w+:?=)?")
_SAFELY_QUOTED = re.compile(r"""\$?'(?:[^'"`}$\\]|\\\w)*'""")  # the same by any reading
_DELIMITER = re.compile(
    r"""(\\?[^'"\\$`;&|<>() \t\n]+|'[^'\n]*'|"[^"\\$`\n]*")(?=[ \t\n;&|<>()]|$)"""
)
_MESSAGE = re.compile(r"""\$\(cat <<(['"])(\w+)\1\n((?:.*\n)??)\2\n[ \t\n]*\)""", re.DOTALL)
_ADJACENT = re.compile(r"\w\s+\w")
_RUNS = re.compile(r"[$<>\0]\(|`|\[[^][]*[$\\]")  # what bash runs if it evaluates the text
_HOME = ("$HOME", "${HOME}")
_FOLDER = ("$PWD", "${PWD}", "$(pwd)", "`pwd`")

MAX_DEPTH = 40
RUNS_QUOTED = "the shell may run the text in its quotes"
_WHERE_IT_ENDS = "it is not clear where a quoted text ends"
_WHAT_RUNS = "it is not clear what an expansion runs"
_TWO_WORDS = "it is not clear whether a line end separates two words"
_WHERE_A_DOCUMENT_ENDS = "it is not clear where a here-document ends"


class Unclear(Exception):
    """The line is not read any further; says why."""


class _Document(NamedTuple):
    delimiter: str
    is_literal: bool
    has_tabs: bool
    folders: Folders


class WordReader:
    """Reads words, and what is within them; a subclass reads statements."""

    def __init__(self, out: Found, text: str, folders: Folders, folder: str) -> None:
        self._out, self._text, self._at = out, text, 0
        self._folders = folders  # of the statement that is being read
        self._folder = folder  # the value of $PWD
        self._documents: list[_Document] = []  # whose text is behind the next line end
        self._literal: list[tuple[int, int]] = []  # places of texts that nothing is expanded in

    def _substituted(self) -> None:
        """Read statements up to the bracket that closes them."""
        raise NotImplementedError

    def _within(self, text: str, folders: Folders) -> WordReader:
        """Return a reader of a text within this one."""
        raise NotImplementedError

    def read(self) -> Folders:
        """Read all of it."""
        raise NotImplementedError

    def set_variable(self, text: str, name: str, value: Word) -> None:
        raise NotImplementedError

    def _go_deeper(self) -> None:
        self._out.deep += 1
        if self._out.deep > MAX_DEPTH:
            raise Unclear("it is nested too deeply")

    # Between words

    def _take(self, pattern: re.Pattern[str]) -> str:
        """Go on behind what matches here, and return it."""
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _char(self, ahead: int = 0) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _skip(self) -> None:
        """Go on to the next word, or to what ends the command."""
        while True:
            self._take(_BLANKS)
            if self._text.startswith("\\\n", self._at):
                self._continue()
            elif self._char() == "#":
                end = self._text.find("\n", self._at)
                self._at = end if end >= 0 else len(self._text)
            else:
                return

    def _continue(self, blanks: str = " \t") -> None:
        """Skip a backslash and a line end: with a blank on either side, they are no part of a word
        to any shell."""
        around = self._text[max(0, self._at - 1) : self._at] + self._char(2)
        if self._at and set(blanks).isdisjoint(around):
            raise Unclear(_TWO_WORDS)
        self._at += 2

    def _end_line(self) -> None:
        self._at += 1
        documents, self._documents = self._documents, []
        for document in documents:
            self._read_document(document)

    # Words

    def _word(self) -> Word:
        parts = [*self._parts()]
        word = word_of(parts, self._out.home)
        if any(part.quoted for part in parts):
            self._note(word.text)
        return word

    def _parts(self) -> Iterator[Part]:
        while self._at < len(self._text):
            char, start = self._char(), self._at
            if self._text.startswith(("<(", ">("), start):
                self._at += 2
                self._substituted()
                yield Part(UNTOLD, quoted=True, splits=True)
            elif char in ENDS_A_WORD:
                return
            elif char == "'":
                yield Part(self._raw(), quoted=True)
            elif char == '"':
                self._at += 1
                text, splits = self._quoted()
                yield Part(text, quoted=True, splits=splits)
            elif char == "$":
                yield self._expansion()
            elif char == "`":
                yield Part(self._backquoted(), quoted=True, splits=True)
            elif char == "\\":
                if self._char(1) == "\n":
                    self._continue()
                    return
                self._at += 2
                yield Part(self._text[start + 1 : self._at], quoted=True)
            else:
                yield Part(self._take(_PLAIN), quoted=False)

    def _note(self, text: str) -> None:
        if _RUNS.search(text):
            self._out.quoted.add(text)

    def _raw(self) -> str:
        start, end = self._at, self._text.find("'", self._at + 1)
        if end < 0:
            raise Unclear(_WHERE_IT_ENDS)
        self._literal.append((start, end))
        self._at = end + 1
        return self._text[start + 1 : end]

    def _quoted(self, *, in_document: bool = False) -> tuple[str, bool]:
        """Read to the closing quote, or to the end of a here-document; return the text, and whether
        it may be several words."""
        kept, splits = "", False
        plain = _PLAIN_IN_DOCUMENT if in_document else _PLAIN_IN_QUOTES
        while self._at < len(self._text):
            char, following = self._char(), self._char(1)
            if char == '"' and not in_document:
                self._at += 1
                self._note(kept)
                return kept, splits
            if char == "\\":
                if following == "\n" and in_document:
                    self._continue(" ")
                    continue
                is_quoting = following in ("$", "`", "\\", "\n") or (
                    following == '"' and not in_document
                )
                kept += following.strip("\n") if is_quoting else char + following
                self._at += 2
            elif char == "$":
                part = self._expansion(in_quotes=True)
                kept += part.text
                splits |= part.splits
            elif char == "`":
                kept += self._backquoted()
            else:
                kept += self._take(plain)
        if not in_document:
            raise Unclear(_WHERE_IT_ENDS)
        self._note(kept)
        return kept, splits

    # Expansions

    def _expansion(self, *, in_quotes: bool = False) -> Part:
        self._go_deeper()
        part = self._expanded(in_quotes=in_quotes)
        self._out.deep -= 1
        return part

    def _expanded(self, *, in_quotes: bool) -> Part:
        start, following = self._at, self._char(1)
        text, splits = UNTOLD, not in_quotes
        parameter = _PARAMETER.match(self._text, start + 1)
        if self._text.startswith("$((", start):
            self._at += 3
            self._arithmetic()
        elif following == "(":
            self._at += 2
            self._substituted()
            if in_quotes:
                text = self._message(self._text[start : self._at])
        elif following == "{":
            splits |= self._braces()
        elif following == "[":
            raise Unclear(_WHAT_RUNS)
        elif parameter is not None:
            self._at = parameter.end()
            splits |= following == "@"
        elif following == "'" and not in_quotes:
            return Part(self._ansi(), quoted=True)
        elif following == '"' and not in_quotes:
            self._at += 2
            self._quoted()
        elif following == "\\" and self._char(2) == "\n":
            raise Unclear(_TWO_WORDS)
        else:
            self._at += 1
            is_itself = in_quotes or following in ENDS_A_WORD or following in "/.,:%'"
            text = "$" if is_itself else UNTOLD
        own = self._text[start : self._at]
        known = self._out.home if own in _HOME else self._folder if own in _FOLDER else ""
        if known and not set(known) & set(" \t\n*?["):  # unquoted, it stays one word
            return Part(known, quoted=True)
        return Part(text, quoted=True, splits=splits and text == UNTOLD)

    def _message(self, own: str) -> str:
        """Read `$(cat <<'EOF' …)`, by which agents write long texts: nothing in it is expanded."""
        found = _MESSAGE.fullmatch(own)
        if found is None or found[2] in found[3].split("\n"):
            return UNTOLD
        return found[3].rstrip("\n")

    def _ansi(self) -> str:
        found = _ANSI.match(self._text, self._at)
        if found is None:
            raise Unclear(_WHERE_IT_ENDS)
        self._literal.append(found.span())
        self._at = found.end()
        return ansi(found[1])

    def _braces(self) -> bool:
        """Read `${…}`; return whether it is several words even in quotes."""
        start = self._at
        if self._char(2) in " \t\n|(":  # newer shells run what follows
            raise Unclear(_WHAT_RUNS)
        head = self._take(_HEAD)
        if head.endswith("="):
            self.set_variable(head, head.strip("${!#:="), NOT_KNOWN)
        while (char := self._char()) != "}":
            if self._take(_SAFELY_QUOTED) or self._take(_PLAIN_IN_BRACES):
                continue
            if char == '"':
                self._at += 1
                if "}" in self._quoted()[0]:
                    raise Unclear("it is not clear where an expansion ends")
            elif char == "$" and self._char(1) not in ("'", '"'):
                self._expansion(in_quotes=True)
            elif char == "\\" and self._char(1) not in ("", "\n"):
                self._at += 2
            elif char in ("<", ">") and self._char(1) != "(":
                self._at += 1
            else:
                raise Unclear(_WHAT_RUNS)
        self._at += 1
        return "@" in self._text[start : self._at]

    def _backquoted(self) -> str:
        start, end = self._at, self._text.find("`", self._at + 1)
        if end < 0:
            raise Unclear("it is not clear what is in backquotes")
        inner = self._text[start + 1 : end]
        self._at = end + 1
        if "\\" in inner:
            self._out.not_known(inner, "it is not clear what is in backquotes")
        self._within(inner, self._folders).read()
        return self._folder or UNTOLD if inner == "pwd" else UNTOLD

    def _arithmetic(self) -> None:
        """Read to `))`."""
        depth, bare = 0, ""
        while True:
            char = self._char()
            if char in ("", "'", '"', "\\", "`"):
                raise Unclear(RUNS_QUOTED if char else _WHAT_RUNS)
            if char == "$":
                self._expansion(in_quotes=True)
                bare += "0"
                continue
            depth += (char == "(") - (char == ")")
            self._at += 1
            if depth < 0:
                if self._char() != ")" or _ADJACENT.search(bare):
                    raise Unclear(_WHAT_RUNS)
                self._at += 1
                return
            bare += char

    # Here-documents

    def _expect_document(self, operator: str) -> None:
        self._skip()
        found = _DELIMITER.match(self._text, self._at)
        written = found[0] if found is not None else ""
        is_literal = written[:1] in ("'", '"', "\\")
        delimiter = written[1 : None if written[:1] == "\\" else -1] if is_literal else written
        if not delimiter:
            raise Unclear(_WHERE_A_DOCUMENT_ENDS)
        self._at += len(written)
        document = _Document(delimiter, is_literal, operator == "<<-", self._folders)
        self._documents.append(document)

    def _read_document(self, document: _Document) -> None:
        start = self._at
        while True:
            begin, end = self._at, self._text.find("\n", self._at)
            line = self._text[begin : end if end >= 0 else len(self._text)]
            told = line.lstrip("\t" if document.has_tabs else "")
            if told == document.delimiter:
                break
            # Within `$(…)`, bash also ends it at a line that only begins as the delimiter does.
            if end < 0 or (told.startswith(document.delimiter) and ")" in told):
                raise Unclear(_WHERE_A_DOCUMENT_ENDS)
            self._at = end + 1
        self._at = begin + len(line)
        if self._char():
            self._at += 1
        text = self._text[start:begin]
        if document.is_literal:
            self._literal.append((start, begin))
            self._note(text)
            return
        if text.endswith("\\\n"):  # a shell joins the lines before it compares them
            raise Unclear(_WHERE_A_DOCUMENT_ENDS)
        self._within(text, document.folders)._quoted(in_document=True)
