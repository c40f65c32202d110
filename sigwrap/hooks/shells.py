"""Shells and their builtins, and which of a shell's words is a line to run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from posixpath import join, normpath

from sigwrap.bare import NamedTuple, re
from sigwrap.policy.judge.match import UNTOLD

BUILTINS = frozenset(
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue coproc "
    "declare dirs disown echo enable eval exec exit export false fc fg getopts hash help history "
    "jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set "
    "shift shopt source suspend test times trap true type typeset ulimit umask unalias unset "
    "wait".split()
)
SHELLS = frozenset({"sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "yash", "posh"})
OTHER_SHELLS = frozenset({"fish", "csh", "tcsh", "nu", "xonsh", "elvish", "pwsh", "rc", "es"})
SIGNALLERS = frozenset("kill pkill killall skill killall5 fuser xkill".split())

# In a line for sh, what it may read in another way than bash.
NOT_FOR_SH = re.compile(r"(?<!\$)\(\(|\[\[|\$'|\[\^|(^|[\s/])\.[*?]")
_LIKE_BASH = frozenset({"bash", "sh", "dash", "ash"})
_HARMLESS = frozenset(  # options of a shell that leave words their meaning
    "errexit nounset pipefail xtrace verbose noexec noglob allexport noclobber errtrace functrace "
    "checkwinsize histappend inherit_errexit progcomp nocasematch ignoreeof".split()
)
_HARMLESS_LETTERS = frozenset("euxvnfaCEThbmospq")
_LETTERS_OF_A_START = _HARMLESS_LETTERS | frozenset("cilrO")
_LONG = frozenset({"norc", "noprofile", "login", "verbose", "restricted", "noediting"})
_SOMEWHERE = "/x"  # `dev/stdin` leads to nothing there, `../dev/stdin` does
SAYS_ONLY = frozenset({"--version", "--help"})


class Script(NamedTuple):
    """The line that a shell is given to run. Neither: a file of that name, or nothing."""

    line: str = ""
    unknown: str = ""  # why it is not known


def script_of(name: str, argv: Sequence[str], folders: Sequence[str]) -> Script:
    if name in OTHER_SHELLS:
        return Script(unknown=f"sigwrap cannot read the commands for {name}")
    not_known = Script(unknown=f"the commands for {name} are not known in advance")
    other = Script(_behind_c(argv), f"{name} has options that change the meaning of words")
    takes_line, takes_input, position = False, False, 1
    while position < len(argv):
        word = argv[position]
        if UNTOLD in word:
            return not_known
        if word in SAYS_ONLY:
            return Script()
        if not word.startswith(("-", "+")) or word in ("-", "--"):
            position += word in ("-", "--")
            break
        if word.startswith("--"):
            if word[2:] not in _LONG:
                return other
        else:
            values = sum(letter in "oO" for letter in word[1:])
            named = argv[position + 1 : position + 1 + values]
            is_long = len(word) > 4 and word[1:].isalpha() and not word[1:].startswith("eu")
            if (
                is_long
                or not _LETTERS_OF_A_START.issuperset(word[1:])
                or not all(map(is_harmless, named))
            ):
                return other
            takes_line = takes_line or "c" in word  # `+c` as well
            takes_input = takes_input or "s" in word
            position += values
        position += 1
    operand = argv[position] if position < len(argv) else None
    if operand is not None and UNTOLD in operand:
        return not_known
    if takes_line and operand is not None:
        is_read = name in _LIKE_BASH and not (name != "bash" and NOT_FOR_SH.search(operand))
        why = "" if is_read else f"{name} may read its line differently than bash"
        return Script(operand, why)
    if takes_input or operand is None or is_descriptor(operand, folders):
        return Script(unknown=f"the standard input of {name} is not known")
    return Script()


def _behind_c(argv: Sequence[str]) -> str:
    """Return the line of a shell with options that are not read: most likely behind its `-c`."""
    found = (line for option, line in pairwise(argv) if re.fullmatch(r"[-+]\w*c\w*", option))
    line = next(found, "")
    return "" if UNTOLD in line else line


def is_harmless(option: str) -> bool:
    if option[:1] in ("-", "+"):
        return _HARMLESS_LETTERS.issuperset(option[1:])
    return option in _HARMLESS


def is_descriptor(path: str, folders: Sequence[str] = ("",)) -> bool:
    """Return whether a path may be a descriptor: `/dev/stdin`, `/proc/self/fd/0`.

    `stdin` and numbers count in any directory: it may be a link, or in PATH.
    """
    last = path.rpartition("/")[2]
    return last == "stdin" or last.isdigit() or is_of_a_process(path, folders)


def is_of_a_process(path: str, folders: Sequence[str]) -> bool:
    """Return whether a path is below /dev or /proc, where it may differ for each process."""
    wholes = (join(folder or _SOMEWHERE, path).lstrip("/") for folder in folders)
    return any(normpath(f"/{whole}").startswith(("/dev/", "/proc/")) for whole in wholes)
