"""Reads a shell line: its statements in the order in which they run, and in which directories."""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.bare import re
from sigwrap.hints import TYPE_CHECKING
from sigwrap.hooks.shell_commands import RUNS_QUOTED, Commands, would_be_expanded
from sigwrap.hooks.shell_line import (
    MAX_NESTED,
    After,
    FileUse,
    Folders,
    Found,
    Line,
    bounded,
)
from sigwrap.hooks.shell_tree import (
    SUBSTITUTIONS,
    Unparsable,
    all_nodes,
    doubt,
    is_lost_word,
    literal_runs,
    parsed,
)
from sigwrap.hooks.shells import SHELLS, script_of
from sigwrap.hooks.words import NOT_KNOWN, Known, Word, word_of
from sigwrap.hooks.wrapped import chain_of
from sigwrap.policy.judge.match import UNTOLD

if TYPE_CHECKING:
    from tree_sitter import Node

_ASSIGNMENTS = frozenset({"variable_assignment", "variable_assignments"})
_LOOPS = frozenset({"while_statement", "for_statement", "c_style_for_statement"})
_ENDS_IN_A_COMMAND = frozenset({"list", "pipeline", "negated_command"})
_IN_A_SHELL_OF_ITS_OWN = SUBSTITUTIONS | {"subshell"}
_WORDS = frozenset({"raw_string", "ansi_c_string", "word", "string", "concatenation"})
_QUOTED = frozenset({"raw_string", "ansi_c_string", "string"})
_EXPANSIONS = SUBSTITUTIONS | {"simple_expansion", "expansion", "arithmetic_expansion", "number"}
_PARTS_OF_A_HEREDOC = frozenset(
    {"heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor", "heredoc_content"}
)
_MOVES = re.compile(rb"\b(cd|pushd|popd|chdir|eval|trap)\b|PWD=|pwd\s*\(")
_SAME_FOLDER = re.compile(r"/(\./|/)+")
# Each leads to another program or directory for each process that looks.
_PROCESS = re.compile(r"(^|/)proc/(self|thread-self|\d+|\0)/")
_OF_A_PROCESS = re.compile(r"/(exe|cwd|root|fd|map_files)(/|$)")
_BELOW_A_DESCRIPTOR = re.compile(r"/dev/fd/\d+/.")
# Values that bash evaluates run what is in them: `x='a[$(b)]'; ((x))`.
_RUN_BY_EVALUATION = re.compile(r"[$<>]\(|`|\[[^][]*[$\\]")
_EVALUATES = re.compile(
    rb"\(\(|\$\[|\$\{(!|[^}]*:[^-=?+\d])|\w\[|\(\s*\[[\w$]|\[\[.*?-(eq|ne|lt|le|gt|ge|v)\b"
    rb"|(\[|\btest)\s+(!\s+)?-v\b|\b(let|unset|compgen|printf\s+-v|wait\s+-)\b"
    rb"|\b(declare|typeset|local|readonly|export)\s+-",
    re.DOTALL,
)


def read_line(text: str, *, folder: str, home: str, depth: int) -> Line:
    """`depth`: of what the line itself runs."""
    return _read([text], folder, home, depth)


def read_words(argv: Sequence[str], *, folder: str, home: str, depth: int) -> Line | None:
    """Read the lines of the shells that a command starts; None if there are none."""
    scripts = [
        script_of(name, each, (folder,)).line for name, each in chain_of(argv) if name in SHELLS
    ]
    lines = [line for line in scripts if line]
    return _read(lines, folder, home, depth + 1) if lines else None


def _read(lines: Sequence[str], folder: str, home: str, depth: int) -> Line:
    found = _Reading(home, folder)
    for line in lines:
        found.read(line, (folder,), depth, 0)
    if found.evaluates:
        for text in sorted(found.quoted):
            found.not_known(text, RUNS_QUOTED)
    return Line(
        tuple(dict.fromkeys(found.commands)),
        tuple(dict.fromkeys(found.files)),
        tuple(dict.fromkeys(found.unknown)),
        frozenset(found.variables),
        frozenset(found.unsure),
        "\n".join(lines),
        folder,
    )


class _Reading(Found):
    def read(self, line: str, folders: Folders, depth: int, nested: int) -> Folders:
        self.quoted.discard(line)
        try:
            if nested > MAX_NESTED:
                raise Unparsable("its shells are nested too deeply")
            text = line.encode("utf-8", "surrogateescape")
            root = parsed(text)
            why = doubt(root, text)
        except UnicodeEncodeError:
            self.not_known(line, "it contains a lone surrogate")
            return ("",)
        except Unparsable as failure:
            self.not_known(line, str(failure))
            return ("",)
        if why:
            self.not_known(line, why)
        return _Visitor(self, root, text, depth, nested).sequence(root, folders)


class _Visitor:
    """Visits the statements of one text."""

    def __init__(self, out: Found, root: Node, text: bytes, depth: int, nested: int) -> None:
        self._out, self._text = out, text
        self._behind: dict[int, list[Word]] = {}  # words of a command, by its node
        self._starts: dict[int, Folders] = {}  # where the last part of a list starts
        # A later statement may set it in a loop; IFS splits it.
        left = text.replace(b"$HOME", b"").replace(b"${HOME}", b"")
        if b"HOME" in left or b"IFS" in left:
            out.home = ""
        self._folder = "" if nested or _MOVES.search(text) else out.folder
        self._commands = Commands(out, depth, nested)
        self._note_values(root)
        if b"@P}" in text:
            out.not_known(self._shown(root), "the shell may run the text of a value")

    def _note_values(self, root: Node) -> None:
        """Note what is quoted, and whether the shell takes values for more than text."""
        code = bytearray(self._text)
        for node, _ in all_nodes(root):
            if node.type == "heredoc_body":
                runs = literal_runs(node, self._text)
                texts = [run.decode("utf-8", "surrogateescape") for run in runs]
            elif node.type in _QUOTED or (node.type == "word" and "\\" in self._shown(node)):
                texts = [self._word(node).text]
            else:
                continue
            if node.type not in ("string", "word") and not any(map(_is_named, node.children)):
                code[node.start_byte : node.end_byte] = bytes(node.end_byte - node.start_byte)
            self._out.quoted.update(text for text in texts if _RUN_BY_EVALUATION.search(text))
        self._out.evaluates |= _EVALUATES.search(bytes(code)) is not None

    def sequence(self, node: Node, folders: Folders) -> Folders:
        for child in filter(_is_named, node.children):
            folders = self._visit(child, folders).either
        return folders

    def _visit(self, node: Node, folders: Folders) -> After:
        same = After(folders, folders)
        kind = node.type
        if kind == "command":
            return self._command(node, folders)
        if kind == "list":
            return self._list(node, folders)
        if kind == "redirected_statement":
            return self._redirected(node, folders)
        if kind == "negated_command":
            inner = self._visit(node.children[-1], folders)
            return After(inner.failed, inner.well)
        if kind == "pipeline":
            return self._pipeline(node, folders)
        if kind in _IN_A_SHELL_OF_ITS_OWN:
            self.sequence(node, folders)
            return same
        if kind == "function_definition":
            self._out.not_known(self._shown(node), "it defines a function")
            after = self.sequence(node, bounded((*folders, "")))
            return After(after, after)
        if kind in _LOOPS:
            return self._loop(node, folders)
        if kind in _ASSIGNMENTS:
            self._assigned(node)
            self._within(node, folders)
            return same
        if kind in ("declaration_command", "unset_command", "test_command"):
            self._evaluated(node, folders)
            return same
        if kind.endswith("_redirect"):
            self._redirect(node, folders)
            return same
        if kind in _WORDS or kind in ("expansion", "heredoc_body", "comment"):
            self._within(node, folders)
            return same
        after = bounded((*folders, *self.sequence(node, folders)))
        return After(after, after)

    def _loop(self, node: Node, folders: Folders) -> After:
        if _MOVES.search(self._text[node.start_byte : node.end_byte]):
            folders = bounded((*folders, ""))
        if node.type == "for_statement":
            name, was_unsure = self._shown(node.children[1]), set(self._out.unsure)
            self._set(node.children[1], NOT_KNOWN)
            values = [*filter(_is_named, node.children[2:-1])]
            if values and not any(UNTOLD in self._word(value).text for value in values):
                self._out.unsure -= {name} - was_unsure
        after = bounded((*folders, *self.sequence(node, folders)))
        return After(after, after)

    def _within(self, node: Node, folders: Folders) -> None:
        """Visit what a word or a condition runs to get its value."""
        if node.type in SUBSTITUTIONS:
            self._visit(node, folders)
            return
        if node.type == "expansion" and any(each.type in (":=", "=") for each in node.children):
            self._set(node.children[1], NOT_KNOWN)
        for child in node.children:
            self._within(child, folders)

    def _pipeline(self, node: Node, folders: Folders) -> After:
        after, start = After(folders, folders), folders
        for at, child in enumerate(filter(_is_named, node.children)):
            if at:
                self._visit(child, start)
            else:
                after = self._visit(child, folders)
                start = self._start_of(child, folders)
        if start is folders:
            return After(folders, folders)
        return After(bounded((*after.well, *start)), bounded((*after.failed, *start)))

    def _start_of(self, node: Node, folders: Folders) -> Folders:
        """Return where the part starts that a redirection or a pipe behind it belongs to.

        In the grammar they hang from the whole list: `cd a && b > f`, `cd a && b > f | c`.
        """
        while node.type in ("pipeline", "redirected_statement"):
            node = _body(node)
        return self._starts.get(node.id, folders)

    def _list(self, node: Node, folders: Folders) -> After:
        parts = [child for child in node.children if child.type != "comment"]
        if len(parts) != 3 or parts[1].type not in ("&&", "||"):
            after = bounded((*folders, *self.sequence(node, folders)))
            self._starts[node.id] = after
            return After(after, after)
        first = self._visit(parts[0], folders)
        start = first.well if parts[1].type == "&&" else first.failed
        self._starts[node.id] = start
        second = self._visit(parts[2], start)
        if parts[1].type == "&&":
            return After(second.well, bounded((*first.failed, *second.failed)))
        return After(bounded((*first.well, *second.well)), second.failed)

    def _redirected(self, node: Node, folders: Folders) -> After:
        """Visit it: in the grammar, words of the command behind a redirection hang from it."""
        bodies = [child for child in node.children if not _is_redirect(child)]
        redirects = [*filter(_is_redirect, node.children)]
        behind: list[Word] = []
        at = node.start_byte
        for child in node.children:
            if is_lost_word(self._text[at : child.start_byte]):
                behind.append(Word("-"))
            if _is_redirect(child):
                behind += map(self._word, _words_behind(child))
            at = child.end_byte
        last = _last_command(bodies[-1]) if bodies else None
        if last is not None:
            self._behind[last.id] = behind
        after = After(folders, folders)
        for body in bodies:
            after = self._visit(body, folders)
        start = self._start_of(bodies[-1], folders) if bodies else folders
        for child in redirects:
            self._redirect(child, start)
        for statement in (each for child in redirects for each in _hanging(child)):
            taker = last or (bodies[-1] if bodies else node)
            moves = _MOVES.search(taker.text or b"") is not None
            left = self._visit(statement, bounded((*start, *after.either)) if moves else start)
            if _MOVES.search(statement.text or b""):
                after = After(bounded((*after.well, *left.either)), after.failed)
        if behind and last is None:
            if bodies and bodies[-1].type == "declaration_command":
                behind.insert(0, Word(self._shown(bodies[-1].children[0])))
            return self._commands.run(self._shown(node), tuple(behind), start)
        return after

    def _redirect(self, node: Node, folders: Folders) -> None:
        if node.type == "heredoc_redirect":
            self._here_document(node, folders)
            return
        self._within(node, folders)
        if node.type != "file_redirect":
            return
        operator = _operator(node)
        words = _words(node)
        if not words or operator.endswith("-"):  # `<&-` has none of its own
            return
        word, text = self._word(words[0]), self._shown(node)
        is_descriptor = operator.endswith("&") and (
            word.text.rstrip("-").isdigit() or word.text == "-"
        )
        if operator == ">&" and not {"(", "`"}.isdisjoint(word.text):
            self._out.not_known(text, RUNS_QUOTED)
        if words[0].type == "process_substitution":
            return
        if word.text.startswith(("/dev/tcp/", "/dev/udp/")):
            self._out.not_known(text, "the shell itself opens a connection")
        elif not is_descriptor:
            self._out.files.append(FileUse(operator != "<", word, text, folders))

    def _here_document(self, node: Node, folders: Folders) -> None:
        hanging = _hanging(node)
        for child in node.children:
            if _is_redirect(child):
                self._redirect(child, folders)
            elif child not in hanging:
                self._within(child, folders)

    def _command(self, node: Node, folders: Folders) -> After:
        words: list[Node] = []
        for child in node.children:
            if child.type in _ASSIGNMENTS:
                self._assigned(child)
                self._within(child, folders)
            elif _is_redirect(child):
                self._redirect(child, folders)
                words += _words_behind(child)
                for statement in _hanging(child):
                    self._visit(statement, folders)
            elif child.type == "subshell":
                self._out.not_known(self._shown(node), "it is not clear what is in brackets")
                self._visit(child, folders)
            else:
                words.append(child)
                self._within(child, folders)
        told = (*map(self._word, words), *self._behind.get(node.id, ()))
        return self._commands.run(self._shown(node), told, folders)

    def _evaluated(self, node: Node, folders: Folders) -> None:
        """Visit [[ ]], declare and the like, which evaluate an index once more."""
        self._within(node, folders)
        for child in node.children:
            if child.type in _ASSIGNMENTS:
                self._assigned(child)
            elif child.is_named and self._has_quoted_expansion(child):
                self._out.not_known(self._shown(node), RUNS_QUOTED)
        words = [self._word(child).text for child in node.children[1:] if child.type in _WORDS]
        if node.type == "declaration_command":
            self._commands.declared(self._shown(node), words)
        if node.type == "unset_command":
            self._commands.unset(self._word(child).text for child in node.children[1:])

    def _assigned(self, node: Node) -> None:
        for child in node.children:
            if child.type in _ASSIGNMENTS:
                self._assigned(child)
            elif child.type in ("variable_name", "subscript"):
                is_whole = node.children[1].type == "="
                words = map(self._word, node.children[2:])
                self._set(child, next(words, Word("")) if is_whole else NOT_KNOWN)
            elif child.is_named and self._has_quoted_expansion(child):
                self._out.not_known(self._shown(node), f"{RUNS_QUOTED} later")

    def _set(self, name: Node, value: Word) -> None:
        text = self._shown(name.parent or name)
        self._commands.set_variable(text, self._shown(name), value)

    def _has_quoted_expansion(self, node: Node) -> bool:
        if node.type in SUBSTITUTIONS:
            return False
        if node.type in _WORDS:
            return would_be_expanded(self._word(node).text)
        return any(map(self._has_quoted_expansion, node.children))

    def _word(self, node: Node) -> Word:
        word = word_of(node, self._text, Known(self._out.home, self._folder))
        path = _SAME_FOLDER.sub("/", word.text)
        process = _PROCESS.search(path)
        is_of_one = process is not None and _OF_A_PROCESS.search(path, process.end() - 1)
        return Word(UNTOLD) if is_of_one or _BELOW_A_DESCRIPTOR.search(path) else word

    def _shown(self, node: Node) -> str:
        own = self._text[node.start_byte : node.end_byte]
        return own.decode("utf-8", "surrogateescape")


def _is_named(node: Node) -> bool:
    return node.is_named


def _is_redirect(node: Node) -> bool:
    return node.type.endswith("_redirect")


def _body(node: Node) -> Node:
    return next((child for child in node.children if not _is_redirect(child)), node.children[0])


def _operator(redirect: Node) -> str:
    return next((child.type for child in redirect.children if not child.is_named), "")


def _words(redirect: Node) -> list[Node]:
    return [
        child for child in redirect.children if child.is_named and child.type != "file_descriptor"
    ]


def _words_behind(redirect: Node) -> list[Node]:
    """Return the words of the command that hang from a redirection."""
    if redirect.type == "file_redirect":  # `<&-` has no file
        return _words(redirect)[0 if _operator(redirect).endswith("-") else 1 :]
    if redirect.type != "heredoc_redirect":
        return [*filter(_is_named, redirect.children)][1:]
    behind: list[Node] = []
    for child in redirect.children:
        if _is_redirect(child):
            behind += _words_behind(child)
        elif child.type in _WORDS or child.type in _EXPANSIONS:
            behind.append(child)
    return behind


def _hanging(redirect: Node) -> list[Node]:
    """Return the statements that hang from a here-document: of `cat <<E && a`, `a`."""
    statements: list[Node] = []
    for child in redirect.children if redirect.type == "heredoc_redirect" else ():
        if _is_redirect(child):
            statements += _hanging(child)
        elif child.is_named and child.type not in _PARTS_OF_A_HEREDOC | _WORDS | _EXPANSIONS:
            statements.append(child)
    return statements


def _last_command(body: Node) -> Node | None:
    """Return the command to which words behind a redirection belong: `b` in `a && b >f c`."""
    while body.type in _ENDS_IN_A_COMMAND:
        body = body.children[-1]
    return body if body.type == "command" else None
