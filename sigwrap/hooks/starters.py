"""Reads from a program's words what it runs for its caller.

Where a command begins among a program's words depends on its options. The hook does not know them:
it takes each word for the beginning of a command, and for a shell line. If a rule denies one of
these readings, it denies the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from sigwrap.bare import re
from sigwrap.hooks.calls import address
from sigwrap.hooks.git_words import of_git
from sigwrap.hooks.shells import SAYS_ONLY, is_descriptor
from sigwrap.hooks.variables import FOLDERS, harmless, may_run
from sigwrap.hooks.words import Word
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.policy.judge.network import packed_address
from sigwrap.tuples import NamedTuple

WHICH_PROGRAM = "the program that it runs is not known in advance"
NOT_READ = "sigwrap does not read what it runs"
WHICH_COMMAND = "the command that it runs is not known in advance"

_MAX_WORDS = 100
_MAX_LINES = 20
_OF_A_SHELL = re.compile(r"[\s;&|<>`$(){}]")

# A command of these begins at one of their words.
_SHOWN = frozenset(
    "strace ltrace valgrind setpriv prlimit systemd-inhibit systemd-cat dbus-run-session gosu "
    "su-exec tini tini-static catatonit dumb-init perf choom ssh-agent gpg-agent pyenv rbenv "
    "nodenv cmake cttyhack unbuffer flock watch debconf git-bisect git-submodule".split()
)
# These start a shell, run lines of a language of their own, or what they find in files.
_HIDDEN = frozenset(
    "su runuser sg newgrp unshare nsenter setarch linux32 linux64 i386 x86_64 uname26 pkexec "
    "fakeroot script parallel systemd-run capsh run-parts tmux screen ed ex vi vim view vimdiff "
    "nvim start-stop-daemon dpkg-architecture git-filter-branch git-for-each-repo git-merge-index "
    "git-remote-ext".split()
)
# Of these, the words behind the program are its own; how many words come before it.
_OPERANDS_BEFORE = {"strace": 0, "ltrace": 0, "valgrind": 0, "perf": 1}
_BEHIND_PERF = frozenset({"record", "stat", "report", "trace"})  # `perf stat record a`
_NO_VALUE = re.compile(r"-[fqv]+|--([a-z-]+=.*)?")  # options of theirs without the next word
_IN_ITS_OWN_DIRECTORY = _HIDDEN | {"cmake", "git-bisect", "git-submodule"}
_ACTIONS_OF_FIND = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_THIS_MACHINE = frozenset({"localhost", "ip6-localhost", "ip6-loopback"})
_LOOPBACKS = frozenset({bytes(4), bytes(16), bytes(15) + b"\x01"})  # all zeroes lead here too
_SSH_VALUES = "BbcDEeFIiJLlmOopPQRSWw"
_SSH_SETTING = (
    "o[\\s=\"']*(proxycommand|localcommand|knownhostscommand|remotecommand|hostname|include|match"
    "|\0)"
)
_MAKE_VARIABLE = re.compile(r"\s*([^\s=:]+?)\s*((?::{0,3}|[?+!])=)\s*(.*)", re.DOTALL)
_RUNS_BY_CMAKE = re.compile("-E$|-P|-?\0")
_MAKE_FUNCTION = re.compile(r"\$[({]\s*[a-z-]+\s")


class Started(NamedTuple):
    """One reading of what is run, or why it cannot be read."""

    words: tuple[Word, ...] = ()  # of a program
    line: str = ""  # of a shell
    unknown: str = ""
    moved: bool = False  # to a directory that is not known
    is_sure: bool = False  # the words are a command, in every reading
    is_reading: bool = False  # one of several of the same words


class _Options(NamedTuple):
    """Options by which a program runs something."""

    letters: str = ""
    long: str = ""  # counts abbreviated as well
    valued: str = ""  # other letters, which take the rest of their word
    harmless: str = "(?!)"  # values that run nothing else
    runs: str = ""  # the only values, behind the option's name, that run something


_GIT_REMOTE = _Options(long="upload-pack receive-pack exec sendmail-cmd")
_SSH_FILES = _Options("SDFbo", valued="cilJPRsXB", runs=f"[SDFb]|{_SSH_SETTING}")
_APT = _Options(
    "oc",
    "option config-file",
    "ta",
    runs=r"c|(o|option=)[\s\"']*(apt::update::|dpkg::pre-|dpkg::post-|dpkg::tools|dir::|\0)",
)
_OPTIONS: Mapping[str, _Options] = {
    "split": _Options(long="filter"),
    "tar": _Options(
        "IF",
        "use-compress-program info-script new-volume-script to-command checkpoint-action "
        "rmt-command rsh-command",
        "bCfgHKLNTVX",
        harmless=rf"{FOLDERS}(p?gzip|pigz|p?xz|zstd(mt)?|[lp]?bzip2|lz4|lzma|brotli)( -[\w=-]+)*",
    ),
    "sort": _Options(long="compress-program"),
    "rsync": _Options("e", "rsh", "BfTM@", harmless=harmless("GIT_SSH_COMMAND")),
    "install": _Options(long="strip-program"),
    "wget": _Options("e", "use-askpass execute", "oaiOPQtTwUADRIXlB", runs=r".*askpass|.*\0"),
    "dpkg": _Options(long="pre-invoke post-invoke status-logger"),
    **dict.fromkeys(("apt", "apt-get", "apt-cache", "aptitude"), _APT),
    **dict.fromkeys(("scp", "sftp"), _SSH_FILES),
    "ssh": _Options("Fo", valued=_SSH_VALUES, runs=f"F|{_SSH_SETTING}"),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "gfortran"), _Options(long="wrapper")),
    "git-rebase": _Options("x", "exec", "CXsS"),
    "git-difftool": _Options("x", "extcmd", "t"),
    "git-grep": _Options("O", "open-files-in-pager", "efmABC"),
    "git-clone": _GIT_REMOTE._replace(letters="u", valued="cobj"),
    **{
        f"git-{name}": _GIT_REMOTE
        for name in "fetch pull push ls-remote archive fetch-pack send-pack send-email".split()
    },
}
_NO_ABBREVIATIONS = frozenset({"strip", "checkpoint"})  # options of their own


def started(name: str, words: Sequence[Word]) -> Iterator[Started]:
    """Return what `name` may run; its own name is the first of the words."""
    if name == "find":
        yield from _of_find(words)
    elif name == "git":
        yield from _of_git(words)
    elif name in ("make", "gmake"):
        yield from _of_make(words)
    elif name in _HIDDEN and not (len(words) == 2 and words[1].text in SAYS_ONLY):
        yield Started(unknown=NOT_READ)
        yield from _readings(name, words)
    elif name == "cmake" and not any(_RUNS_BY_CMAKE.match(word.text) for word in words):
        return
    elif name in _SHOWN:
        yield from _readings(name, words)
    elif name in _OPTIONS:
        yield from _of_options(name, words)


def _readings(name: str, words: Sequence[Word]) -> Iterator[Started]:
    moved = name in _IN_ITS_OWN_DIRECTORY
    program = _program_at(name, words)
    if any(not word.known for word in words[1:program]):
        yield Started(unknown=WHICH_PROGRAM)
    texts = [word.text for word in words]
    if len(words) > _MAX_WORDS or sum(map(bool, map(_OF_A_SHELL.search, texts))) > _MAX_LINES:
        yield Started(unknown=NOT_READ)
        return
    for at, text in enumerate(texts[1:], 1):
        value = text.partition("=")[2] or text[2:] if text.startswith("-") else text
        if UNTOLD in value:
            continue
        if text.startswith("-") or text != text.lstrip("|!") or _OF_A_SHELL.search(text):
            yield Started(line=value.lstrip("|!"), moved=moved, is_reading=True)
        if not text.startswith("-") and (words[at].known or at < program):
            yield Started(words=tuple(words[at:]), moved=moved, is_reading=True)
            line = " ".join(texts[at:])
            if any(map(_OF_A_SHELL.search, texts[at:])) and UNTOLD not in line:
                yield Started(line=line, moved=moved, is_reading=True)


def _program_at(name: str, words: Sequence[Word]) -> int:
    """Return the place of the first word that is the program, or one of its arguments, for sure."""
    operands = _OPERANDS_BEFORE.get(name, len(words))
    if name == "perf" and words[1:] and words[1].text not in _BEHIND_PERF:
        return len(words)
    for at, (before, word) in enumerate(pairwise(words), 1):
        is_own = at == 1 or not before.text.startswith("-") or _NO_VALUE.fullmatch(before.text)
        if name == "perf" and word.text in _BEHIND_PERF and operands == 0:
            continue
        if not word.text.startswith("-") and word.known and is_own:
            if not operands:
                return at
            operands -= 1
    return len(words)


def _of_options(name: str, words: Sequence[Word]) -> Iterator[Started]:
    options = _OPTIONS[name]
    if name == "tar":
        words = _with_hyphens(words, options)
    for key, value in _given(options, words):
        told = f"{key}{value}".casefold()
        if UNTOLD in key:
            yield Started(unknown=NOT_READ)
        elif options.runs and not re.match(options.runs.casefold(), told):
            continue
        elif not re.fullmatch(options.harmless, value):
            yield Started(unknown=NOT_READ)
            if UNTOLD not in value:
                yield Started(line=value, moved=name.startswith("git-"))
    if name == "ssh":
        yield from _of_ssh(words)


def _with_hyphens(words: Sequence[Word], options: _Options) -> Sequence[Word]:
    """Write tar's old style `tar cIf a b` as `tar -c -I a -f b`."""
    if len(words) < 2 or words[1].text.startswith("-"):
        return words
    left = iter(words[2:])
    told = [words[0]]
    for letter in words[1].text:
        told.append(Word(f"-{letter}"))
        told += islice(left, letter in options.letters + options.valued)
    return [*told, *left]


def _given(options: _Options, words: Sequence[Word]) -> Iterator[tuple[str, str]]:
    """Return each of the options that the words have, and its value."""
    long = options.long.split()
    for at, word in enumerate(words[1:], 1):
        text = word.text
        following = words[at + 1].text if at + 1 < len(words) else ""
        if not text.startswith("-") or text in ("-", "--"):
            continue
        name, equals, value = text.lstrip("-").partition("=")
        if (UNTOLD in name and text.startswith("--")) or (
            name not in _NO_ABBREVIATIONS
            and any(each.startswith(name) for each in long)
            and (text.startswith("--") or len(name) > 1)
        ):
            yield name + equals, value if equals else following
        if text.startswith("--"):
            continue
        for place, letter in enumerate(text[1:], 2):
            if letter in options.letters or (letter == UNTOLD and options.letters):
                yield letter, text[place:].removeprefix("=") or following
            if letter in options.letters or letter in options.valued:
                break


def _of_find(words: Sequence[Word]) -> Iterator[Started]:
    """Read its commands; the names that find puts into them are not known."""
    left = [*words[1:]]
    while left:
        word = left.pop(0)
        if word.splits or word.text == "-files0-from":
            yield Started(unknown=WHICH_COMMAND)
        action = word.text
        if action not in _ACTIONS_OF_FIND:
            continue
        command: list[Word] = []
        while left:
            word = left.pop(0)
            may_end = action in ("-exec", "-execdir") and bool(command)
            if word.text == ";" or (word.text == "+" and may_end and command[-1].text == UNTOLD):
                break
            is_name = "{}" in word.text
            command.append(Word(word.text.replace("{}", UNTOLD)) if is_name else word)
        if command:
            yield Started(words=tuple(command), moved=action.endswith("dir"), is_sure=True)


def _of_git(words: Sequence[Word]) -> Iterator[Started]:
    found = of_git(words)
    if found.is_hidden:
        yield Started(unknown=NOT_READ)
    yield from (Started(line=line, moved=True) for line in found.lines)
    if found.rest and UNTOLD in found.rest[0].text:
        yield Started(unknown=WHICH_PROGRAM)
    elif found.rest:
        name = f"git-{found.rest[0].text}"
        is_short = name == "git-bisect" and [word.text for word in found.rest[1:2]] != ["run"]
        if not is_short:
            for each in started(name, found.rest):
                yield each._replace(moved=each.moved or found.moved)


def _of_make(words: Sequence[Word]) -> Iterator[Started]:
    """Read the variables that make puts into shell lines, and the files of its rules."""
    files = _Options("fE", "file makefile eval", "CIjloW")
    for key, value in _given(files, words):
        is_file = value != "-" and UNTOLD not in value and not is_descriptor(value)
        if not (is_file and key.startswith(("f", "m"))):
            yield Started(unknown=NOT_READ)
    for word in words[1:]:
        found = _MAKE_VARIABLE.fullmatch(word.text)
        if found is None:
            if word.text.startswith(UNTOLD) or (word.text == "-" and word is not words[0]):
                yield Started(unknown=NOT_READ)
            continue
        name, operator, value = found.groups()
        is_quoted = name == "SHELL" and not {UNTOLD, "$", '"', "'", "\\"}.isdisjoint(value)
        if (
            UNTOLD in name
            or operator == "!="
            or name == ".SHELLFLAGS"
            or is_quoted
            or _MAKE_FUNCTION.search(word.text)
            or re.search(r"[;&|`#<>\n]|-wrapper", value)
            or may_run(name, Word(value))
        ):
            yield Started(unknown=NOT_READ)
            if UNTOLD not in value:
                yield Started(line=value)


def _of_ssh(words: Sequence[Word]) -> Iterator[Started]:
    at = 1
    while at < len(words) and words[at].text.startswith("-"):
        letters = words[at].text[1:]
        taken = next((place for place, each in enumerate(letters) if each in _SSH_VALUES), -1)
        at += 2 if taken == len(letters) - 1 >= 0 else 1
    if at >= len(words):
        return
    host = words[at].text
    if UNTOLD in host or any(UNTOLD in word.text for word in words[1:at]):
        yield Started(unknown="the machine that it runs on is not known in advance")
    elif _is_this_machine(host):
        yield Started(unknown=NOT_READ)
        for each in _readings("ssh", words[at:]):
            yield each._replace(moved=True)


def _is_this_machine(host: str) -> bool:
    """Return whether it is a name that every machine has for itself."""
    name = host.casefold().removeprefix("ssh://").rpartition("@")[2]
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    name = address(name.rstrip("."))
    if name in _THIS_MACHINE or name.endswith(".localhost"):
        return True
    found = packed_address(name)
    return found is not None and (found in _LOOPBACKS or (len(found) == 4 and found[0] == 127))
