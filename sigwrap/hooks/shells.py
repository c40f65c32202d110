"""Which words of a command are a command again, or a line for another shell."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import join, normpath

from sigwrap.bare import re
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.tuples import NamedTuple

BUILTINS = frozenset(
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue coproc "
    "declare dirs disown echo enable eval exec exit export false fc fg getopts hash help history "
    "jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set "
    "shift shopt source suspend test times trap true type typeset ulimit umask unalias unset "
    "wait".split()
)
SHELLS = frozenset({"sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "yash", "posh"})
OTHER_SHELLS = frozenset({"fish", "csh", "tcsh", "nu", "xonsh", "elvish", "pwsh", "rc", "es"})
SIGNALLERS = frozenset({"kill", "pkill", "killall", "skill", "killall5"})
FROM_INPUT = frozenset({"xargs"})  # its command gets more words from standard input

# What is in a line for sh or zsh that it may take for something else than bash does.
_NOT_FOR_SH = re.compile(r"(?<!\$)\(\(|\[\[|\$'|\[\^|(^|[\s/])\.[*?]")
_NOT_FOR_ZSH = re.compile(
    r"[][(){}#^!`]|\|\s*(cd|pushd|popd)\b|\bcd\s+\S+\s+\w|\bprint\s+-\w*P"
    r"|\b(repeat|emulate|autoload|(un)?setopt|hash|set|zmodload|zargs|zf_[a-z]+|TRAP[A-Z]+)\b"
)
NOT_FOR_SHELLS = {"zsh": _NOT_FOR_ZSH, **dict.fromkeys(("sh", "dash", "ash"), _NOT_FOR_SH)}
OTHER_GLOBS = frozenset("dotglob globstar nocaseglob nullglob failglob extglob".split())
_HARMLESS = frozenset(  # options of a shell that leave words their meaning
    "errexit nounset pipefail xtrace verbose noexec noglob allexport noclobber errtrace functrace "
    "checkwinsize histappend inherit_errexit progcomp nocasematch ignoreeof".split()
)
_HARMLESS_LETTERS = frozenset("euxvnfaCEThbmospq")
_LETTERS_OF_A_START = _HARMLESS_LETTERS | frozenset("cilrO")
_READ_FIRST = frozenset({"--rcfile", "--init-file"})
_LONG = frozenset(  # bash takes them with one hyphen, too
    "debug debugger dump-po-strings dump-strings help init-file login noediting noprofile norc "
    "posix pretty-print protected rcfile restricted verbose version wordexp".split()
)
_SOMEWHERE = "/x"  # `dev/stdin` leads to nothing there, `../dev/stdin` does
_SAYS_ONLY = frozenset({"--version", "--help"})


class Script(NamedTuple):
    """What a shell is given to run. Neither: a file of that name, or nothing."""

    line: str = ""
    unknown: str = ""  # why it isn't known


def script_of(name: str, argv: Sequence[str], folders: Sequence[str]) -> Script:
    if name in OTHER_SHELLS:
        return Script(unknown=f"sigwrap cannot read the commands for {name}")
    takes_line, takes_input, position = False, False, 1
    while position < len(argv):
        word = argv[position]
        if word[1:] in _LONG:
            word = f"-{word}"
        if UNTOLD in word:
            return Script(unknown=f"the commands for {name} are not known in advance")
        if word in _SAYS_ONLY:
            return Script()
        if not word.startswith(("-", "+")) or word in ("-", "--"):
            position += word in ("-", "--")
            break
        if not word.startswith("--"):
            values = sum(letter in "oO" for letter in word[1:])
            named = argv[position + 1 : position + 1 + values]
            if not (_LETTERS_OF_A_START.issuperset(word[1:]) and all(map(is_harmless, named))):
                return Script(unknown=f"{name} has options that change the meaning of words")
            takes_line = takes_line or "c" in word  # `+c` as well
            takes_input = takes_input or "s" in word
            position += values
        elif word == "--posix":
            return Script(unknown=f"{name} has options that change the meaning of words")
        elif word in _READ_FIRST:
            position += 1
            if any(UNTOLD in each or is_descriptor(each, folders) for each in argv[position:][:1]):
                return Script(unknown=f"the startup file of {name} is not known")
        position += 1
    operand = argv[position] if position < len(argv) else None
    if operand is not None and UNTOLD in operand:
        return Script(unknown=f"the commands for {name} are not known in advance")
    if takes_line and operand is not None:
        return Script(line=operand)
    if takes_input or operand is None or is_descriptor(operand, folders):
        return Script(unknown=f"the standard input of {name} is not known")
    return Script()


def is_harmless(option: str) -> bool:
    if option[:1] in ("-", "+"):
        return _HARMLESS_LETTERS.issuperset(option[1:])
    return option in _HARMLESS


def is_descriptor(path: str, folders: Sequence[str] = ("",)) -> bool:
    """Whether a script may be no file: `/dev/stdin`, `/proc/self/fd/0`. `stdin` and numbers count
    in any folder, which may be a link, or PATH."""
    last = path.rpartition("/")[2]
    return last == "stdin" or last.isdigit() or is_of_a_process(path, folders)


def is_of_a_process(path: str, folders: Sequence[str]) -> bool:
    """Beneath /dev or /proc, where a name may lead elsewhere for each process."""
    wholes = (join(folder or _SOMEWHERE, path).lstrip("/") for folder in folders)
    return any(normpath(f"/{whole}").startswith(("/dev/", "/proc/")) for whole in wholes)


def runs_nothing(name: str, argv: Sequence[str]) -> bool:
    """Of those that say which signals there are."""
    return name in SIGNALLERS and any(word in ("-l", "-L", "--help", "--version") for word in argv)
