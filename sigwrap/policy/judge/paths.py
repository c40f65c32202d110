"""Which files a command's arguments mean, as far as words tell: no file is looked at.

`/etc/../etc`, `//etc/`, `/proc/self/root/etc`, `etc` in the root folder, `/etc/*` and `~` are other
spellings of what a rule names. A symbolic link of the tree's own is not seen through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MAX_ARGUMENTS = 4096
MAX_CHARACTERS = 4096  # PATH_MAX

_GLOB_TAIL = re.compile(r"(?:[.]?\[[^/]*\]\*?|[.]?[*?]+|\{[.,*]+\})")
_READS_FROM = {"dd": "if="}
_STARTS_HERE = frozenset({"find"})  # without a path


def arguments_as_paths(
    name: str, argv: Sequence[str], folder: str, home: str, *, sources_only: bool = False
) -> frozenset[str]:
    """Absolute. `folder` is empty where it isn't known: a relative path means nothing then."""
    arguments = list(argv[1 : MAX_ARGUMENTS + 1])
    if sources_only and not any(_names_the_target(each) for each in arguments):
        arguments = arguments[:-1]
    found: set[str] = set()
    if name in _STARTS_HERE and folder and (not arguments or arguments[0][:1] in ("-", "(", "!")):
        found.add(resolved(".", folder, home))
    skipped = _READS_FROM.get(name)
    for argument in arguments:
        if not argument or len(argument) > MAX_CHARACTERS:
            continue
        if skipped is not None and argument.startswith(skipped):
            continue
        for text in _paths_in(argument):
            path = resolved(text, folder, home)
            if path:
                found.add(path)
    return frozenset(found)


def resolved(text: str, folder: str, home: str) -> str:
    """Empty where it can't be known."""
    if text == "~" or text.startswith("~/"):
        text = home + text[1:]
    if not text.startswith("/"):
        if not folder:
            return ""
        text = f"{folder}/{text}"
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
            parts = _through_proc(parts, folder)
    while parts and _GLOB_TAIL.fullmatch(parts[-1]):
        del parts[-1]
    return "/" + "/".join(parts)


def _paths_in(argument: str) -> Iterator[str]:
    yield argument
    _, equals, value = argument.partition("=")
    if equals and value:
        yield value


def _names_the_target(argument: str) -> bool:
    """`mv -t TARGET SOURCE…`"""
    if argument.startswith("--"):
        return "--target-directory".startswith(argument.partition("=")[0]) and len(argument) > 3
    return argument.startswith("-") and "t" in argument


def _through_proc(parts: list[str], folder: str) -> list[str]:
    """/proc/PID/root is the root folder, for nearly every PID, and /proc/self/cwd this one."""
    if parts[0] != "proc" or len(parts) < 3 or parts[-1] not in ("root", "cwd"):
        return parts
    process = parts[1:-1]
    if process[0] not in ("self", "thread-self") and not process[0].isdigit():
        return parts
    if len(process) not in (1, 3) or (len(process) == 3 and process[1] != "task"):
        return parts
    if parts[-1] == "root":
        return []
    return [part for part in folder.split("/") if part]
