"""A simple command of a shell line: a program, or something that the shell does itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from posixpath import join, normpath

from sigwrap.bare import re
from sigwrap.hooks.shell_line import (
    MAX_COMMANDS,
    MAX_NESTED,
    After,
    Command,
    FileUse,
    Folders,
    Found,
    bounded,
)
from sigwrap.hooks.shell_words import RUNS_QUOTED
from sigwrap.hooks.shells import (
    BUILTINS,
    NOT_FOR_SH,
    OTHER_SHELLS,
    SAYS_ONLY,
    SHELLS,
    SIGNALLERS,
    is_descriptor,
    is_harmless,
    is_of_a_process,
    script_of,
)
from sigwrap.hooks.starters import NOT_READ, WHICH_COMMAND, WHICH_PROGRAM, Started, started
from sigwrap.hooks.variables import may_run
from sigwrap.hooks.words import NOT_KNOWN, Word
from sigwrap.hooks.wrapped import (
    CLEARS,
    FROM_INPUT,
    MOVES,
    chain_of,
    filled,
    has_any,
    hides_its_program,
    words_of,
)
from sigwrap.policy.judge.match import UNTOLD

_OTHER_MEANING = "it changes the meaning of later words"
_TOO_MANY = "the line has too many commands"
_WHICH_VARIABLE = "the variable that it sets is not known in advance"
_MOVES = frozenset({"cd", "pushd", "popd"})
_PREFIXES = frozenset({"command", "builtin", "exec", "noglob", "nocorrect", "-"})
_DECLARING = frozenset({"export", "declare", "typeset", "readonly", "local"})
_FILLING = frozenset({"read", "mapfile", "readarray", "getopts", "printf", "wait"})
_SHELL_WITHOUT = frozenset({"sudo", "doas", "chroot"})
# Builtins that the hook does not read, by themselves or with one of these options.
_NOT_READ = {
    **dict.fromkeys(("coproc", "fc", "enable", "bind", "complete", "compgen"), ""),
    "mapfile": "C",
    "readarray": "C",
    "jobs": "x",
    "hash": "p",
    "history": "anrw",
    "printf": "v",
}
_OF_ZSH = frozenset(
    "repeat emulate sched setopt zmodload functions autoload print float integer vared".split()
)
_OWN_JOB = re.compile(r"""%[\w+-]*|\$!|"\$!\"""")
_OF_THE_STACK = re.compile(r"[+-]\d*$")
_MOST_WORDS = 1000


class Commands:
    """Takes in the commands of one text."""

    def __init__(self, out: Found, depth: int, nested: int) -> None:
        self._out, self._depth, self._nested = out, depth, nested

    def run(self, text: str, words: tuple[Word, ...], folders: Folders) -> After:
        same = After(folders, folders)
        if not words:
            return same
        name = words[0].text
        if len(self._out.commands) >= MAX_COMMANDS:
            self._out.not_known(text, _TOO_MANY)
        elif not words[0].known or ("/" in name and is_of_a_process(name, folders)):
            self._out.not_known(text, WHICH_PROGRAM)
        elif name in _PREFIXES:
            return self._prefixed(text, words, folders)
        elif name in _MOVES:
            return After(self._moved_to(name, words[1:], folders), folders)
        elif name in _OF_ZSH:
            self._out.not_known(text, "zsh may read it differently than bash")
            self._program(text, words, folders)
        elif name in BUILTINS:
            after = self._builtin(text, name, words, folders)
            return After(after, after)
        else:
            self._program(text, words, folders)
        return same

    def _prefixed(self, text: str, words: tuple[Word, ...], folders: Folders) -> After:
        if self._out.within >= MAX_NESTED:
            self._out.not_known(text, _TOO_MANY)
            return After(folders, folders)
        self._out.within += 1
        after = self.run(text, self._behind_prefix(text, words), folders)
        self._out.within -= 1
        return after

    def _behind_prefix(self, text: str, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """Return the command behind `command`, `builtin`, `exec` and the like."""
        name = words[0].text
        options = [*takewhile(lambda word: word.text.startswith("-"), words[1:])]
        if Word("--") in options:
            options = options[: options.index(Word("--")) + 1]
        letters = "".join(word.text for word in options)
        if name == "exec" and not {"a", "c", UNTOLD}.isdisjoint(letters):
            self._out.not_known(text, "it runs under another name, or in another environment")
            takes_next = bool(options) and options[-1].text.endswith("a")
            return words[1 + len(options) + takes_next :]
        looks_only = name == "command" and not {"v", "V"}.isdisjoint(letters)
        return () if looks_only else words[1 + len(options) :]

    def _program(self, text: str, words: tuple[Word, ...], folders: Folders) -> None:
        words = filled(words)
        argv = tuple(word.text for word in words)
        chain = [*chain_of(argv)]
        names = frozenset(name for name, _ in chain)
        is_fed = any(name in FROM_INPUT for name, _ in chain[:-1])
        innermost = chain[-1][1]
        before = argv[1 : len(argv) - len(innermost)]
        if is_fed:  # `xargs env` runs what it is fed
            innermost = [*chain_of((*argv, UNTOLD))][-1][1]
        program = innermost[0]
        is_elsewhere = "/" in program and is_of_a_process(program, folders)
        if UNTOLD in program or is_elsewhere or hides_its_program(chain, before):
            self._out.not_known(text, WHICH_PROGRAM)
        elif chain[-1][0] in _SHELL_WITHOUT and _starts_a_shell(innermost):
            self._out.not_known(text, "the standard input of its shell is not known")
        if len(words) > _MOST_WORDS:
            self._out.not_known(text, "it has too many words")
        if has_any(CLEARS, chain, before):
            self._out.home = ""
        if has_any(MOVES, chain, before):
            paths = [word.rpartition("=")[2] for word in before if "/" in word]
            folders = bounded(("", *(_joined(each, path) for each in folders for path in paths)))
        self.set_by_words(text, before)
        given = (*words, NOT_KNOWN) if is_fed else words
        found = Command(given, text, folders, self._depth, self._out.is_sure)
        (self._out.possible if self._out.is_possible else self._out.commands).append(found)
        for name, each in chain:
            if name in SHELLS or name in OTHER_SHELLS:
                self._shell(text, name, each, folders, is_fed=is_fed)
            elif not self._out.is_possible:
                told = words_of(each, words)
                self._started(text, name, (*told, NOT_KNOWN) if is_fed else told, folders)
        if not names.isdisjoint(SIGNALLERS) and not _says_only(argv):
            self._out.not_known(text, "its target is not known in advance", is_signal=True)

    def _started(self, text: str, name: str, words: tuple[Word, ...], folders: Folders) -> None:
        for each in started(name, words):
            if each.unknown:
                self._out.not_known(text, each.unknown)
            elif each.is_reading and self._out.is_one_of_several:
                return  # its readings are among these
            else:
                self._start(text, each, ("",) if each.moved else folders)

    def _start(self, text: str, each: Started, folders: Folders) -> None:
        count = len(self._out.commands) + len(self._out.possible)
        if count >= MAX_COMMANDS or self._out.within >= MAX_NESTED:
            self._out.not_known(text, _TOO_MANY)
            return
        before = self._out.is_sure, self._out.is_one_of_several, self._out.is_possible
        self._out.is_possible |= each.is_possible
        self._out.within += 1
        self._out.is_sure &= each.is_sure
        self._out.is_one_of_several = bool(each.words) and not each.is_sure
        if each.line:
            if NOT_FOR_SH.search(each.line):
                self._out.not_known(text, "sh may read its line differently than bash")
            self._out.read(each.line, folders, self._depth + 1, self._nested + 1)
        elif each.words and not each.words[0].known:
            self._out.not_known(text, WHICH_PROGRAM)
        elif each.words:
            self.set_by_words(text, (word.text for word in each.words))
            self._program(text, each.words, folders)
        self._out.is_sure, self._out.is_one_of_several, self._out.is_possible = before
        self._out.within -= 1

    def set_variable(self, text: str, name: str, value: Word) -> None:
        if self._out.is_possible:
            return
        name = name.partition("[")[0]
        self._out.variables.add(name)
        if UNTOLD in value.text:
            self._out.unsure.add(name)
        if UNTOLD in name:
            self._out.not_known(text, _WHICH_VARIABLE)
        elif name in ("HOME", "IFS"):  # IFS splits `$HOME`
            self._out.home = ""
        elif may_run(name, value):
            self._out.not_known(text, NOT_READ)
            if value.text and value.known:
                self._start(text, Started(line=value.text.lstrip("|-")), ("",))
        elif " " in value.text and value.known:
            self._start(text, Started(line=value.text, is_possible=True), ("",))

    def set_by_words(self, text: str, words: Iterable[str]) -> None:
        """Take in the assignments among them, `A=1` and `A+=1`."""
        for word in words:
            name, equals, value = word.partition("=")
            if equals and not name.startswith("-"):
                told = NOT_KNOWN if name.endswith("+") else Word(value)
                self.set_variable(text, name.rstrip("+"), told)
                if would_be_expanded(word) or ("(" in word and UNTOLD in word):
                    self._out.not_known(text, RUNS_QUOTED)

    def declared(self, text: str, arguments: Sequence[str]) -> None:
        self.set_by_words(text, arguments)
        self.unset(arguments)
        if UNTOLD in arguments or _has_option(arguments, "n"):  # another name for a variable
            self._out.not_known(text, _WHICH_VARIABLE)

    def unset(self, names: Iterable[str]) -> None:
        if any(name == "HOME" or UNTOLD in name for name in names):
            self._out.home = ""

    def _shell(
        self, text: str, name: str, argv: Sequence[str], folders: Folders, *, is_fed: bool
    ) -> None:
        script = script_of(name, argv, folders)
        if is_fed or script.unknown:
            why = f"the commands for {name} are not known in advance"
            self._out.not_known(text, script.unknown or why)
        if script.line:
            self._out.read(script.line, folders, self._depth + 1, self._nested + 1)

    def _builtin(self, text: str, name: str, words: tuple[Word, ...], folders: Folders) -> Folders:
        """Return the directories in which the shell is then."""
        arguments = [word.text for word in words[1:]]
        operands = arguments[1:] if arguments[:1] == ["--"] else arguments
        first = operands[0] if operands else ""
        if name in _DECLARING:  # behind `command`; the grammar reads it otherwise
            self.declared(text, arguments)
        # To printf, only the first word is an option.
        options = arguments[:1] if name == "printf" else arguments
        if name in _FILLING and (name not in ("printf", "wait") or _has_option(options, "vp")):
            for variable in arguments:
                self.set_variable(text, variable, NOT_KNOWN)
        if name == "unset":
            self.unset(arguments)
        if name == "eval" or (name == "trap" and first not in ("", "-", "-p", "-l")):
            line = " ".join(operands) if name == "eval" else first
            return self._evaluated(text, name, line, folders)
        if _gives_other_meaning(name, arguments):
            self._out.not_known(text, _OTHER_MEANING)
        elif name in _NOT_READ and (
            _has_option(options, _NOT_READ[name]) or (arguments and not _NOT_READ[name])
        ):
            self._out.not_known(text, NOT_READ)
        elif name in (".", "source"):
            if not first or UNTOLD in first or is_descriptor(first, folders):
                self._out.not_known(text, "the commands that it reads are not known in advance")
            else:
                self._out.files.append(FileUse(False, Word(first), text, folders))
        elif name == "kill":
            if not (_says_only(arguments) or _ends_own_jobs(text, arguments)):
                self._out.not_known(text, "its target is not known in advance", is_signal=True)
        elif name != "echo" and any(map(would_be_expanded, arguments)):
            self._out.not_known(text, RUNS_QUOTED)
        return folders

    def _evaluated(self, text: str, name: str, line: str, folders: Folders) -> Folders:
        """Read what eval and trap run, but only to deny it."""
        self._out.not_known(text, WHICH_COMMAND if UNTOLD in line else f"it runs text by {name}")
        if UNTOLD not in line:
            self._out.read(line, bounded((*folders, "")), self._depth, self._nested + 1)
        return bounded((*folders, ""))

    def _moved_to(self, name: str, arguments: tuple[Word, ...], folders: Folders) -> Folders:
        options = [*takewhile(lambda word: re.fullmatch("-[A-Za-z@]+", word.text), arguments)]
        operands = arguments[len(options) :]
        operands = operands[1:] if operands[:1] == (Word("--"),) else operands
        if name == "popd" or (name == "pushd" and not operands):
            return ("",)
        target = operands[0] if operands else Word(self._out.home or UNTOLD)
        if not target.known or is_of_a_process(target.text, folders) or len(operands) > 1:
            return ("",)  # zsh's `cd OLD NEW` replaces a part of the directory's name
        if target.text == "-" or _OF_THE_STACK.match(target.text):
            return ("",)
        found = tuple(_joined(each, target.text) for each in folders)
        # An option may resolve links, or change only the stack of pushd.
        return bounded(("", *folders, *found) if options else found)


def would_be_expanded(text: str) -> bool:
    """Return whether bash runs something if it takes quoted text for an index."""
    return any(each in text for each in ("$(", "`", "<(", ">("))


def _gives_other_meaning(name: str, arguments: Sequence[str]) -> bool:
    match name:
        case "alias":
            return any("=" in word or UNTOLD in word for word in arguments)
        case "shopt" | "set":
            return not all(map(is_harmless, takewhile(lambda word: word != "--", arguments)))
    return False


def _has_option(arguments: Sequence[str], letters: str) -> bool:
    """Return whether one of the letters is an option, by itself or among others: `-tC`."""
    return any(word.startswith("-") and not set(letters).isdisjoint(word) for word in arguments)


def _says_only(argv: Sequence[str]) -> bool:
    return not {"-l", "-L", *SAYS_ONLY}.isdisjoint(argv)


def _ends_own_jobs(text: str, arguments: Sequence[str]) -> bool:
    """Return whether these are the arguments that the text shows: a signal, and jobs."""
    shown = text.split()[1:]
    jobs = shown[1:] if shown and re.fullmatch("-[A-Z0-9]+", shown[0]) else shown
    is_whole = [UNTOLD if "$" in word else word for word in shown] == [*arguments]
    return is_whole and bool(jobs) and all(map(_OWN_JOB.fullmatch, jobs))


def _starts_a_shell(argv: Sequence[str]) -> bool:
    if argv[0].endswith("chroot"):
        return SAYS_ONLY.isdisjoint(argv)
    options = [word for word in argv[1:] if not word.startswith("--")]
    return _has_option(options, "si") or not {"--shell", "--login"}.isdisjoint(argv)


def _joined(folder: str, target: str) -> str:
    if target.startswith("/"):
        return normpath(target)
    return normpath(join(folder, target)) if folder else ""
