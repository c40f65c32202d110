"""Paths in the arguments of a command, by text alone: no file is opened.

`/etc/../etc`, `//etc/`, `/proc/self/root/etc`, `etc` in the root folder, `/etc/*` and `~` are other
spellings of what a rule names. Symbolic links are not followed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from sigwrap.bare import re
from sigwrap.policy.judge.match import MAX_MATCHED_ARGUMENTS, UNTOLD
from sigwrap.policy.judge.tools import options_of, tool_name

UNTOLD_BELOW = "//..."  # in the path of a folder: one more part with an unknown name
MAX_CHARACTERS = 4096  # PATH_MAX

_GLOB_TAIL = re.compile(r"(?:[.]?\[[^/]*\]\*?|[.]?[*?]+|\{[.,*]+\})")
_READS_FROM = {"dd": "if="}
_STARTS_HERE = frozenset({"find"})  # without a path


def arguments_as_paths(
    condition: str, name: str, argv: Sequence[str], folder: str, home: str
) -> frozenset[str]:
    """Return the absolute paths for `paths`, `sources` or `outside`.

    Parts that depend on an unknown `folder` are UNTOLD.
    """
    arguments = list(argv[1 : MAX_MATCHED_ARGUMENTS + 1])
    if condition == "sources":
        arguments = _sources(arguments)
    elif condition == "outside":
        arguments = _without_options(name, arguments)
    found: set[str] = set()
    here = parts_of(folder)
    if name in _STARTS_HERE and (not arguments or arguments[0][:1] in ("-", "(", "!")):
        found.add(resolved(".", here, home))
    skipped = _READS_FROM.get(name)
    for argument in arguments:
        if not argument or len(argument) > MAX_CHARACTERS:
            continue
        if skipped is not None and argument.startswith(skipped):
            continue
        for text in _paths_in(argument):
            found.add(resolved(text, here, home))
    return frozenset(found)


def resolved(text: str, here: list[str], home: str) -> str:
    """Resolve a path against `here` (see parts_of), by text alone."""
    if text == "~" or text.startswith("~/"):
        text = home + text[1:]
    parts = [""] if text.startswith("/") else list(here)
    for part in text.split("/"):
        if part == "..":
            if len(parts) > 1:
                parts.pop()
            elif parts == [UNTOLD]:
                return UNTOLD
        elif part not in ("", "."):
            parts.append(part)
            parts = _through_proc(parts, here)
    while len(parts) > 1 and _GLOB_TAIL.fullmatch(parts[-1]):
        del parts[-1]
    return "/".join(parts if len(parts) > 1 else [*parts, ""])


def parts_of(folder: str) -> list[str]:
    """Split a folder into parts; the first is empty, as in any absolute path."""
    if not folder:
        return [UNTOLD]
    told = posixpath.normpath(folder.partition(UNTOLD_BELOW)[0] or "/")
    return ["", *filter(None, told.split("/")), *[UNTOLD] * folder.count(UNTOLD_BELOW)]


def _paths_in(argument: str) -> Iterator[str]:
    yield argument
    _, equals, value = argument.partition("=")
    if equals and value:
        yield value


def _without_options(name: str, arguments: list[str]) -> list[str]:
    """Leave out options, but not what can be a path in them: `--file=x`, `-C/x`, `-tx`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = []
    for argument in arguments[:end]:
        if argument == "-" or not argument.startswith("-"):
            kept.append(argument)
        else:
            kept += [argument.partition("=")[2], _attached(name, argument)]
    return kept + arguments[end + 1 :]


def _attached(name: str, option: str) -> str:
    """Return the value of a short option in the same word, or "".

    If the option is not known, that is what begins with a slash, or `..`.
    """
    with_value = options_of(tool_name(name)).with_value
    for at, letter in enumerate("" if option.startswith("--") else option):
        if letter in with_value:
            return option[at + 1 :]
    if "=" in option:
        return ""
    return option[option.index("/") :] if "/" in option else ".." * option.endswith("..")


def _sources(arguments: list[str]) -> list[str]:
    """Drop the destination: the last argument, or the value of `-t`."""
    for position, argument in enumerate(arguments):
        if argument == "--":
            break
        option, equals, _ = argument.partition("=")
        is_long = len(option) > 3 and "--target-directory".startswith(option)
        if is_long and equals:
            return arguments[:position] + arguments[position + 1 :]
        is_short = re.fullmatch("-[a-su-zA-Z]*t(.*)", argument)
        if is_long or (is_short and not is_short[1]):
            return arguments[:position] + arguments[position + 2 :]
        if is_short:
            return arguments[:position] + arguments[position + 1 :]
    return arguments[:-1]


def _through_proc(parts: list[str], here: list[str]) -> list[str]:
    """Resolve /proc/PID/root to the root folder and /proc/self/cwd to `here`."""
    if len(parts) < 4 or parts[1] != "proc" or parts[-1] not in ("root", "cwd"):
        return parts
    process = parts[2:-1]
    if process[0] not in ("self", "thread-self") and not process[0].isdigit():
        return parts
    if len(process) not in (1, 3) or (len(process) == 3 and process[1] != "task"):
        return parts
    return [""] if parts[-1] == "root" else list(here)
