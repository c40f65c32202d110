"""Reads the statements of a shell line in the order in which they run, and in which directories."""

from __future__ import annotations

from sigwrap.bare import re
from sigwrap.hooks.shell_commands import Commands, would_be_expanded
from sigwrap.hooks.shell_line import After, FileUse, Folders, Found, bounded
from sigwrap.hooks.shell_words import ENDS_A_WORD, RUNS_QUOTED, Unclear, WordReader
from sigwrap.hooks.starters import NOT_READ, WHICH_PROGRAM
from sigwrap.hooks.words import NOT_KNOWN, Word
from sigwrap.hooks.wrapped import assignments_of
from sigwrap.policy.judge.match import UNTOLD

_MOST_READINGS = 20
_NOTHING: frozenset[str] = frozenset()
_OF_ZSH = "zsh reads it in another way than bash"
_ENDS = r"(?=[ \t\n;&|<>()]|\\\n|$)"
_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|do|done|case|esac|while|until|for|select|function|coproc"
    rf"|\{{|\}}|\[\[){_ENDS}"
)
_BEFORE_A_PIPELINE = re.compile(
    rf"!{_ENDS}|time{_ENDS}(?:[ \t]+(?:-p|--)(?=[ \t]))*(?![ \t]*-)"  # else it is a program
)
_OPERATOR = re.compile(r"\|\||&&|;;&|;;|;&|\|&|\||;|&|[()\n]")
_REDIRECT = re.compile(r"(\d+|\{\w+\})?(<<<|<<-|<<|<&|<>|<(?!\()|>&|>>|>\||>(?!\())|&>>|&>")
_CLOSES_AND_MORE = re.compile(r"-[^ \t\n;&|<>()]")  # two words to bash
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[")
_PARENTHESES = re.compile(r"[ \t]*\([ \t]*\)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_IN = re.compile(r"in(?=[ \t\n;])")
_IN_A_TEST = re.compile(r"&&|\|\|?|[()]|[<>](?!\()")
_SPACE = re.compile(r"[ \t\n]*")
_END_OF_A_TEST = re.compile(rf"\]\]{_ENDS}")
_BRANCHES = {
    "{": frozenset({"}"}),
    "if": frozenset({"then", "elif", "else", "fi"}),
    "while": frozenset({"do", "done"}),
    "until": frozenset({"do", "done"}),
}
_LAST = frozenset({"}", "fi", "done"})
_ENDS_A_CASE = frozenset({";;", ";&", ";;&", "esac"})
_SEPARATORS = re.compile(
    r"[;&|\n(){}`]|[$<>]\(|(?<![\w-])(?:if|then|elif|else|do|while|until|time|!)(?![\w-])"
)


class StatementReader(WordReader):
    def __init__(
        self, out: Found, text: str, folders: Folders, folder: str, commands: Commands
    ) -> None:
        super().__init__(out, text, folders, folder)
        self._commands = commands
        self._statement = 0  # where the last one begins
        self._readings = 0  # of loops once more
        self._within_brackets = 0

    def _within(self, text: str, folders: Folders) -> StatementReader:
        return StatementReader(self._out, text, folders, self._folder, self._commands)

    def read(self) -> Folders:
        """Read all; return the directories in which the shell may be then."""
        deep, folders = self._out.deep, self._folders
        try:
            after = self._list(folders, frozenset())
            if self._at < len(self._text) or self._documents:
                raise Unclear(f"{self._text[self._at :][:40]!r} cannot be parsed")
        except Unclear as failure:
            self._out.not_known(self._text, str(failure))
            self._out.deep = deep
            self._read_roughly()
            after = ("",)
        code = [*self._text]
        for start, end in self._literal:
            code[start:end] = "\0" * (end - start)
        self._out.code.append("".join(code))
        return after

    def _read_roughly(self) -> None:
        """Read what looks like commands from where the reading ended, only to deny them."""
        for piece in _SEPARATORS.split(self._text[self._statement :]):
            inner = self._within(piece, ("",))
            try:
                inner._simple(("",))
            except Unclear:
                words = (each.strip("'\"\\") for each in piece.split())
                told = tuple(Word(UNTOLD if "$" in each else each) for each in words if each)
                self._commands.run(piece, told, ("",))

    # Lists

    def _list(self, folders: Folders, ends: frozenset[str]) -> Folders:
        """Read statements up to a word or an operator that ends them."""
        self._go_deeper()
        while not self._is_at(ends):
            folders = self._and_or(folders).either
            self._skip()
            operator = self._next()
            if operator == "\n":
                self._end_line()
            elif operator in (";", "&"):
                self._at += 1
                if operator == "&" and self._char() in ("!", "|"):
                    raise Unclear(_OF_ZSH)
            elif self._char() and operator not in ends:
                raise self._unparsable()
        self._out.deep -= 1
        return folders

    def _next(self) -> str:
        """Return the reserved word or the operator that is next, if there is one."""
        found = _RESERVED.match(self._text, self._at) or _OPERATOR.match(self._text, self._at)
        return found[0] if found is not None else ""

    def _skip_lines(self) -> None:
        self._skip()
        while self._char() == "\n":
            self._end_line()
            self._skip()

    def _is_at(self, ends: frozenset[str]) -> bool:
        self._skip_lines()
        return not self._char() or self._next() in ends

    def _expect(self, wanted: frozenset[str]) -> str:
        """Go on behind one of these words or operators."""
        self._skip_lines()
        found = self._next()
        if found not in wanted:
            raise self._unparsable()
        self._at += len(found)
        return found

    def _unparsable(self) -> Unclear:
        return Unclear(f"{self._text[self._at :][:40]!r} cannot be parsed here")

    def _and_or(self, folders: Folders) -> After:
        first = self._pipeline(folders)
        while True:
            self._skip()
            operator = self._next()
            if operator not in ("&&", "||"):
                return first
            self._at += 2
            self._skip_lines()
            if operator == "&&":
                second = self._pipeline(first.well)
                first = After(second.well, bounded((*first.failed, *second.failed)))
            else:
                second = self._pipeline(first.failed)
                first = After(bounded((*first.well, *second.well)), second.failed)

    def _pipeline(self, folders: Folders) -> After:
        is_negated = False
        self._skip()
        while word := self._take(_BEFORE_A_PIPELINE):
            is_negated ^= word == "!"
            self._skip()
            if word != "!" and self._char() == "-":
                raise Unclear("it is not clear whether time is a program")
        after, last = self._command(folders), Folders()
        self._skip()
        while self._next() in ("|", "|&"):
            self._at += len(self._next())
            self._skip_lines()
            last = self._command(folders).either
            self._skip()
        if last:  # zsh runs the last part itself
            after = After(bounded((*folders, *last)), bounded((*folders, *last)))
        return After(after.failed, after.well) if is_negated else after

    # Commands

    def _command(self, folders: Folders) -> After:
        self._skip()
        self._folders = folders
        if not self._within_brackets:
            self._statement = self._at
        word = self._next()
        if word == "(" or (word and word[0] not in ";&|)\n"):
            after = bounded((*folders, *self._compound(word, folders)))
            self._folders = folders
            while self._redirect():
                pass
            return After(after, after)
        return self._simple(folders)

    def _compound(self, word: str, folders: Folders) -> Folders:
        """Return the directories where it leaves the shell."""
        start = self._at
        self._at += len(word)
        if word == "(":
            if self._char() == "(":
                self._at += 1
                self._arithmetic()
            else:
                self._substituted()
            return folders
        if word in ("while", "until"):
            return self._loop(word, folders)
        if word in _BRANCHES:
            return self._branches(word, folders)
        if word in ("for", "select"):
            return self._for(folders)
        if word == "case":
            return self._case(folders)
        if word == "[[":
            self._test(start)
            return folders
        if word == "function":
            self._skip()
            self._word()
            self._take(_PARENTHESES)
            return self._function(start, folders)
        if word == "coproc":
            self._out.not_known(self._text[start:], NOT_READ)
            return self._command(folders).either
        self._at = start
        raise self._unparsable()

    def _branches(self, word: str, folders: Folders) -> Folders:
        between, found = _BRANCHES[word], ""
        while found not in _LAST:
            folders = bounded((*folders, *self._list(folders, between)))
            found = self._expect(between)
        return folders

    def _loop(self, word: str, folders: Folders) -> Folders:
        """Read it once more in the directories where it leaves the shell."""
        start, documents = self._at, [*self._documents]
        after = self._branches(word, folders)
        if {*after} == {*folders}:
            return after
        self._readings += 1
        if self._readings > _MOST_READINGS:
            raise Unclear("it has too many loops that change the directory")
        self._at, self._documents = start, documents
        return self._branches(word, bounded((*after, "")))

    def _for(self, folders: Folders) -> Folders:
        self._skip()
        if self._text.startswith("((", self._at):
            self._at += 2
            self._arithmetic()
        else:
            self._for_words()
        self._skip()
        if self._char() == ";":
            self._at += 1
        self._expect(frozenset({"do"}))
        return self._loop("while", folders)

    def _for_words(self) -> None:
        name, was_unsure = self._take(_NAME), set(self._out.unsure)
        if not name:
            raise self._unparsable()
        self.set_variable(f"for {name}", name, NOT_KNOWN)
        self._skip_lines()
        values = []
        if self._take(_IN):
            self._skip()
            while self._is_at_a_word():
                values.append(self._word())
                self._skip()
        if values and not any(UNTOLD in value.text for value in values):
            self._out.unsure -= {name} - was_unsure

    def _case(self, folders: Folders) -> Folders:
        self._skip()
        self._word()
        self._skip_lines()
        if not self._take(_IN):
            raise self._unparsable()
        while not self._is_at(frozenset({"esac"})):
            self._at += self._char() == "("
            self._skip()
            self._word()
            self._skip()
            if self._expect(frozenset({"|", ")"})) == "|":
                continue
            folders = bounded((*folders, *self._list(folders, _ENDS_A_CASE)))
            if self._next() != "esac":
                self._expect(_ENDS_A_CASE)
        self._expect(frozenset({"esac"}))
        return folders

    def _test(self, start: int) -> None:
        """Read `[[ … ]]`, which evaluates an index once more."""
        self._skip_in_a_test()
        while not self._take(_END_OF_A_TEST):
            if not self._take(_IN_A_TEST):
                if not self._is_at_a_word() or self._char() in "<>":
                    raise self._unparsable()
                if would_be_expanded(self._word().text):
                    self._out.not_known(self._text[start : self._at], RUNS_QUOTED)
            self._skip_in_a_test()

    def _skip_in_a_test(self) -> None:
        self._take(_SPACE)
        if self._char() == "#" or self._documents or self._text.startswith("\\\n", self._at):
            raise self._unparsable()  # `#` may begin a comment, or a regular expression

    def _function(self, start: int, folders: Folders) -> Folders:
        self._out.not_known(self._text[start : self._at], "it defines a function")
        self._skip_lines()
        self._go_deeper()
        after = self._command(bounded((*folders, ""))).either
        self._out.deep -= 1
        return after

    def _substituted(self) -> None:
        folders, documents = self._folders, self._documents
        self._documents = []
        self._within_brackets += 1
        self._list(folders, frozenset({")"}))
        self._expect(frozenset({")"}))
        if self._documents:
            raise Unclear("it is not clear where a here-document ends")
        self._within_brackets -= 1
        self._folders, self._documents = folders, documents

    # Simple commands

    def _simple(self, folders: Folders) -> After:
        start = end = self._at
        words: list[Word] = []
        while True:
            self._skip()
            if self._redirect():
                continue
            if words or not self._assignment():
                if not self._is_at_a_word():
                    break
                words.append(self._plain_word(is_first=not words))
                if self._char() == "(" and words[1:] and _ASSIGNED.fullmatch(words[-1].text):
                    words[-1] = Word(words[-1].text + self._array().text, splits=True)
            end = self._at
        if len(words) == 1 and self._take(_PARENTHESES):
            after = self._function(start, folders)
            return After(after, after)
        if self._at == start:
            raise self._unparsable()
        return self._commands.run(self._text[start:end], tuple(words), folders)

    def _plain_word(self, *, is_first: bool) -> Word:
        start = self._at
        word = self._word()
        own = self._text[start : self._at]
        if (own == "}" and not is_first) or (
            own.isdecimal() and self._text[self._at :][:2] == "&>"
        ):
            raise Unclear(_OF_ZSH)
        return word

    def _is_at_a_word(self) -> bool:
        is_process = self._text.startswith(("<(", ">("), self._at)
        return is_process or (self._char() != "" and self._char() not in ENDS_A_WORD)

    def _assignment(self) -> bool:
        start = self._at
        found = _ASSIGNED.match(self._text, start)
        if found is None:
            return _SUBSCRIPT.match(self._text, start) is not None and self._element()
        self._at = found.end()
        value = self._array() if self._char() == "(" else self._word()
        text = self._text[start : self._at]
        self.set_variable(text, found[1], NOT_KNOWN if found[2] else value)
        if would_be_expanded(value.text):
            self._out.not_known(text, f"{RUNS_QUOTED} later")
        return True

    def _element(self) -> bool:
        """Read `name[index]=value`."""
        start = self._at
        whole = "".join(part.text for part in self._parts())
        text = self._text[start : self._at]
        if not assignments_of([Word(whole)]):
            raise Unclear(WHICH_PROGRAM)
        self.set_variable(text, whole.partition("[")[0], NOT_KNOWN)
        if would_be_expanded(whole):
            self._out.not_known(text, RUNS_QUOTED)
        return True

    def set_variable(self, text: str, name: str, value: Word) -> None:
        self._commands.set_variable(text, name, value)

    def _array(self) -> Word:
        start = self._at
        self._at += 1
        self._skip_lines()
        while self._char() != ")":
            if not self._is_at_a_word():
                raise self._unparsable()
            if would_be_expanded(self._word().text):
                self._out.not_known(self._text[start : self._at], RUNS_QUOTED)
            self._skip_lines()
        self._at += 1
        if self._char() and self._char() not in ENDS_A_WORD:  # a `#` here is no comment
            raise self._unparsable()
        return NOT_KNOWN

    def _redirect(self) -> bool:
        self._skip()
        start = self._at
        found = _REDIRECT.match(self._text, start)
        if found is None:
            return False
        self._at = found.end()
        operator = found[2] or found[0]
        if operator in ("<<", "<<-"):
            self._expect_document(operator)
        else:
            self._skip()
            if not self._is_at_a_word():
                raise self._unparsable()
            if self._char() == "!":
                raise Unclear(_OF_ZSH)
            if operator in ("<&", ">&") and _CLOSES_AND_MORE.match(self._text, self._at):
                raise Unclear("it is not clear where a word ends")
            is_process = self._char() in "<>"
            word = self._word()
            text = self._text[start : self._at]
            if operator != "<<<" and not is_process:
                self._opened(operator, word, text)
        if found[1] and found[1].startswith("{"):
            self._out.not_known(self._text[start : self._at], "it is not clear where a word ends")
        return True

    def _opened(self, operator: str, word: Word, text: str) -> None:
        is_descriptor = operator.endswith("&") and (
            word.text.rstrip("-").isdigit() or word.text == "-"
        )
        if operator == ">&" and not {"(", "`"}.isdisjoint(word.text):
            self._out.not_known(text, RUNS_QUOTED)
        if word.text.startswith(("/dev/tcp/", "/dev/udp/")):
            self._out.not_known(text, "the shell itself opens a connection")
        elif not is_descriptor and not self._out.is_possible:
            self._out.files.append(FileUse(operator != "<", word, text, self._folders))
