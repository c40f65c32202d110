"""Which words of a command are files that it reads or changes, as far as words tell.

A program outside the tables may read the files that it is given, and changes none. For a shell
with `-c`, only the redirections in its line count: the commands in it have words of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigwrap.bare import re
from sigwrap.bare.enum import Enum
from sigwrap.policy.judge.subcommand import subcommand
from sigwrap.tuples import NamedTuple

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
_OUTPUT = {
    **dict.fromkeys(("gcc", "g++", "cc", "clang", "ld", "sort", "curl"), ("-o", "--output")),
    "wget": ("-O", "--output-document"),
    "dd": ("of",),
}
_SOURCES = {"mv": Use.DELETE, **dict.fromkeys(("cp", "install", "rsync", "scp"), Use.READ_BENEATH)}
_BENEATH = frozenset({"tar", "zip", "grep", "rg"})
# Lower statuses are answers.
_FAILS_FROM = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "diff", "cmp"), 2),
    "git clone": 128,
}


def name_of(argv: Sequence[str]) -> str:
    """`cat`, or `git push`."""
    name = argv[0].rpartition("/")[2].lstrip("-")
    return f"git {subcommand(name, argv[:_WORDS_LOOKED_AT])}".strip() if name == "git" else name


def fails_from(name: str) -> int:
    """Return the lowest exit status that is no answer."""
    return _FAILS_FROM.get(name, 1)


def file_words(name: str, argv: Sequence[str]) -> Iterator[FileWord]:
    """`name`: see name_of."""
    words = [each for each in argv[1 : _WORDS_LOOKED_AT + 1] if each]
    if name in _SHELLS and (line := _line_of(words)) is not None:
        yield from redirections(line)
        return
    for use, path in _words(name, words):
        if len(path) <= _LONGEST_WORD:
            # A shell has expanded `~` before: here it is a name.
            yield FileWord(use, f"./{path}" if path[:1] == "~" else path)


def _words(name: str, words: list[str]) -> Iterator[tuple[Use, str]]:
    operands = _operands(words)
    if name in _EACH:
        yield from ((_EACH[name], each) for each in operands)
    elif name in _LAST:
        if name in _SOURCES:
            yield from ((_SOURCES[name], each) for each in operands[:-1])
        yield from ((_LAST[name], each) for each in operands[-1:])
    elif name in ("sed", "perl") and any(map(_IN_PLACE.match, words)):
        yield from ((Use.WRITE, each) for each in operands)
    elif name.partition(" ")[0] not in _OPENS_NOTHING:
        read = Use.READ_BENEATH if name in _BENEATH else Use.READ
        outputs, before = _OUTPUT.get(name, ()), ""
        for each in words:
            option, equals, value = each.partition("=")
            is_output = before in outputs or option in outputs
            use = Use.WRITE if is_output else read
            if equals and "/" not in option:
                yield use, value
            elif each[0] != "-":
                yield use, each.lstrip("@")
            elif "/" in each[2:] and each[1] != "-":  # glued to its option, as in -i/path
                yield Use.WRITE if each[:2] in outputs else read, each[2:]
            before = each


_IN_PLACE = re.compile("-[a-z]*i|--in-place")


def _operands(words: list[str]) -> list[str]:
    end = words.index("--") if "--" in words else len(words)
    return [*(each for each in words[:end] if each[0] != "-"), *words[end + 1 :]]


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
