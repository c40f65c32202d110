"""Which words of a command are files that it reads or changes, as far as words tell.

A program outside the tables may read the files that it is given, and changes none. For a shell
with `-c`, only the redirections in its line count: the commands in it have words of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from sigwrap.bare import re
from sigwrap.bare.enum import Enum
from sigwrap.policy.judge.subcommand import subcommand
from sigwrap.tuples import NamedTuple

_WORDS_LOOKED_AT = 256
_LONGEST_LINE, _MOST_TOKENS = 8192, 1000
_LONGEST_WORD = 4096  # PATH_MAX


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


SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh"})
_OPENS_NOTHING = frozenset(
    "test [ stat ls file find chmod chown chgrp echo printf basename dirname readlink realpath "
    "which kill pkill pgrep sleep".split()
)
_EACH: dict[str, Use] = {
    **dict.fromkeys(("rm", "rmdir", "unlink"), Use.DELETE),
    **dict.fromkeys(("tee", "touch", "truncate", "shred"), Use.WRITE),
    **dict.fromkeys(("mkdir", "mkfifo", "mknod"), Use.CREATE),
    "git-receive-pack": Use.FILL,
}
_LAST = frozenset({"cp", "mv", "ln", "install", "rsync", "scp"})
_OUTPUT = {
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "ld", "sort", "curl"), "o"),
    "wget": "O",
}
_LONG_OUTPUT = frozenset({"--output", "--output-document"})
_BENEATH = frozenset({"cp", "rsync", "scp", "tar", "zip", "grep", "rg"})
_IN_PLACE = frozenset({"sed", "perl"})
_GIT_LAST = {"clone": Use.CREATE, "init": Use.FILL}
# Statuses below are answers, no failures. Git has 128 where it can't do something.
_FAILS_FROM = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "diff", "cmp"), 2),
    "git": 128,
}


def fails_from(name: str, argv: Sequence[str]) -> int:
    """The lowest exit status of this command that is no answer."""
    is_push = name == "git" and subcommand(name, argv[:_WORDS_LOOKED_AT]) == "push"
    return 1 if is_push else _FAILS_FROM.get(name, 1)


def file_words(name: str, argv: Sequence[str]) -> Iterator[FileWord]:
    words = [each for each in argv[1 : _WORDS_LOOKED_AT + 1] if each]
    if name in SHELLS and (line := _line_of(words)) is not None:
        yield from redirections(line)
        return
    for each in _words(name, words):
        if len(each.path) <= _LONGEST_WORD and "\0" not in each.path:
            # A shell has expanded `~` before: here it is a name.
            yield each._replace(path=f"./{each.path}") if each.path[:1] == "~" else each


def _words(name: str, words: list[str]) -> Iterator[FileWord]:
    if name == "git":
        yield from _of_git(words)
    elif name == "dd":
        for each in words:
            if each.startswith("of="):
                yield FileWord(Use.WRITE, each[3:])
            elif each.startswith("if="):
                yield FileWord(Use.READ, each[3:])
    elif name in _EACH:
        yield from (FileWord(_EACH[name], each) for each in _operands(words))
    elif name in _LAST:
        yield from _sources_and_target(name, words)
    elif name in _IN_PLACE and any(map(_is_in_place, words)):
        yield from (FileWord(Use.WRITE, each) for each in _operands(words))
    elif name not in _OPENS_NOTHING:
        yield from _read(name, words)


def _read(name: str, words: list[str]) -> Iterator[FileWord]:
    use = Use.READ_BENEATH if name in _BENEATH else Use.READ
    short = _OUTPUT.get(name)
    for position, each in enumerate(words):
        before = words[position - 1] if position else ""
        if short and (before == f"-{short}" or before in _LONG_OUTPUT):
            yield FileWord(Use.WRITE, each)
        elif short and each.startswith(f"-{short}") and len(each) > 2:
            yield FileWord(Use.WRITE, each[2:])
        elif each.startswith("-"):
            option, equals, value = each.partition("=")
            if equals:
                written = short and option in _LONG_OUTPUT
                yield FileWord(Use.WRITE if written else use, value)
            elif "/" in each[2:] and each[1] != "-":
                yield FileWord(use, each[2:])  # glued to its option, as in -i/path
        else:
            yield FileWord(use, each.lstrip("@"))
            if value := each.partition("=")[2]:
                yield FileWord(use, value)


def _sources_and_target(name: str, words: list[str]) -> Iterator[FileWord]:
    operands, target = _operands(words), ""
    for position, each in enumerate(words[:-1]):
        if each in ("-t", "--target-directory"):
            target = words[position + 1]
    target = target or next((each[19:] for each in words if each[:19] == "--target-directory="), "")
    if target:
        operands = [each for each in operands if each != target]
    elif len(operands) > 1:
        target = operands.pop()
    for each in operands:
        if name == "mv":
            yield FileWord(Use.DELETE, each)
        elif name != "ln":
            yield FileWord(Use.READ_BENEATH, each)
    if target:
        yield FileWord(Use.FILL, target)


def _is_in_place(word: str) -> bool:
    letters = takewhile(str.islower, word[1:]) if word[:1] == "-" else ""
    return word.startswith("--in-place") or "i" in letters


def _of_git(words: list[str]) -> Iterator[FileWord]:
    command = subcommand("git", ["git", *words])
    operands = _operands(words)
    if command == "push":
        yield from (FileWord(Use.FILL, each) for each in operands)
    elif command in _GIT_LAST and operands:
        yield FileWord(_GIT_LAST[command], operands[-1])
    elif command in ("add", "commit") and "-C" in words[:-1]:
        yield FileWord(Use.FILL, words[words.index("-C") + 1])


def _operands(words: list[str]) -> list[str]:
    if "--" in words:
        end = words.index("--")
        return [*_operands(words[:end]), *words[end + 1 :]]
    return [each for each in words if not each.startswith("-")]


# Shell lines

_TOKEN = re.compile(
    r"(?P<word>(?:[^\s'\"\\;&|<>()]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+)"
    r"|(?P<redirect>&?>>|&?>\||>&|&>|<<<|<<-?|<>|<&|[<>])"
    r"|(?P<end>[;&|()\n])"
    r"|\s|\\\n"
)
_WRITES = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})
_HOME = re.compile(r"\$(?:HOME\b|\{HOME\})")
_NOT_TOLD = frozenset("$`*?[{")


def _line_of(words: list[str]) -> str | None:
    """The line of `-c`: the first word after the options, one of which has a `c`."""
    has_c = False
    for each in words:
        if each[:1] not in ("-", "+") or len(each) < 2:
            return each if has_c else None
        has_c = has_c or (each[1] != "-" and "c" in each)
    return None


def redirections(line: str, *, depth: int = 3) -> Iterator[FileWord]:
    """The files that a shell line's redirections name. The line is read up to what is no plain
    syntax."""
    at, folder, before, redirect = 0, "", "", ""
    heredocs: list[str] = []
    line = line[:_LONGEST_LINE]
    for _ in range(_MOST_TOKENS):
        if at >= len(line) or not (token := _TOKEN.match(line, at)):
            break
        at = token.end()
        if word := token["word"]:
            if redirect.startswith("<<"):
                if redirect != "<<<":
                    heredocs.append(_unquoted(word))
            elif redirect:
                path = _told(word)
                if path and redirect != "<&" and not (redirect == ">&" and path in "0123456789-"):
                    use = Use.WRITE if redirect in _WRITES else Use.READ
                    is_relative = folder and path[:1] not in ("/", "~")
                    yield FileWord(use, f"{folder}/{path}" if is_relative else path)
            elif before == "cd":
                folder = _told(word) or "/nonexistent"
            elif before == "eval" and depth:
                yield from redirections(_unquoted(word), depth=depth - 1)
            before, redirect = "" if redirect else word, ""
        elif found := token["redirect"]:
            redirect = found
        elif token["end"]:
            before = redirect = ""
            if token["end"] == "\n":
                for each in heredocs:
                    at = _after_heredoc(line, at, each)
                heredocs.clear()


def _after_heredoc(line: str, at: int, delimiter: str) -> int:
    while at < len(line):
        end = line.find("\n", at) % (len(line) + 1)  # -1: the last row
        row, at = line[at:end], end + 1
        if row.lstrip("\t") == delimiter:
            break
    return at


def _told(word: str) -> str:
    """The path that a word of a line comes to; empty where only the shell knows."""
    word = _HOME.sub("~", word, count=1)
    return "" if _NOT_TOLD.intersection(word) else _unquoted(word)


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)|['\"]", r"\1", word)
