"""Words of a command that name files which it reads or changes.

A program outside the tables reads the files in its arguments and changes none. For a shell with
`-c`, only the redirections count: the commands in the line have words of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigwrap.bare import Enum, NamedTuple, re
from sigwrap.policy.judge.subcommand import subcommand

_WORDS_LOOKED_AT = 256
_LONGEST_WORD = 4096  # PATH_MAX
_LONGEST_LINE, _MOST_TOKENS = 8192, 1000


class Use(Enum):
    READ = "read a file"
    READ_BENEATH = "read a file, or all files of a folder"
    WRITE = "write a file, or create it"
    CREATE = "create what does not exist"
    DELETE = "delete"
    FILL = "write a file, or create files in a folder"


class FileWord(NamedTuple):
    use: Use
    path: str  # as written; `~/` is the home folder


_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_OPENS_NOTHING = frozenset(
    "test [ stat ls file find chmod chown chgrp echo printf basename dirname readlink realpath "
    "which kill pkill pgrep sleep git".split()
)
_EACH: dict[str, Use] = {
    **dict.fromkeys(("rm", "rmdir", "unlink"), Use.DELETE),
    **dict.fromkeys(("tee", "touch", "truncate", "shred"), Use.WRITE),
    **dict.fromkeys(("mkdir", "mkfifo", "mknod"), Use.CREATE),
    **dict.fromkeys(("git push", "git-receive-pack"), Use.FILL),
}
_LAST = {
    **dict.fromkeys(("cp", "mv", "ln", "install", "rsync", "scp"), Use.FILL),
    "git clone": Use.CREATE,
}
# Options with such a value.
_OUTPUT: dict[str, tuple[Use, str]] = {
    **dict.fromkeys(("gcc", "cc", "g++", "clang", "ld", "go"), (Use.WRITE, "-o")),
    "curl": (Use.WRITE, "-o --output --output-dir"),
    "wget": (Use.WRITE, "-O --output-document -P --directory-prefix"),
    "sort": (Use.WRITE, "-o --output"),
    "dd": (Use.WRITE, "of"),
    "tar": (Use.FILL, "-C --directory"),
    "unzip": (Use.FILL, "-d"),
    **dict.fromkeys(("cp", "mv", "ln", "install"), (Use.FILL, "-t --target-directory")),
}
_EXTRACTS = re.compile("-?[a-zA-Z]*x|--(get|extract)")
_SOURCES = {"mv": Use.DELETE, **dict.fromkeys(("cp", "install", "rsync", "scp"), Use.READ_BENEATH)}
_BENEATH = frozenset({"tar", "zip", "grep", "rg"})
# Lower statuses are answers.
_FAILS_FROM = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "diff", "cmp"), 2),
    "git clone": 128,
}


def name_of(argv: Sequence[str]) -> str:
    """Return a command's name, with the subcommand of git: `cat`, `git push`."""
    name = argv[0].rpartition("/")[2].lstrip("-")
    return f"git {subcommand(name, argv[:_WORDS_LOOKED_AT])}".strip() if name == "git" else name


def fails_from(name: str) -> int:
    """Return the lowest exit status that is no answer."""
    return _FAILS_FROM.get(name, 1)


def file_words(name: str, argv: Sequence[str]) -> Iterator[FileWord]:
    """Yield the files that the words name; `name` is the command's name_of."""
    words = [each for each in argv[1 : _WORDS_LOOKED_AT + 1] if each]
    if name in _SHELLS and (line := _line_of(words)) is not None:
        yield from redirections(line)
        return
    for use, path in _words(name, words):
        if path and len(path) <= _LONGEST_WORD:
            # A shell has expanded `~` before: here it is a name.
            yield FileWord(use, f"./{path}" if path[:1] == "~" else path)


def written(name: str, words: Sequence[str]) -> dict[int, Use]:
    """Return the places of words, or of options with their values, that name what it changes."""
    operands = _operands(words)
    if name in _EACH:
        return dict.fromkeys(operands, _EACH[name])
    if name in ("sed", "perl") and any(map(_IN_PLACE.match, words)):
        return dict.fromkeys(operands[name == "sed" :], Use.WRITE)
    use, options = _OUTPUT.get(name, (Use.WRITE, ""))
    places = _values_of(words, options.split())
    if name in _LAST and not places and len(operands) > (name != "git clone"):
        return {operands[-1]: _LAST[name]}
    if name == "tar" and not any(map(_EXTRACTS.match, words)):
        return {}
    return dict.fromkeys(places, use)


def target(word: str) -> str:
    """Return the path of an operand, or of an option's value that is glued to it."""
    option, equals, value = word.partition("=")
    if equals and "/" not in option:
        return value.partition("@")[2] if value.startswith("@") else value
    if not word.startswith("-"):
        return word
    return word[word.index("/") :] if "/" in word[2:] and word[1] != "-" else ""


def _words(name: str, words: list[str]) -> Iterator[tuple[Use, str]]:
    places = written(name, words)
    if name in _EACH or name in _LAST:
        if name in _SOURCES:
            places = dict.fromkeys(_operands(words), _SOURCES[name]) | places
        yield from ((places[at], words[at]) for at in sorted(places) if at < len(words))
    elif name.partition(" ")[0] not in _OPENS_NOTHING:
        read = Use.READ_BENEATH if name in _BENEATH else Use.READ
        for at, word in enumerate(words):
            yield places.get(at, read), target(word).lstrip("@")


_IN_PLACE = re.compile("-[a-z]*i|--in-place")


def _operands(words: Sequence[str]) -> list[int]:
    end = words.index("--") if "--" in words else len(words)
    return [at for at, word in enumerate(words) if at > end or (word[:1] != "-" and at < end)]


def _values_of(words: Sequence[str], options: Sequence[str]) -> list[int]:
    """Return where the values of these options are: `-o x`, `-so x`, `-ox`, `--output=x`."""
    found = []
    short = tuple(each for each in options if len(each) == 2 and each[0] == "-")
    for at, word in enumerate(words):
        is_cluster = word[1:].isalpha() and word[:1] + word[-1:] in short
        if word in options or is_cluster:
            found.append(at + 1)
        elif word.partition("=")[0] in options or (short and word.startswith(short)):
            found.append(at)
    return found


# Shell lines

_TOKEN = re.compile(
    r"(?P<word>(?:[^\s'\"\\;&|<>()]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+)"
    r"|(?P<redirect>&?>>|&?>\||>&|&>|<<<|<<-?|<>|<&|[<>])"
    r"|(?P<end>[;&|()\n])"
    r"|\s|\\\n"
)
_WRITES = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})
_DESCRIPTORS = frozenset("0123456789-")
_HOME = re.compile(r"\$(?:HOME\b|\{HOME\})")
_NOT_TOLD = frozenset("$`*?[{")


def _line_of(words: list[str]) -> str | None:
    """Return the line of `-c`: the first word after the options, one of which has a `c`."""
    has_c = False
    for each in words:
        if each[0] not in "-+" or len(each) < 2:
            return each if has_c else None
        has_c = has_c or (each[1] != "-" and "c" in each)
    return None


def redirections(line: str, *, depth: int = 3) -> Iterator[FileWord]:
    """Yield the files that a shell line's redirections name, up to the text of a here-document or
    to what is no plain syntax."""
    at, folder, before, redirect, has_text = 0, "", "", "", False
    line = line[:_LONGEST_LINE]
    for _ in range(_MOST_TOKENS):
        token = _TOKEN.match(line, at)
        if token is None or (has_text and token["end"] == "\n"):
            return
        at = token.end()
        if word := token["word"]:
            if redirect:
                path = "" if redirect.startswith("<<") or redirect == "<&" else _told(word)
                if path and not (redirect == ">&" and path in _DESCRIPTORS):
                    is_relative = folder and path[0] not in "/~"
                    use = Use.WRITE if redirect in _WRITES else Use.READ
                    yield FileWord(use, f"{folder}/{path}" if is_relative else path)
            elif before == "cd":
                folder = _told(word) or "/nonexistent"
            elif before == "eval" and depth:
                yield from redirections(_unquoted(word), depth=depth - 1)
            before, redirect = "" if redirect else word, ""
        elif token["end"]:
            before = redirect = ""
        elif found := token["redirect"]:
            redirect = found
            has_text = has_text or found in ("<<", "<<-")


def _told(word: str) -> str:
    """Return the path that a word of a line comes to, or "" if only the shell knows."""
    word = _HOME.sub("~", word, count=1)
    return "" if _NOT_TOLD.intersection(word) else _unquoted(word)


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)|['\"]", r"\1", word)
