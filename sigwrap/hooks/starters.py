"""Reads from a program's words what it runs for its caller.

Where a command begins among a program's words depends on its options. The hook does not know them:
it takes each word for the beginning of a command, and for a shell line. If a rule denies one of
these readings, it denies the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sigwrap.bare import NamedTuple, re
from sigwrap.hooks.calls import address
from sigwrap.hooks.git_words import of_git
from sigwrap.hooks.shells import SAYS_ONLY, is_descriptor
from sigwrap.hooks.variables import FOLDERS, harmless, may_run
from sigwrap.hooks.words import Word
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.policy.judge.network import packed_address

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
# Each word of any other program may be a command as well.
_RUNS_NO_WORDS = frozenset(
    "apropos apt apt-cache apt-get base64 basename cat chgrp chmod chown cmp comm cp curl cut date "
    "df diff dirname dpkg du egrep expr fgrep file gh glab grep gzip head install jq kill killall "
    "less "
    "ln ls man mkdir mktemp more mv od patch pgrep pip pip3 pkill ps readlink realpath rg rm rmdir "
    "scp sha256sum sleep sort split ssh stat strings tail tar tee tldr touch tr tree uniq unzip wc "
    "wget whatis whereis which xxd yq zip".split()
) | {f"git-{name}" for name in "add branch checkout commit grep log notes stash tag".split()}
# These start a shell, run lines of a language of their own, or what they find in files.
_HIDDEN = frozenset(
    "su runuser sg newgrp unshare nsenter setarch linux32 linux64 i386 x86_64 uname26 pkexec "
    "fakeroot script parallel systemd-run capsh run-parts tmux screen ed ex vi vim view vimdiff "
    "nvim start-stop-daemon dpkg-architecture git-filter-branch git-for-each-repo git-merge-index "
    "git-remote-ext".split()
)
_IN_ITS_OWN_DIRECTORY = _HIDDEN | {"cmake", "git-bisect", "git-submodule"}
_ACTIONS_OF_FIND = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_THIS_MACHINE = frozenset({"localhost", "ip6-localhost", "ip6-loopback"})
_LOOPBACKS = frozenset({bytes(4), bytes(16), bytes(15) + b"\x01"})  # all zeroes lead here too
_SSH_VALUES = "BbcDEeFIiJLlmOopPQRSWw"
_SSH_SETTING = (
    "(?!proxycommand|localcommand|knownhostscommand|remotecommand|hostname|include|match)"
    "[a-z]+=[^\0]*"
)
_MAKE_VARIABLE = re.compile(r"\s*([^\s=:]+?)\s*((?::{0,3}|[?+!])=)\s*(.*)", re.DOTALL)
_FILES_OF_MAKE = re.compile(r"-[a-zA-Z]*?[fE]|--(f|mak|ev)[a-z]*=?")
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
    is_possible: bool = False  # the program is not known to run anything


def _runs(options: str, harmless: str = "(?!)") -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of the options by which a program runs something, abbreviated or in a cluster
    as well, and of the values by which it does not."""
    return re.compile(options), re.compile(harmless, re.DOTALL | re.IGNORECASE)


_LETTERS = "-[a-zA-Z0-9]*?"
_REST = "[a-z-]*=?"
_GIT_REMOTE = _runs(f"--(upl|rec|exe|sendm){_REST}")
_SSH_FILES = _runs(f"{_LETTERS}[SDFbo]", _SSH_SETTING)
_APT = _runs(
    f"{_LETTERS}[oc]|--(opt|conf){_REST}",
    r"(?![\s\"']*(apt::update::|dpkg::pre-|dpkg::post-|dpkg::tools|dir::))[^/\0]*",
)
_OPTIONS: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    "split": _runs(f"--f{_REST}"),
    "tar": _runs(
        f"{_LETTERS}[IF]|--(use|inf|new-v|to-c|checkpoint-a|rm|rs){_REST}",
        rf"{FOLDERS}(p?gzip|pigz|p?xz|zstd(mt)?|[lp]?bzip2|lz4|lzma|brotli)( -[\w=-]+)*",
    ),
    "sort": _runs(f"--co{_REST}"),
    "rsync": _runs(f"{_LETTERS}e|--rsh{_REST}", harmless("GIT_SSH_COMMAND")),
    "install": _runs(f"--strip-{_REST}"),
    "wget": _runs(f"{_LETTERS}e|--(use-a|exe){_REST}", r"(?!.*askpass)[\w.-]+=[^\0]*"),
    "dpkg": _runs(f"--(pre-i|post-i|status-l){_REST}"),
    **dict.fromkeys(("apt", "apt-get", "apt-cache", "aptitude"), _APT),
    **dict.fromkeys(("scp", "sftp"), _SSH_FILES),
    "ssh": _runs(f"{_LETTERS}[Fo]", _SSH_SETTING),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "gfortran"), _runs("--?wrapper=?")),
    "git-rebase": _runs(f"{_LETTERS}x|--ex{_REST}"),
    "git-difftool": _runs(f"{_LETTERS}x|--ext{_REST}"),
    "git-grep": _runs(f"{_LETTERS}O|--op{_REST}"),
    "git-clone": _runs(f"{_LETTERS}u|--upl{_REST}"),
    **{
        f"git-{name}": _GIT_REMOTE
        for name in "fetch pull push ls-remote archive fetch-pack send-pack send-email".split()
    },
}


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
    else:
        if name in _OPTIONS:
            yield from _of_options(name, words)
        if name not in _RUNS_NO_WORDS:
            for each in _readings(name, words):
                if not each.unknown:
                    yield each._replace(is_possible=True)


def _readings(name: str, words: Sequence[Word]) -> Iterator[Started]:
    moved = name in _IN_ITS_OWN_DIRECTORY
    if not all(word.known for word in words):
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
        if not text.startswith("-") and words[at].known:
            yield Started(words=tuple(words[at:]), moved=moved, is_reading=True)
            line = " ".join(texts[at:])
            if any(map(_OF_A_SHELL.search, texts[at:])) and UNTOLD not in line:
                yield Started(line=line, moved=moved, is_reading=True)


def _of_options(name: str, words: Sequence[Word]) -> Iterator[Started]:
    """Read a value where an option takes it: in its own word, or in the next."""
    options, harmless_values = _OPTIONS[name]
    is_old_tar = name == "tar" and len(words) > 1 and not words[1].text.startswith("-")
    for at, word in enumerate(words[1:], 1):
        text = f"-{word.text}" if at == 1 and is_old_tar else word.text
        if text.startswith("-") and UNTOLD in text.partition("=")[0]:
            yield Started(unknown=NOT_READ)
        found = options.match(text)
        if found is None:
            continue
        rest = text[found.end() :]
        following = words[at + 1].text if at + 1 < len(words) else ""
        if harmless_values.fullmatch(rest or following) is None:
            yield Started(unknown=NOT_READ)
            for value in (rest, following):
                if value and UNTOLD not in value:
                    yield Started(line=value, moved=name.startswith("git-"))
    if name == "ssh":
        yield from _of_ssh(words)


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
    for at, word in enumerate(words[1:], 1):
        option = _FILES_OF_MAKE.match(word.text)
        if option is not None:
            following = words[at + 1].text if at + 1 < len(words) else ""
            value = word.text[option.end() :] or following
            is_file = value != "-" and UNTOLD not in value and not is_descriptor(value)
            if not is_file or option[0].startswith(("-E", "--e")):
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
