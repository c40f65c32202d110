"""What a simple command of a shell line comes to: a program, or something that the shell does
itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from posixpath import join, normpath

from sigwrap.bare import re
from sigwrap.hooks.evaluated import RUNS_QUOTED, would_be_expanded
from sigwrap.hooks.option_words import said
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
from sigwrap.hooks.shell_tree import RESERVED
from sigwrap.hooks.shells import (
    BUILTINS,
    FROM_INPUT,
    NOT_FOR_SHELLS,
    OTHER_GLOBS,
    OTHER_SHELLS,
    SHELLS,
    SIGNALLERS,
    is_descriptor,
    is_harmless,
    is_of_a_process,
    runs_nothing,
    script_of,
)
from sigwrap.hooks.started import WHICH_PROGRAM, Started, started
from sigwrap.hooks.starter import Starter
from sigwrap.hooks.variables import started_by
from sigwrap.hooks.words import NOT_KNOWN, Word
from sigwrap.hooks.wrapped import (
    Chain,
    Timed,
    chain_of,
    clears,
    filled,
    is_wrapped_too_often,
    moves,
    renames,
    splits_otherwise,
    timed,
    variable_of,
    words_of,
)
from sigwrap.policy.judge.match import UNTOLD

OTHER_MEANING = "it changes the meaning of later words"

_MOVES = frozenset({"cd", "pushd", "popd"})
_PREFIXES = frozenset({"command", "builtin", "exec", "noglob", "nocorrect", "-"})
MEANT_OTHERWISE = BUILTINS | _PREFIXES | {"cat"}  # where a function has that name
_DECLARING = frozenset({"export", "declare", "typeset", "readonly", "local"})
# Which of these options have the name of a variable, and whether operands are such names.
_FILLING = {
    "read": (Starter(short="a:d:ei:n:N:p:rst:u:"), "-a", True),
    "mapfile": (Starter(short="d:n:O:s:tu:C:c:"), "", True),
    "readarray": (Starter(short="d:n:O:s:tu:C:c:"), "", True),
    "getopts": (Starter(), "", True),
    "printf": (Starter(short="v:"), "-v", False),
    "wait": (Starter(short="fnp:"), "-p", False),
}
_EXEC = Starter(short="a:cl")
_SHELL_WITHOUT = frozenset({"sudo", "doas", "chroot"})
_EVALUATING = {"mapfile": "C", "readarray": "C", "compgen": "CFW", "complete": "CFW", "bind": "x"}
_WHICH_VARIABLE = "the variable that it sets is not known in advance"
_OF_THE_STACK = re.compile(r"[+-]\d*$")
_MOST_WORDS = 1000


class Commands:
    """Of one text."""

    def __init__(self, out: Found, depth: int, nested: int) -> None:
        self._out, self._depth, self._nested = out, depth, nested

    def run(self, text: str, words: tuple[Word, ...], folders: Folders) -> After:
        after = self._run(text, words, folders)
        if words and words[0].text in self._out.functions and self._out.functions_move:
            self._out.move(())
            return After(self._out.anywhere(after.well), self._out.anywhere(after.failed))
        return after

    def _run(self, text: str, words: tuple[Word, ...], folders: Folders) -> After:
        same = After(folders, folders)
        if not words:
            return same
        name = words[0].text
        if len(self._out.commands) >= MAX_COMMANDS:
            self._out.not_known(text, "the line has too many commands")
        elif not words[0].known or ("/" in name and is_of_a_process(name, folders)):
            self._out.not_known(text, WHICH_PROGRAM)
        elif name in RESERVED:
            self._out.not_known(text, f"{name!r} cannot be parsed here")
        elif name in _PREFIXES:
            return self.run(text, self._behind_prefix(text, words), folders)
        elif name == "time" and (found := timed(words)):
            return self._timed(text, found, folders)
        elif name in _MOVES:
            return self._moved(words, folders)
        elif name in BUILTINS:
            after = self._builtin(text, name, words, folders)
            return After(after, after)
        else:
            self._program(text, words, folders)
        return same

    def _behind_prefix(self, text: str, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """The command behind `command`, `builtin`, `exec` and the like; empty where nothing is
        run."""
        name = words[0].text
        if name == "exec":
            found = said(_EXEC, words)
            if found.has("-a"):  # `exec -a rm busybox` is rm
                self._out.not_known(text, "it runs under another name")
            if found.has("-c"):  # with nothing in the environment
                self._out.home = ""
            return found.operands
        options = [*takewhile(lambda word: word.text.startswith("-"), words[1:])]
        if Word("--") in options:
            options = options[: options.index(Word("--")) + 1]
        looks_only = name == "command" and any({"v", "V"} & set(each.text) for each in options)
        return () if looks_only else words[1 + len(options) :]

    def _program(
        self, text: str, words: tuple[Word, ...], folders: Folders, within: int = 0
    ) -> None:
        """`within` how many others that run it."""
        words = filled(words)
        argv = tuple(word.text for word in words)
        chain = [*chain_of(argv)]
        names = frozenset(name for name, _ in chain)
        is_fed = any(name in FROM_INPUT for name, _ in chain[:-1])
        innermost = chain[-1][1]
        before = argv[: len(argv) - len(innermost)]
        if is_fed:  # `xargs env` runs what it is fed
            innermost = [*chain_of((*argv, UNTOLD))][-1][1]
        if _hides_its_program(chain, names, before, innermost, folders):
            self._out.not_known(text, WHICH_PROGRAM)
        elif chain[0][0] == "time" and innermost[0] in RESERVED:
            self._out.not_known(text, "it is not clear which command is timed")
        elif chain[-1][0] in _SHELL_WITHOUT and _starts_a_shell(innermost):
            self._out.not_known(text, "the standard input of its shell is not known")
        if len(words) > _MOST_WORDS:
            self._out.not_known(text, "it has too many words")
        folders = self._around(names, before, folders)
        self.set_by_words(text, before, folders)
        if "git" in names:
            self._note_git_aliases(text, argv)
        is_function = argv[0] in self._out.functions
        given = (*words, NOT_KNOWN) if is_fed else words
        self._out.commands.append(Command(given, text, folders, self._depth, is_function))
        for name, each in chain:
            if name in SHELLS or name in OTHER_SHELLS:
                self._shell(text, name, each, folders, is_fed=is_fed)
            else:
                told = words_of(each, words)
                told = (*told, NOT_KNOWN) if is_fed else told
                self._started(text, name, told, folders, within)
        if any(not runs_nothing(name, argv) for name in SIGNALLERS & names):
            self._signals(text)

    def _around(self, names: frozenset[str], before: Sequence[str], folders: Folders) -> Folders:
        """The folders in which a command runs by what wraps it."""
        if clears(names, before):
            self._out.home = ""
        if not moves(names, before):
            return folders
        self._out.moved = True
        paths = [word.rpartition("=")[2] for word in before if "/" in word]
        return bounded(("", *(_joined(each, path) for each in folders for path in paths)))

    def _note_git_aliases(self, text: str, argv: Sequence[str]) -> None:
        if not self._out.git_aliases.isdisjoint(argv):
            self._out.not_known(text, OTHER_MEANING)
        self._out.git_aliases |= {word[6:] for word in argv if word[:6].casefold() == "alias."}

    def _started(
        self, text: str, name: str, words: tuple[Word, ...], folders: Folders, within: int
    ) -> None:
        for each in started(name, words):
            self._start(text, each, folders, within)

    def _start(self, text: str, each: Started, folders: Folders, within: int) -> None:
        where = ("",) if each.moved else folders
        self._out.moved |= each.moved
        self.set_by_words(text, each.assignments, where)
        if each.unknown:
            self._out.not_known(text, each.unknown)
        if each.line and len(self._out.commands) >= MAX_COMMANDS:
            self._out.not_known(text, "the line has too many commands")
        elif each.line:
            self._note_dialect(text, "sh", each.line)
            self._out.read(each.line, where, self._depth + 1, self._nested + 1)
        if each.words:
            self._run_by_another(text, each.words, where, within + 1)

    def set_variable(self, text: str, name: str, value: Word, folders: Folders) -> None:
        name = name.partition("[")[0]
        self._out.variables.add(name)
        if UNTOLD in value.text:
            self._out.unsure.add(name)
        if UNTOLD in name:
            self._out.not_known(text, _WHICH_VARIABLE)
        elif name in ("BASH_ALIASES", "BASH_CMDS"):
            self._out.not_known(text, OTHER_MEANING)
        elif name in ("HOME", "IFS"):  # which splits `$HOME`
            self._out.home = ""
        self._out.has_cdpath |= name == "CDPATH"
        self._out.globs_otherwise |= name == "GLOBIGNORE"
        for each in started_by(name, value):
            self._start(text, each, folders, 0)

    def set_by_words(self, text: str, words: Iterable[str], folders: Folders) -> None:
        """Take in the assignments among them, `A=1` and `A+=1`."""
        for word in words:
            if "=" in word:
                value = word.partition("=")[2]
                told = NOT_KNOWN if "+=" in word else Word(value)
                self.set_variable(text, variable_of(word), told, folders)
                if would_be_expanded(word) or ("(" in word and UNTOLD in word):
                    self._out.not_known(text, RUNS_QUOTED)

    def declared(self, text: str, arguments: Sequence[str], folders: Folders) -> None:
        self.set_by_words(text, arguments, folders)
        self.unset(arguments)
        if UNTOLD in arguments or _has_option(arguments, "n"):  # another name for a variable
            self._out.not_known(text, _WHICH_VARIABLE)

    def unset(self, names: Iterable[str]) -> None:
        if any(name == "HOME" or UNTOLD in name for name in names):
            self._out.home = ""

    def _run_by_another(
        self, text: str, words: tuple[Word, ...], folders: Folders, within: int
    ) -> None:
        """It is a program, whatever the shell itself does by that name."""
        if len(self._out.commands) >= MAX_COMMANDS or within > MAX_NESTED:
            self._out.not_known(text, "the line has too many commands")
        elif not words[0].known:
            self._out.not_known(text, WHICH_PROGRAM)
        else:
            self._program(text, words, folders, within)
            if words[0].text in _PREFIXES and words[1:]:  # somewhere `command` is a program
                self._run_by_another(text, words[1:], folders, within + 1)

    def _shell(
        self, text: str, name: str, argv: Sequence[str], folders: Folders, *, is_fed: bool
    ) -> None:
        script = script_of(name, argv, folders)
        if is_fed or script.unknown:
            why = f"the commands for {name} are not known in advance"
            self._out.not_known(text, script.unknown or why)
        self._note_dialect(text, name, script.line)
        if script.line:
            moves = self._out.moves
            self._out.read(script.line, folders, self._depth + 1, self._nested + 1)
            self._out.moves = moves

    def _note_dialect(self, text: str, name: str, line: str) -> None:
        other = NOT_FOR_SHELLS.get(name)
        if other and other.search(line):
            self._out.not_known(text, f"{name} may read its line differently than bash")

    def _builtin(self, text: str, name: str, words: Sequence[Word], folders: Folders) -> Folders:
        """The folders in which the shell is then."""
        arguments = [word.text for word in words[1:]]
        operands = arguments[1:] if arguments[:1] == ["--"] else arguments
        first = operands[0] if operands else ""
        if name in _DECLARING:  # `command export A=1`: to the grammar, a command's words
            self.declared(text, arguments, folders)
        for variable in _filled(name, words):
            self.set_variable(text, variable.text, NOT_KNOWN, folders)
        if name == "unset":
            self.unset(arguments)
        if name == "eval":
            return self._evaluated(text, " ".join(operands), folders)
        if name == "trap" and first not in ("", "-", "-p", "-l"):
            after = self._evaluated(text, first, self._out.anywhere(folders))
            return bounded((*folders, *after))
        if name in ("shopt", "set"):
            self._out.globs_otherwise |= not OTHER_GLOBS.isdisjoint(arguments)
        if _gives_other_meaning(name, arguments):
            self._out.not_known(text, OTHER_MEANING)
        elif (
            name in ("coproc", "fc")
            or (name == "jobs" and _has_option(arguments, "x"))
            or _has_option(arguments, _EVALUATING.get(name, ""))
        ):
            self._out.not_known(text, "sigwrap cannot tell what it runs")
        elif name in (".", "source"):
            if not first or UNTOLD in first or is_descriptor(first, folders):
                self._out.not_known(text, "the commands that it reads are not known in advance")
            else:
                self._out.files.append(FileUse(False, Word(first), text, folders))
        elif name == "kill":
            if not runs_nothing(name, arguments):
                self._signals(text)
        elif name != "echo" and any(map(would_be_expanded, arguments)):
            self._out.not_known(text, RUNS_QUOTED)
        return folders

    def _timed(self, text: str, found: Timed, folders: Folders) -> After:
        self.set_by_words(text, (word.text for word in found.assignments), folders)
        return self.run(text, found.command, folders)

    def _moved(self, words: tuple[Word, ...], folders: Folders) -> After:
        well = self._moved_to(words[0].text, words[1:], folders)
        self._out.move(well)
        return After(well, folders)

    def _moved_to(self, name: str, arguments: tuple[Word, ...], folders: Folders) -> Folders:
        options = [*takewhile(lambda word: re.fullmatch("-[A-Za-z@]+", word.text), arguments)]
        operands = arguments[len(options) :]
        operands = operands[1:] if operands[:1] == (Word("--"),) else operands
        if name == "popd" or (name == "pushd" and not operands):
            return ("",)
        target = operands[0] if operands else Word(self._out.home or UNTOLD)
        if not target.known or is_of_a_process(target.text, folders):
            return ("",)
        if target.text == "-" or _OF_THE_STACK.match(target.text):
            return ("",)
        if self._out.has_cdpath and not target.text.startswith(("/", "./", "../")):
            return ("",)
        found = tuple(_joined(each, target.text) for each in folders)
        # By links or not, or only in the stack of pushd.
        return bounded(("", *folders, *found) if options else found)

    def _evaluated(self, text: str, line: str, folders: Folders) -> Folders:
        if UNTOLD in line:
            self._out.not_known(text, "the command that it runs is not known in advance")
            return ("",)
        return self._out.read(line, folders, self._depth, self._nested + 1)

    def _signals(self, text: str) -> None:
        self._out.not_known(text, "its target is not known in advance", is_signal=True)


def _hides_its_program(
    chain: Chain,
    names: frozenset[str],
    before: Sequence[str],
    innermost: Sequence[str],
    folders: Folders,
) -> bool:
    program = innermost[0]
    return (
        UNTOLD in program
        or ("/" in program and is_of_a_process(program, folders))
        or any(UNTOLD in word for word in before)
        or is_wrapped_too_often(chain)
        or splits_otherwise(chain)
        or renames(names, before)
        or ("env" in names and len(program.split()) > 1)  # `env -u x -S 'a b'`
    )


def _filled(name: str, words: Sequence[Word]) -> Iterable[Word]:
    """The names of variables that a builtin gives a value."""
    if name not in _FILLING:
        return ()
    starter, options, are_operands = _FILLING[name]
    found = said(starter, words)
    return (*(found.operands if are_operands else ()), *found.values_of(options))


def _gives_other_meaning(name: str, arguments: Sequence[str]) -> bool:
    match name:
        case "alias":
            return any("=" in word or UNTOLD in word for word in arguments)
        case "enable":
            return bool(arguments)
        case "hash":
            return _has_option(arguments, "p")
        case "shopt" | "set":
            given = takewhile(lambda word: word != "--", arguments)
            return not all(word in OTHER_GLOBS or is_harmless(word) for word in given)
    return False


def _has_option(arguments: Sequence[str], letters: str) -> bool:
    """One of them, by itself or among others: `-tC`."""
    return any(word.startswith("-") and not set(letters).isdisjoint(word) for word in arguments)


def _starts_a_shell(argv: Sequence[str]) -> bool:
    if argv[0].endswith("chroot"):
        return "--help" not in argv and "--version" not in argv
    options = [word for word in argv[1:] if not word.startswith("--")]
    return _has_option(options, "si") or not {"--shell", "--login"}.isdisjoint(argv)


def _joined(folder: str, target: str) -> str:
    if target.startswith("/"):
        return normpath(target)
    return normpath(join(folder, target)) if folder else ""
